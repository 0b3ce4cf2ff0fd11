from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.chat.characters import CharacterReader, read_cut, read_whole
from tests.support.cpu_time import any_round, cpu_seconds, seconds_to_look_at

# Half a pair alone is no character: UTF-8 has no bytes for it.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("aß你😀💀\ufffd"), max_size=12)


def read(*events: bytes) -> str:
    reader = CharacterReader()
    return "".join([*(reader.receive_text(read_cut(b'"%b"' % event)) for event in events), reader.receive_eof()])


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces: list[bytes] = []
    while data:
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(data[:size])
        data = data[size:]
    return pieces


@given(TEXTS, st.lists(st.integers(1, 5), min_size=1))
def test_bytes_that_were_cut_are_the_characters_they_were(text: str, sizes: list[int]) -> None:
    written = json.dumps(text.replace('"', "'"), ensure_ascii=False)[1:-1].replace("\\", "/").encode()
    assert read(*cut(written, sizes)) == written.decode()


@given(TEXTS, st.lists(st.integers(1, 5), min_size=1))
def test_units_that_were_cut_are_the_characters_they_were(text: str, sizes: list[int]) -> None:
    pieces = cut(text.encode("utf-16-le"), [2 * size for size in sizes])
    events = [json.dumps(piece.decode("utf-16-le", "surrogatepass"))[1:-1].encode() for piece in pieces]
    assert read(*events) == text


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([b"caf\xe9!"], "caf\ufffd!"),
        ([b"caf\xe9"], "caf\ufffd"),
        ([b"\xe4\xbd", b"x"], "\ufffd\ufffdx"),
        ([b"\xa0x"], "\ufffdx"),
        ([rb"\ud83d", b"x"], "\ufffdx"),
        ([rb"\ude00", rb"\ud83d"], "\ufffd\ufffd"),
        ([b"\xff\xfe"], "\ufffd\ufffd"),
        ([b"a\xf0\x9f", b"", b"\x98", b"\x80b"], "a😀b"),
    ],
)
def test_what_nothing_completes_is_marked(events: list[bytes], text: str) -> None:
    assert read(*events) == text


@given(st.lists(st.one_of(st.binary(max_size=6), st.sampled_from([rb"\ud83d", rb"\udc80", rb"\ude00", b"\xf0\x9f"]))))
def test_whatever_comes_can_be_written_again(events: list[bytes]) -> None:
    reader = CharacterReader()
    for event in events:
        try:
            text = read_cut(b'"%b"' % event)
        except ValueError:
            continue
        if isinstance(text, str):
            reader.receive_text(text).encode()


@given(st.binary(max_size=12))
def test_bytes_that_come_at_once_are_what_they_are_as_utf_8(data: bytes) -> None:
    text = data.decode(errors="surrogateescape")
    reader = CharacterReader()
    read_text = reader.receive_text(text) + reader.receive_eof()
    assert read_text.replace("\ufffd", "") == data.decode(errors="ignore").replace("\ufffd", "")


@pytest.mark.growth
@pytest.mark.parametrize("unit", ["\udcff", "a\udcff", "\n\udce2\udc82"])
def test_what_is_no_utf_8_at_all_costs_little_more_than_text(unit: str) -> None:
    text = unit * 100_000
    for each in any_round():
        with each:
            assert cpu_seconds(lambda: CharacterReader().receive_text(text)) < 12 * seconds_to_look_at(text)


@pytest.mark.parametrize("data", [b"{", b"\xff", b'"\xff', b'["\xff", NaN]', b'["\xff"' + b"[" * 5000 + b"]" * 5001])
def test_what_is_no_json_stays_none(data: bytes) -> None:
    for read_json in (read_cut, read_whole):
        with pytest.raises(ValueError, match=r"."):
            read_json(data)


def test_a_value_is_whole_where_nothing_follows() -> None:
    assert read_whole(b'{"a": "caf\xe9 \\ud83d"}') == {"a": "caf\ufffd \ufffd"}
