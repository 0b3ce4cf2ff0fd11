"""How many requests of a conversation the provider could read from its cache."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .scripted_model import SeenRequest


def continued(requests: Iterable[SeenRequest]) -> int:
    """The requests that begin with all that the last one with their `prompt_cache_key` held, item for item."""
    held: dict[str, list[Any]] = {}
    count = 0
    for request in requests:
        key, shown = request.body.get("prompt_cache_key", ""), request.body["input"]
        before = held.get(key, [])
        count += bool(before) and shown[: len(before)] == before
        held[key] = shown
    return count
