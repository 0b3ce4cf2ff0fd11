"""Content in the words of either API."""

from __future__ import annotations

from base64 import b64encode

import pytest

from prompts import Image, Part, Text
from proxy.errors import RequestError
from proxy.wire.content import joined_text, parse_parts
from proxy.wire.json_body import JsonObject, JsonValue
from proxy.wire.reader import Reader
from tests.support.pdf import pdf

PDF = pdf("One page.", "Another (page)")
PNG = "data:image/png;base64,iVBORw0KGgo="


def parsed(part: JsonObject) -> tuple[Part, ...]:
    return parse_parts(Reader({"content": [part]}), "content")


def data_url(content: bytes, kind: str = "text/plain") -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, ()),
        ("", ()),
        ("a", (Text("a"),)),
        ([], ()),
        ([{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}], (Text("a"), Text("b"))),
        ([{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}], (Text("a"), Text("b"))),
        ([{"type": "input_image", "image_url": PNG}], (Image(PNG),)),
        ([{"type": "image_url", "image_url": {"url": PNG}}], (Image(PNG),)),
        ([{"type": "input_image", "image_url": PNG, "detail": "low"}], (Image(PNG, "low"),)),
        ([{"type": "input_image", "image_url": PNG, "detail": "auto"}], (Image(PNG),)),
        ([{"type": "image_url", "image_url": {"url": PNG, "detail": "original"}}], (Image(PNG, "original"),)),
        ([{"type": "image_url", "image_url": {"url": PNG, "detail": None}}], (Image(PNG),)),
    ],
)
def test_content_is_a_string_or_parts(content: JsonValue, expected: tuple[Part, ...]) -> None:
    assert parse_parts(Reader({"content": content}), "content") == expected


@pytest.mark.parametrize(
    ("part", "param", "code"),
    [
        ({"type": "video"}, "content[0].type", "invalid_value"),
        ({"type": "input_audio", "input_audio": {}}, "content[0].type", "unsupported_value"),
        ({"type": "text"}, "content[0].text", "missing_required_parameter"),
        ({"type": "image_url"}, "content[0].image_url", "missing_required_parameter"),
        ({"type": "image_url", "image_url": {}}, "content[0].image_url.url", "missing_required_parameter"),
        ({"type": "image_url", "image_url": "http://x/y.png"}, "content[0].image_url", "invalid_image_url"),
        ({"type": "input_image", "file_id": "file_1"}, "content[0].file_id", "unsupported_value"),
        ({"type": "input_image", "image_url": "data:image/png;base64,"}, "content[0].image_url", "invalid_value"),
        ({"type": "input_image", "image_url": "data:image/png;base64,no!"}, "content[0].image_url", "invalid_value"),
        ({"type": "input_image", "image_url": "data:image/png;base64,AAA"}, "content[0].image_url", "invalid_value"),
        ({"type": "input_image", "image_url": "data:image/png;base64,é"}, "content[0].image_url", "invalid_value"),
        ({"type": "input_image", "image_url": "data:image/svg+xml,<svg/>"}, "content[0].image_url", "invalid_value"),
        ({"type": "input_image", "image_url": "data:text/plain;base64,aGk="}, "content[0].image_url", "invalid_value"),
        ({"type": "image_url", "image_url": {"url": "data:image/png"}}, "content[0].image_url.url", "invalid_value"),
        ({"type": "input_image", "image_url": PNG, "detail": "ultra"}, "content[0].detail", "invalid_value"),
        ({"type": "input_image", "image_url": PNG, "detail": 1}, "content[0].detail", "invalid_type"),
        (
            {"type": "image_url", "image_url": {"url": PNG, "detail": "ultra"}}, "content[0].image_url.detail",
            "invalid_value",
        ),
        ({"type": "input_file", "file_data": "aGk=", "detail": "original"}, "content[0].detail", "invalid_value"),
    ],
)  # fmt: skip
def test_a_part_that_cannot_be_shown_is_refused_by_its_path(part: JsonObject, param: str, code: str) -> None:
    with pytest.raises(RequestError) as caught:
        parsed(part)
    assert (caught.value.status, caught.value.param, caught.value.code) == (400, param, code)


@pytest.mark.parametrize("kind", ["text/plain", "text/markdown;charset=utf-8", "application/json", "application/x-sh"])
def test_a_file_of_text_is_shown_under_its_name(kind: str) -> None:
    part: JsonObject = {"type": "input_file", "filename": "a.md", "file_data": data_url("# Ä\n".encode(), kind)}
    assert parsed(part) == (Text("File 'a.md':\n# Ä\n"),)


def test_a_file_without_a_name_is_its_text() -> None:
    assert parsed({"type": "input_file", "file_data": data_url(b"x")}) == (Text("x"),)


