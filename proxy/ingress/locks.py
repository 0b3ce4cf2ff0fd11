"""One request at a time on a conversation, as at OpenAI: the next one must see what this one appends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import RequestError


class ConversationLocks:
    def __init__(self) -> None:
        self._locked: set[tuple[str, str]] = set()

    @contextmanager
    def lock(self, owner: str, conversation_id: str) -> Iterator[None]:
        """Raises `RequestError` while another request of `owner` has the conversation."""
        name = (owner, conversation_id)
        if name in self._locked:
            raise RequestError(
                "Another process is currently operating on this conversation. Please retry in a few seconds.",
                code="conversation_locked",
                param="conversation",
                retry_after=2,
            )
        self._locked.add(name)
        try:
            yield
        finally:
            self._locked.discard(name)
