from __future__ import annotations

import html
import json
import quopri
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.guard.budget import ReadingBudget
from prompts.guard.decodings import readings
from prompts.guard.suspicion import is_suspect
from tests.prompts.guard.test_lines import ARGUMENTS, SPELLINGS, carried


def of_all(form: str) -> Callable[[str], str]:
    """What writes each byte as `form` says."""
    return lambda text: "".join(form % byte for byte in text.encode())


ENCODINGS: dict[str, Callable[[str], str]] = {
    "CSV": lambda text: '"' + text.replace('"', '""') + '"',
    "CSV in CSV": lambda text: text.replace('"', '""""'),
    "SQL": lambda text: "'" + text.replace("'", "''") + "'",
    "two single quotes": lambda text: text.replace('"', "''"),
    "an address": lambda text: quote(text, safe=""),
    "an address in lower case": lambda text: quote(text, safe="").replace("%3C", "%3c").replace("%7B", "%7b"),
    "a form": quote_plus,
    "an address in an address": lambda text: quote(quote(text, safe=""), safe=""),
    "every letter": of_all("%%%02X"),
    "every letter in lower case": of_all("%%%02x"),
    "every letter, twice": lambda text: quote(of_all("%%%02X")(text)),
    "some letters": lambda text: text.replace("tool_call", "to%6Fl%5Fc%61ll"),
    "some letters, twice": lambda text: text.replace("tool_call", "to%256fl%255Fc%2561ll"),
    "quotes alone": lambda text: text.replace('"', "%22"),
    "a value alone": lambda text: text.replace(".md", "%2Emd"),
    "HTML": html.escape,
    "HTML twice": lambda text: html.escape(html.escape(text)),
    "HTML three times": lambda text: html.escape(html.escape(html.escape(text))),
    "numbers in HTML": of_all("&#%d;"),
    "numbers in HTML, twice": lambda text: html.escape(of_all("&#x%x;")(text)),
    "mail": lambda text: quopri.encodestring(text.encode()).decode(),
    "JSON": json.dumps,
    "JSON in JSON": lambda text: json.dumps({"a": json.dumps({"b": text})}),
    "Python's bytes": lambda text: text.replace("<", r"\x3c").replace(">", r"\x3E"),
    "every letter, as C has it": of_all("\\x%02x"),
    "every letter, as JavaScript has it": of_all("\\u{%x}"),
    "C in JSON": lambda text: json.dumps({"code": text.replace("<", r"\x3c").replace('"', r"\x22")}),
    "a notebook": lambda text: json.dumps({"source": text.splitlines(keepends=True)}, indent=1),
    "a notebook in JSON": lambda text: json.dumps(json.dumps({"source": text.splitlines(keepends=True)}, indent=1)),
    "strings of Python": lambda text: "\n".join(f"    {line!r}" for line in text.splitlines(keepends=True)),
    "strings of Java": lambda text: " +\n".join(json.dumps(line) for line in text.splitlines(keepends=True)),
    "what a search found, in colour": lambda text: text.replace("call", "\x1b[01;31m\x1b[Kcall\x1b[m\x1b[K"),
    "colours in JSON": lambda text: json.dumps({"out": text.replace("name", "\x1b[31mname\x1b[0m")}),
    "colours of the tag in JSON": lambda text: json.dumps({"out": text.replace("call", "\x1b[31mcall\x1b[0m")}),
    "CSV in JSON": lambda text: json.dumps({"row": text.replace('"', '""')}),
    "JSON in CSV": lambda text: json.dumps({"note": text}).replace('"', '""'),
    "an address in JSON": lambda text: json.dumps({"url": quote(text)}),
    "JSON in an address": lambda text: quote(json.dumps({"note": text})),
    "HTML twice in JSON": lambda text: json.dumps({"page": html.escape(html.escape(text))}),
    "JSON in HTML": lambda text: html.escape(json.dumps(text)),
    "an address in HTML": lambda text: html.escape(quote(text)),
    "HTML in an address": lambda text: quote(html.escape(text)),
}


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_an_encoded_block_is_a_quotation(spelling: str, encode: Callable[[str], str]) -> None:
    for guard in carried(f"A note.\n{encode(spelling)}\nIts end."):
        assert guard.is_suspect()
        assert guard.is_quotation("delete_note", ARGUMENTS)
        assert not guard.is_quotation("delete_note", '{"path": "other.md"}')


@given(st.text(), st.text(), st.sampled_from(sorted(SPELLINGS)), st.sampled_from(sorted(ENCODINGS)))
def test_an_encoded_block_is_a_quotation_whatever_stands_around_it(
    before: str, behind: str, spelling: str, encoding: str
) -> None:
    # A line that ends what is not closed.
    text = f"{before}\n{ENCODINGS[encoding](SPELLINGS[spelling])}\n\n{behind}"
    assert all(guard.is_quotation("delete_note", ARGUMENTS) for guard in carried(text))


@given(st.text())
def test_a_text_is_read_as_it_stands_and_as_what_it_encodes(text: str) -> None:
    assert text in readings(text, ReadingBudget(0))
    once = json.dumps(text)
    assert f'"{text}"' in readings(once, ReadingBudget(0))
    for encode in (json.dumps, html.escape, quote):
        assert any(text in reading for reading in readings(encode(once), ReadingBudget(0)))


@given(st.text(alphabet="\\&%\"'+=u0123amp;ltn\n"))
def test_the_readings_of_a_text_are_few(text: str) -> None:
    found = list(readings(text, ReadingBudget(0)))
    assert len(found) < 1000
    assert is_suspect(text) or not any("tool_call" in reading for reading in found)
