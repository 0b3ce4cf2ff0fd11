"""What the id of a call may be, and the ids that tagcall makes: OpenAI's prefixes, 128 random bits.

The first bits may be a tag that all ids of a conversation share, so that a balancer can keep the conversation together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from hashlib import blake2b

# As it stands in the prompt, whoever wrote it.
CALL_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")

# A tag, and an id with one.
TAG = re.compile(r"[0-9a-f]{8}")
_MINTED = re.compile(rf"[a-z]+_({TAG.pattern})[0-9a-f]{{24}}")

MintId = Callable[[str], str]


def shown_id(given: str) -> str:
    """What stands in the prompt for the id of a client's call: itself, or the same digest in each request.

    Conversations move here from other servers, whose ids have pipes and line ends in them, or whole signatures.
    """
    return given if CALL_ID.fullmatch(given) else f"call_{blake2b(given.encode(), digest_size=16).hexdigest()}"


def mint_id(prefix: str, tag: str = "") -> str:
    """`mint_id("fc")` is `fc_` and 32 hexadecimal digits, the first of which are `tag`."""
    return f"{prefix}_{tag}{os.urandom(16).hex()[len(tag) :]}"


def tag_of(identifier: str) -> str:
    """The tag of an id that we minted, "" for any other."""
    found = _MINTED.fullmatch(identifier)
    return found[1] if found else ""
