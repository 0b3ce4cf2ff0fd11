"""Files inside a request: text is shown, the rest is refused in plain words."""

from __future__ import annotations

from base64 import b64encode

import pytest

from prompts import Text
from proxy.errors import RequestError
from proxy.wire.files import parse_file
from proxy.wire.json_body import JsonObject
from proxy.wire.reader import Reader


def data_url(content: bytes, kind: str = "text/plain") -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"


@pytest.mark.parametrize("kind", ["text/plain", "text/markdown;charset=utf-8", "application/json", "application/x-sh"])
def test_a_file_of_text_is_shown_under_its_name(kind: str) -> None:
    part: JsonObject = {"type": "input_file", "filename": "a.md", "file_data": data_url("# Ä\n".encode(), kind)}
    assert parse_file(Reader(part)) == Text("File 'a.md':\n# Ä\n")


def test_a_file_without_a_name_is_its_text() -> None:
    assert parse_file(Reader({"type": "input_file", "file_data": data_url(b"x")})) == Text("x")


def test_chats_file_part_is_the_same() -> None:
    part: JsonObject = {"type": "file", "file": {"filename": "a", "file_data": data_url(b"x")}}
    assert parse_file(Reader(part)) == Text("File 'a':\nx")


@pytest.mark.parametrize(
    ("part", "param", "code"),
    [
        ({"file_id": "file_1"}, "p.file_id", "unsupported_value"),
        ({"file_url": "https://x/y.txt"}, "p.file_url", "unsupported_value"),
        ({"file_data": data_url(b"%PDF-1.7", "application/pdf")}, "p.file_data", "unsupported_value"),
        ({"file_data": data_url(b"\xff\xfe")}, "p.file_data", "unsupported_value"),
        ({"file_data": data_url(b"a\0b")}, "p.file_data", "unsupported_value"),
        ({"file_data": "aGk="}, "p.file_data", "invalid_value"),
        ({"file_data": "data:text/plain,hi"}, "p.file_data", "invalid_value"),
        ({"file_data": "data:text/plain;base64,a!"}, "p.file_data", "invalid_value"),
        ({"file_data": "data:text/plain;base64,é"}, "p.file_data", "invalid_value"),
        ({}, "p.file_data", "missing_required_parameter"),
    ],
)
def test_what_cannot_be_shown_is_refused(part: JsonObject, param: str, code: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_file(Reader(part, "p"))
    assert (caught.value.status, caught.value.param, caught.value.code) == (400, param, code)
