"""The call key as others see it: its length, and what stands in its place where nobody but the model may see it."""

from __future__ import annotations

# Characters of a key: hexadecimal digits, the first of them decimal, since prose has few of those.
KEY_LENGTH = 16

# What is written instead of a key, in all that leaves. Nothing in it can end a JSON string.
MASK = "[call key]"
