"""Content of messages and tool results: a string, or parts of text, images and files, in the words of either API."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable

from prompts import DETAILS, Image, Part, Text

from ..errors import RequestError
from .pdf import MAGIC, PdfError, pdf_text
from .reader import Reader, missing, shown, wrong_type, wrong_value

# Types of content parts: those of the Responses API, then those of Chat alone.
PART_KINDS = ("input_text", "input_image", "input_file", "output_text", "refusal", "text", "image_url", "file")
IMAGE_KINDS = ("input_image", "image_url")

# What the `detail` of a file may be. It is how its pages would be drawn, and here it is text.
FILE_DETAILS = ("auto", "low", "high")

# Whose messages reach the model as text alone, and what a client is told of images in them.
TEXT_ROLES = ("system", "developer", "assistant")
UNSHOWN_IMAGES = "Images in messages of the system, the developer or the assistant were not shown to the model."


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
    if (fault := image_fault(url)) is not None:
        raise RequestError(
            f"Invalid '{param}'. Expected a base64-encoded data URL with an image MIME type (e.g. "
            f"'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got {fault}.",
            code="invalid_value",
            param=param,
        )
    detail = part.choice("detail", ("auto", *DETAILS))
    return Image(url, detail if detail in DETAILS else None)


def image_fault(url: str) -> str | None:
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


def _file(part: Reader) -> Text:
    """The text of a file that comes inside the request. It is shown as text; other files are refused."""
    part = part.object("file") or part
    part.choice("detail", FILE_DETAILS)
    for key, why in (("file_id", "Uploaded files are not kept here"), ("file_url", "Remote files are not fetched")):
        if part.get(key) is not None:
            raise _unsupported_file(part.at(key), why)
    data = part.required_string("file_data")
    name = part.string("filename")
    head, payload = "", data
    if data.startswith("data:"):
        head, _, payload = data.partition(",")
        if not head.endswith(";base64"):
            raise _not_a_data_url(part)
    try:
        content = b64decode(payload, validate=True)
    except ValueError:
        raise _not_a_data_url(part) from None
    text = _text_of(part, content, head)
    return Text(f"File '{name}':\n{text}" if name else text)


def _text_of(part: Reader, content: bytes, head: str) -> str:
    if content.startswith(MAGIC) or head.startswith("data:application/pdf"):
        try:
            return pdf_text(content)
        except PdfError as error:
            raise _unsupported_file(part.at("file_data"), str(error)) from error
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise _unsupported_file(part.at("file_data"), "This backend can only be shown PDFs and files of UTF-8 text")
    return text


def _unsupported_file(param: str, why: str) -> RequestError:
    return RequestError(
        f"{why}: send the file's text, in 'file_data' or as an 'input_text' part.",
        code="unsupported_value",
        param=param,
    )


def _not_a_data_url(part: Reader) -> RequestError:
    return RequestError(
        f"Invalid '{part.at('file_data')}'. Expected base64, alone or in a data URL ('data:text/plain;base64,aGk=').",
        code="invalid_value",
        param=part.at("file_data"),
    )


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
            return _file(part)
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


def hides_images(message: Reader) -> bool:
    """Whether there are images in a `message` of another than the user, which is text to the model."""
    content = message.get("content")
    if not isinstance(content, list) or message.get("role") not in TEXT_ROLES:
        return False
    return any(isinstance(part, dict) and part.get("type") in IMAGE_KINDS for part in content)
