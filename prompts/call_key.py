"""The call key as others see it: its length, and what stands in its place where nobody but the model may see it."""

from __future__ import annotations

# Characters of a key: a digit, since prose has few, and small letters, of which a token holds more than of digits. Each
# call costs 11 tokens for it with Qwen2.5's tokens, where 16 hexadecimal digits took 19; it is one of 5e13.
KEY_LENGTH = 10

# What is written instead of a key, in all that leaves. Nothing in it can end a JSON string.
MASK = "[call key]"
