"""The key of a turn's calls. A fixture has a placeholder for it, because each installation has another key."""

from __future__ import annotations

import re

# As it is masked in what leaves, too, so that it stands for the key wherever a fixture shows one.
PLACEHOLDER = "[call key]"

# As a call is written in the developer text. What others wrote there has no such tag.
_SHOWN = re.compile(r'<tool_call>\{"key": "([0-9a-z]+)", "name"')


def key_of(developer: str | None) -> str | None:
    """The key that a developer text tells the model to write, None where it tells none."""
    found = _SHOWN.search(developer or "")
    return found[1] if found else None


def with_key(value: object, key: str) -> object:
    """A copy of a JSON value with `key` for every placeholder in it."""
    match value:
        case str():
            return value.replace(PLACEHOLDER, key)
        case dict():
            return {name: with_key(inner, key) for name, inner in value.items()}
        case list():
            return [with_key(inner, key) for inner in value]
        case _:
            return value


def without_key(text: str, key: str | None) -> str:
    """`text` with the placeholder for `key`."""
    return text if key is None else text.replace(key, PLACEHOLDER)
