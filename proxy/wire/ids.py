"""The ids we mint: OpenAI's prefixes, 128 random bits."""

from __future__ import annotations

import secrets
from collections.abc import Callable

MintId = Callable[[str], str]


def mint_id(prefix: str) -> str:
    """`mint_id("fc")` is `fc_` and 32 hexadecimal digits."""
    return f"{prefix}_{secrets.token_hex(16)}"
