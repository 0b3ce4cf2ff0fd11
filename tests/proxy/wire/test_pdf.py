"""PDFs: their text, and what is refused instead of being cut."""

from __future__ import annotations

import sys
from base64 import b64encode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire import pdf as room
from proxy.wire.pdf import PdfError, holds_pdf, pdf_text
from tests.support.pdf import pdf

ENCODED = b64encode(pdf("One")).decode()


def test_pages_have_an_empty_line_between_them() -> None:
    assert pdf_text(pdf("One page.", "Another (page)")) == "One page.\n\nAnother (page)"


@pytest.mark.parametrize(
    ("bound", "value", "problem"),
    [
        ("MOST_PAGES", 1, "has 2 pages; at most 1 are read"),
        ("MOST_CHARACTERS", 5, "more than 5 characters of text"),
        ("MOST_DRAWN", 50, "hold more than 50 bytes"),
    ],
)
def test_what_is_over_a_bound_is_refused(monkeypatch: pytest.MonkeyPatch, bound: str, value: int, problem: str) -> None:
    monkeypatch.setattr(room, bound, value)
    with pytest.raises(PdfError, match=problem):
        pdf_text.__wrapped__(pdf("One", "Two more"))


def without_table(document: bytes) -> bytes:
    """As it is written by hand: nothing says where its objects stand."""
    objects, _, end = document.partition(b"xref\n")
    return objects + b"trailer" + end.partition(b"trailer")[2].partition(b"startxref")[0] + b"%%EOF"


def test_one_that_does_not_say_where_its_objects_stand_is_read() -> None:
    assert pdf_text(without_table(pdf("One page.", "Another"))) == "One page.\n\nAnother"


def test_one_whose_end_is_missing_is_refused() -> None:
    for document in (pdf("One page.", "Another"), without_table(pdf("One page.", "Another"))):
        for end in range(len(document) - 6, 0, -50):
            with pytest.raises(PdfError, match="cannot be read"):
                pdf_text(document[:end])


def test_pages_without_text_are_refused() -> None:
    with pytest.raises(PdfError, match="no text in it"):
        pdf_text(pdf(drawing=[b"0 0 m 10 10 l S"]))


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(PdfError, match=r"the extra `pdf` of tagcall"):
        pdf_text.__wrapped__(pdf("One"))


@given(st.binary(max_size=200), st.integers(0, 600))
def test_nothing_else_is_ever_raised(noise: bytes, place: int) -> None:
    whole = pdf("One", "Two")
    with suppress(PdfError):
        pdf_text.__wrapped__(whole[:place] + noise + whole[place + len(noise) :])


@pytest.mark.parametrize(
    ("value", "held"),
    [
        (ENCODED, True),
        ({"input": [{"content": [{"file_data": f"data:application/pdf;base64,{ENCODED}"}]}]}, True),
        (({"a": f"data:;base64,{ENCODED}"},), True),
        ({"a": ["data:text/plain;base64,aGk=", f"see {ENCODED}", 1, None]}, False),
    ],
)
def test_a_value_that_holds_one_is_known(value: object, held: bool) -> None:
    assert holds_pdf(value) is held
