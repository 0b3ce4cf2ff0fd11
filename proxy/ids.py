"""What the id of a call may be, and the ids we mint: OpenAI's prefixes, 128 random bits."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

# Whoever wrote it: it stands in the prompt.
CALL_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")

MintId = Callable[[str], str]


def mint_id(prefix: str) -> str:
    """`mint_id("fc")` is `fc_` and 32 hexadecimal digits."""
    return f"{prefix}_{secrets.token_hex(16)}"