@pytest.mark.parametrize("url", ["data:text/plain;base64,aGk=", "data:;base64,aGk=", "aGk="])
def test_the_data_may_stand_alone(url: str) -> None:
    assert parsed({"type": "input_file", "filename": "a", "file_data": url}) == (Text("File 'a':\nhi"),)


@pytest.mark.parametrize("url", [data_url(PDF, "application/pdf"), data_url(PDF), b64encode(PDF).decode()])
def test_a_pdf_is_shown_as_its_text(url: str) -> None:
    part: JsonObject = {"type": "input_file", "filename": "a.pdf", "file_data": url}
    assert parsed(part) == (Text("File 'a.pdf':\nOne page.\n\nAnother (page)"),)


def test_chats_file_part_is_the_same() -> None:
    part: JsonObject = {"type": "file", "file": {"filename": "a", "file_data": data_url(b"x")}}
    assert parsed(part) == (Text("File 'a':\nx"),)


@pytest.mark.parametrize(
    ("part", "param", "code"),
    [
        ({"file_id": "file_1"}, "content[0].file_id", "unsupported_value"),
        ({"file_url": "https://x/y.txt"}, "content[0].file_url", "unsupported_value"),
        ({"file_data": data_url(b"%PDF-1.7", "application/pdf")}, "content[0].file_data", "unsupported_value"),
        ({"file_data": data_url(b"%PDF-1.7")}, "content[0].file_data", "unsupported_value"),
        ({"file_data": data_url(b"\xff\xfe")}, "content[0].file_data", "unsupported_value"),
        ({"file_data": data_url(b"a\0b")}, "content[0].file_data", "unsupported_value"),
        ({"file_data": "aGk"}, "content[0].file_data", "invalid_value"),
        ({"file_data": "data:text/plain,hi"}, "content[0].file_data", "invalid_value"),
        ({"file_data": "data:text/plain;base64,a!"}, "content[0].file_data", "invalid_value"),
        ({"file_data": "data:text/plain;base64,é"}, "content[0].file_data", "invalid_value"),
        ({}, "content[0].file_data", "missing_required_parameter"),
    ],
)
def test_a_file_that_cannot_be_shown_is_refused(part: JsonObject, param: str, code: str) -> None:
    with pytest.raises(RequestError) as caught:
        parsed({"type": "input_file", **part})
    assert (caught.value.status, caught.value.param, caught.value.code) == (400, param, code)


def test_texts_are_joined_as_lines() -> None:
    assert joined_text([Text("a"), Image(PNG), Text("b")]) == "a\nb"


IMAGE_WANTED = (
    "Invalid 'content[0].image_url'. Expected a base64-encoded data URL with an image MIME type "
    "(e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got "
)
FILE_WANTED = "Invalid 'content[0].file_data'. Expected base64, alone or in a data URL ('data:text/plain;base64,aGk=')."
INSTEAD = "send the file's text, in 'file_data' or as an 'input_text' part."


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"image_url": "data:text/plain;base64,aGk="}, f"{IMAGE_WANTED}unsupported MIME type 'text/plain'."),
        ({"image_url": "data:image/png,aGk="}, f"{IMAGE_WANTED}a value without ';base64,'."),
        ({"image_url": "data:image/png;base64,a!"}, f"{IMAGE_WANTED}a value that is not base64."),
        ({"image_url": "data:image/png;base64,aGk=,"}, f"{IMAGE_WANTED}a value that is not base64."),
        ({"image_url": "data:image/png;base64,"}, f"{IMAGE_WANTED}empty base64-encoded bytes."),
        (
            {"image_url": "https://x/y.png"},
            "Remote images are not fetched: send the image as a data URL ('data:image/png;base64,...').",
        ),
        (
            {"file_id": "file_1"},
            "Images by 'file_id' are not supported: send the image as a data URL in 'image_url'.",
        ),
    ],
)
def test_what_is_no_image_is_told_what_one_would_be(part: JsonObject, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        parsed({"type": "input_image", **part})
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"file_id": "file_1"}, f"Uploaded files are not kept here: {INSTEAD}"),
        ({"file_url": "https://x/y.txt"}, f"Remote files are not fetched: {INSTEAD}"),
        (
            {"file_data": data_url(b"a\0b")},
            f"This backend can only be shown PDFs and files of UTF-8 text: {INSTEAD}",
        ),
        ({"file_data": "data:text/plain;base64,aGk=,"}, FILE_WANTED),
        ({"file_data": "text/plain;base64,aGk="}, FILE_WANTED),
    ],
)
def test_what_is_no_file_is_told_what_one_would_be(part: JsonObject, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        parsed({"type": "input_file", **part})
    assert caught.value.message == message


def test_sound_is_refused_by_its_kind() -> None:
    with pytest.raises(RequestError) as caught:
        parsed({"type": "input_audio", "input_audio": {}})
    told = "Content of type 'input_audio' is not supported by this backend: send text or images."
    assert caught.value.message == told
