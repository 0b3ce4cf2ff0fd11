"""Files that come inside a request: text is shown to the model as text, anything else is refused."""

from __future__ import annotations

from base64 import b64decode

from prompts import Text

from ..errors import RequestError
from .reader import Reader


def parse_file(part: Reader) -> Text:
    """The text of an `input_file` part, or of Chat's `file` part. Raises `RequestError`."""
    part = part.object("file") or part
    for key, why in (("file_id", "Uploaded files are not kept here"), ("file_url", "Remote files are not fetched")):
        if part.get(key) is not None:
            raise _unsupported(part.at(key), why)
    data = part.required_string("file_data")
    name = part.string("filename")
    head, comma, payload = data.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        raise _not_a_data_url(part)
    try:
        text = b64decode(payload, validate=True).decode()
    except UnicodeDecodeError:
        text = "\0"
    except ValueError:
        raise _not_a_data_url(part) from None
    if "\0" in text or head.startswith("data:application/pdf"):
        raise _unsupported(part.at("file_data"), "Only files of UTF-8 text can be shown to this backend")
    return Text(f"File '{name}':\n{text}" if name else text)


def _unsupported(param: str, why: str) -> RequestError:
    return RequestError(
        f"{why}: send the file's text, in 'file_data' or as an 'input_text' part.",
        code="unsupported_value",
        param=param,
    )


def _not_a_data_url(part: Reader) -> RequestError:
    return RequestError(
        f"Invalid '{part.at('file_data')}'. Expected a base64-encoded data URL (e.g. 'data:text/plain;base64,aGk=').",
        code="invalid_value",
        param=part.at("file_data"),
    )
