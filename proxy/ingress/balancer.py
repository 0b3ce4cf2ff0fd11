"""What tagcall tells a balancer in front of several servers: which requests another server should answer.
And what the balancer tells tagcall: the tag that keeps a conversation together, and which request it sends once more.

Each such answer has the header `ELSEWHERE`. nginx judges an answer by its status alone. With trouble that all servers
share, it would take each of them away. So nginx asks with that header, which names its location for a second try, and
the answer sends it there (`X-Accel-Redirect`). That name is always the same, so no client can choose among the owner's
locations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import ELSEWHERE
from ..ids import TAG

# The header of a request with the tag that the ids of its answer are to have.
CHAIN = "x-tagcall-chain"

# The header of a request with its name, which is the same wherever the balancer sends it.
REQUEST = "x-tagcall-request"
_NAME = re.compile(r"[0-9a-f]{32}")

# nginx's location for a second try.
LOCATION = "@elsewhere"

# As it stands in the head of a request.
ASKED = f"{ELSEWHERE}: {LOCATION}\r\n".encode()


def chain_of(headers: Mapping[str, str]) -> str:
    """The tag that was chosen for a request's conversation, "" for none."""
    tag = headers.get(CHAIN, "")
    return tag if TAG.fullmatch(tag) else ""


def request_of(headers: Mapping[str, str]) -> str:
    """What the balancer calls a request, "" for nothing."""
    name = headers.get(REQUEST, "")
    return name if _NAME.fullmatch(name) else ""


def second_try(answer: Mapping[str, str], *, asked: bool) -> dict[str, str]:
    """The header that sends nginx on from an answer with these headers, where it has asked and it is worth it."""
    return {"X-Accel-Redirect": LOCATION} if asked and ELSEWHERE in answer else {}


def asks(headers: Mapping[str, str]) -> bool:
    """Whether a request with these headers may be sent on."""
    return headers.get(ELSEWHERE) == LOCATION


def asks_in(head: bytes) -> bool:
    """Whether a request whose head begins so may be sent on."""
    return ASKED in head.lower()
