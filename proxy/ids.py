"""What the id of a call may be, and the ids we mint: OpenAI's prefixes, 128 random bits."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from hashlib import blake2b

# As it stands in the prompt, whoever wrote it.
CALL_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")

MintId = Callable[[str], str]


def shown_id(given: str) -> str:
    """What stands in the prompt for the id of a client's call: itself, or the same digest in each request.

    Conversations move here from other servers, whose ids have pipes and line ends in them, or whole signatures.
    """
    return given if CALL_ID.fullmatch(given) else f"call_{blake2b(given.encode(), digest_size=16).hexdigest()}"


def mint_id(prefix: str) -> str:
    """`mint_id("fc")` is `fc_` and 32 hexadecimal digits."""
    return f"{prefix}_{secrets.token_hex(16)}"
