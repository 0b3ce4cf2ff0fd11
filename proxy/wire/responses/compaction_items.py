"""Compaction items: a summary in place of the items before it, in the member that OpenAI encrypts.

Ours is base64 of a JSON object with a mark. It is neither secret nor signed. So what comes back may be anybody's text,
and the model is shown it as such. Compaction items of other servers cannot be read.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping

import orjson
from msgspec import Struct

from ...contracts import WireObject
from ...ids import MintId, mint_id
from ..json_body import JsonObject

# The member that holds the summary, by which we know what is ours.
MARK = "tagcall.summary.1"


class Summary(Struct, frozen=True):
    """`whole`: it stands for the user's older messages too, which the client may send or leave out."""

    text: str
    whole: bool = False


def write_summary(summary: Summary) -> str:
    """`encrypted_content` of a compaction item."""
    whole: dict[str, object] = {"whole": True} if summary.whole else {}
    return b64encode(orjson.dumps({MARK: summary.text, **whole})).decode()


def read_summary(content: str | None) -> Summary | None:
    """What `write_summary` was given, or None for content that is not ours."""
    try:
        value: object = orjson.loads(b64decode(content or "", validate=True))
    except (Base64Error, ValueError):
        return None
    if not isinstance(value, dict) or not isinstance(text := value.get(MARK), str) or not text.strip():
        return None
    return Summary(text, value.get("whole") is True)


def kept_messages(items: Iterable[WireObject]) -> list[WireObject]:
    """Those of stored `items` that a compaction keeps as they are: the user's messages."""
    return [item for item in items if item.get("type") == "message" and item.get("role") == "user"]


def compaction_item(summary: Summary, mint: MintId = mint_id) -> JsonObject:
    return {"id": mint("cmp"), "type": "compaction", "encrypted_content": write_summary(summary)}


def compaction_body(
    response_id: str, output: Iterable[WireObject], usage: Mapping[str, object], created_at: int
) -> dict[str, object]:
    """The answer to POST /v1/responses/compact."""
    return {
        "id": response_id,
        "object": "response.compaction",
        "created_at": created_at,
        "output": list(output),
        "usage": usage,
    }
