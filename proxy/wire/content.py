"""Content of messages and tool results: a string or parts, in the words of either API."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable

from prompts import Image, Part, Text

from ..errors import RequestError
from .files import parse_file
from .reader import Reader, missing, shown, wrong_type, wrong_value

PART_KINDS = ("input_text", "input_image", "input_file", "output_text", "refusal", "text", "image_url", "file")


def _image(part: Reader) -> Image:
    if part.get("image_url") is None:
        if part.get("file_id") is not None:
            raise RequestError(
                "Images by 'file_id' are not supported: send the image as a data URL in 'image_url'.",
                code="unsupported_value",
                param=part.at("file_id"),
            )
        raise missing(part.at("image_url"))
    nested = part.get("image_url")
    if isinstance(nested, dict):  # Chat's shape
        part = Reader(nested, part.at("image_url"))
        url, param = part.required_string("url"), part.at("url")
    else:
        url, param = part.required_string("image_url"), part.at("image_url")
    if not url.startswith("data:"):
        raise RequestError(
            "Remote images are not fetched: send the image as a data URL ('data:image/png;base64,...').",
            code="invalid_image_url",
            param=param,
        )
    if (fault := _image_fault(url)) is not None:
        raise RequestError(
            f"Invalid '{param}'. Expected a base64-encoded data URL with an image MIME type (e.g. "
            f"'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got {fault}.",
            code="invalid_value",
            param=param,
        )
    return Image(url)


def _image_fault(url: str) -> str | None:
    """What keeps a data URL from being an image. The backend would leave it out without a word."""
    head, _, payload = url.partition(",")
    if not head.startswith("data:image/"):
        return f"unsupported MIME type '{shown(head[5:].partition(';')[0])}'"
    if not head.endswith(";base64"):
        return "a value without ';base64,'"
    try:
        decoded = b64decode(payload, validate=True)
    except ValueError:
        return "a value that is not base64"
    return None if decoded else "empty base64-encoded bytes"


def _part(part: Reader) -> Part:
    kind = part.required_string("type")
    match kind:
        case "input_text" | "output_text" | "text":
            part.require("text")
            return Text(part.string("text") or "")
        case "refusal":
            part.require("refusal")
            return Text(part.string("refusal") or "")
        case "input_image" | "image_url":
            return _image(part)
        case "input_file" | "file":
            return parse_file(part)
        case "input_audio":
            raise RequestError(
                f"Content of type '{kind}' is not supported by this backend: send text or images.",
                code="unsupported_value",
                param=part.at("type"),
            )
        case _:
            raise wrong_value(part.at("type"), kind, PART_KINDS)


def parse_parts(item: Reader, key: str) -> tuple[Part, ...]:
    """A string or an array of content parts; empty content is no part."""
    value = item.get(key)
    match value:
        case None:
            return ()
        case str():
            return (Text(value),) if value else ()
        case list():
            return tuple(_part(part) for part in item.objects(key))
        case _:
            raise wrong_type(item.at(key), "a string or an array of content parts", value)


def joined_text(parts: Iterable[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))
