"""One request at a time on a conversation, as at OpenAI: the next one must see what this one appends.

free -> taken    here, and by a claim in the store that every process sees; it is renewed while the request runs
taken -> free    before the last event of an answer leaves, or when its request is over
                 `LEASE` after its process has gone
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import structlog
from structlog.typing import FilteringBoundLogger

from ..contracts import Claim, ResponseStore
from ..errors import RequestError, StoreError

# Seconds that a claim holds without another sign, and seconds between two signs.
LEASE = 30.0
RENEWAL = 10.0

log: FilteringBoundLogger = structlog.get_logger(__name__)


class ConversationLocks:
    """The conversations that requests of this process have. Made by `conversation_locks`."""

    def __init__(self, store: ResponseStore, group: asyncio.TaskGroup) -> None:
        self._store = store
        self._group = group
        self._held: dict[tuple[str, str], Claim] = {}
        self._going: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def take(self, owner: str, conversation_id: str) -> Claim:
        """To be given back with `let_go` or `release`.

        Raises `RequestError` while another request of `owner` has the conversation, `StoreError` when nobody knows.
        """
        name = (owner, conversation_id)
        if name in self._held:
            raise _locked()
        self._held[name] = claim = Claim(conversation_id, owner, secrets.token_hex(8))
        try:
            if name in self._going:
                await asyncio.wait([self._going[name]])
            taken = await self._store.claim(claim, LEASE)
        except BaseException:
            self.let_go(claim)  # whether it was written is not known
            raise
        if not taken:
            del self._held[name]
            raise _locked()
        return claim

    async def adopt(self, claim: Claim, tokens: Sequence[str]) -> bool:
        """Takes a conversation for a process that has gone, whose claim had one of these `tokens`.

        False: another request has it now.
        """
        name = (claim.owner, claim.conversation_id)
        if name in self._held:
            return False
        self._held[name] = claim
        try:
            taken = await self._store.claim(claim, LEASE, instead_of=tokens)
        except BaseException:
            del self._held[name]
            raise
        if not taken:
            del self._held[name]
        return taken

    def let_go(self, claim: Claim) -> None:
        """The conversation is free here at once, elsewhere soon. Once is enough, and twice does no harm."""
        name = (claim.owner, claim.conversation_id)
        if self._held.get(name) is claim:
            del self._held[name]
            self._going[name] = self._group.create_task(self._release(claim), name=f"release {claim.conversation_id}")

    async def release(self, claim: Claim) -> None:
        """Lets go; when this returns the conversation is free everywhere, if the store can be written."""
        self.let_go(claim)
        if task := self._going.get((claim.owner, claim.conversation_id)):
            await asyncio.wait([task])

    @asynccontextmanager
    async def lock(self, owner: str, conversation_id: str) -> AsyncIterator[None]:
        claim = await self.take(owner, conversation_id)
        try:
            yield
        finally:
            await self.release(claim)

    async def renew_leases(self) -> None:
        """Says that the requests are being worked on, as long as it runs."""
        while True:
            await asyncio.sleep(RENEWAL)
            # Together: each may wait for the store for a while.
            await asyncio.gather(*map(self._renew, list(self._held.values())))

    async def _renew(self, claim: Claim) -> None:
        try:
            if not await self._store.renew_claim(claim, LEASE):
                log.warning("conversation_lock_lost", conversation=claim.conversation_id)
        except StoreError as error:
            log.warning("lease_not_renewed", conversation=claim.conversation_id, error=error.message)

    def let_all_go(self) -> None:
        for claim in list(self._held.values()):
            self.let_go(claim)

    async def _release(self, claim: Claim) -> None:
        try:
            await self._store.release(claim)
        except StoreError as error:
            log.warning("conversation_not_released", conversation=claim.conversation_id, error=error.message)
        finally:
            name = (claim.owner, claim.conversation_id)
            if self._going.get(name) is asyncio.current_task():
                del self._going[name]


def _locked() -> RequestError:
    return RequestError(
        "Another process is currently operating on this conversation. Please retry in a few seconds.",
        code="conversation_locked",
        param="conversation",
        retry_after=2,
    )


@asynccontextmanager
async def conversation_locks(store: ResponseStore) -> AsyncIterator[ConversationLocks]:
    """Locks as long as the context is open; leaving it frees what is still taken."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        locks = ConversationLocks(store, group)
        renewing = group.create_task(locks.renew_leases(), name="leases of conversations")
        try:
            yield locks
        except Exception as error:  # noqa: BLE001 -- raised below: the group would wrap it
            failure = error
        finally:
            renewing.cancel()
            locks.let_all_go()
    if failure is not None:
        raise failure
