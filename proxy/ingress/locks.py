"""One request at a time on a conversation, as at OpenAI: the next one must see what this one appends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import RequestError


class Claims:
    def __init__(self) -> None:
        self._claimed: set[tuple[str, str]] = set()

    @contextmanager
    def claim(self, owner: str, conversation_id: str) -> Iterator[None]:
        """Raises `RequestError` while another request of `owner` has the conversation."""
        name = (owner, conversation_id)
        if name in self._claimed:
            raise RequestError(
                "Another process is currently operating on this conversation. Please retry in a few seconds.",
                code="conversation_locked",
                param="conversation",
                retry_after=2,
            )
        self._claimed.add(name)
        try:
            yield
        finally:
            self._claimed.discard(name)
