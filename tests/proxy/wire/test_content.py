"""Content in the words of either API."""

from __future__ import annotations

import pytest

from prompts import Image, Part, Text
from proxy.errors import RequestError
from proxy.wire.content import joined_text, parse_parts
from proxy.wire.json_body import JsonValue
from proxy.wire.reader import Reader

PNG = "data:image/png;base64,iVBORw0KGgo="


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
    ],
)
def test_a_part_that_cannot_be_shown_is_refused_by_its_path(part: dict[str, JsonValue], param: str, code: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_parts(Reader({"content": [part]}), "content")
    assert (caught.value.status, caught.value.param, caught.value.code) == (400, param, code)


def test_texts_are_joined_as_lines() -> None:
    assert joined_text([Text("a"), Image(PNG), Text("b")]) == "a\nb"
