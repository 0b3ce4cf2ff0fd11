"""One request at a time on a conversation, as at OpenAI: the next one must see what this one appends.

free -> taken    here, and by a claim in the store that every process sees; it is renewed while the request runs
taken -> free    before the last event of an answer leaves, or when its request is over
                 soon after the heartbeats of its process stop
                 if another process continues the work: when that is over, or `LEASE` after nobody continues it
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import ceil

import structlog
from structlog.typing import FilteringBoundLogger

from ..contracts import Claim, ResponseStore
from ..errors import RequestError, StoreError

# Seconds that a claim holds without another sign, and seconds between two signs.
LEASE = 30.0
RENEWAL = 10.0

# So many signs of life are given in the time for which one counts.
SIGNS = 5

# Seconds after which is to be asked again for a conversation that this process has itself.
STILL = 2.0

log: FilteringBoundLogger = structlog.get_logger(__name__)


class ConversationLocks:
    """The conversations that requests of this process have. Made by `conversation_locks`.

    `life` is how many seconds a sign of life of this process counts.
    """

    def __init__(self, store: ResponseStore, group: asyncio.TaskGroup, life: float) -> None:
        self._store = store
        self._group = group
        self._life = life
        self._process = secrets.token_hex(8)
        self._last_sign = float("-inf")
        self._held: dict[tuple[str, str], Claim] = {}
        self._going: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def take(self, owner: str, conversation_id: str, *, outlives: bool = False, request: str = "") -> Claim:
        """To be given back with `let_go` or `release`. `outlives`: should this process go, another one `adopt`s it.
        `request` is what the balancer calls it.

        Raises `RequestError` while another request of `owner` has the conversation, `StoreError` when nobody knows.
        """
        name = (owner, conversation_id)
        if name in self._held:
            raise _locked()
        process = "" if outlives else self._process
        self._held[name] = claim = Claim(conversation_id, owner, secrets.token_hex(8), process, request)
        try:
            if name in self._going:
                await asyncio.wait([self._going[name]])
            if not outlives and self._needs_sign:
                await self._sign()
            taken = await self._store.claim(claim, LEASE)
        except BaseException:
            self.let_go(claim)  # whether it was written is not known
            raise
        if not taken:
            del self._held[name]
            raise _locked(await self._store.claimed_for(claim))
        return claim

    @property
    def _needs_sign(self) -> bool:
        return asyncio.get_running_loop().time() >= self._last_sign + self._life / SIGNS

    async def _sign(self) -> None:
        now = asyncio.get_running_loop().time()
        await self._store.sign(self._process, self._life)
        self._last_sign = now

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

    async def give_signs(self) -> None:
        """Says that this process lives, as long as it runs and has a conversation."""
        while True:
            await asyncio.sleep(self._life / SIGNS)
            if any(claim.process for claim in self._held.values()):
                try:
                    await self._sign()
                except StoreError as error:
                    log.warning("sign_of_life_not_given", conversations=len(self._held), error=error.message)

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


def lock_lost() -> RequestError:
    """For a request whose claim has ended: nobody knows whether another one has had its conversation since."""
    return RequestError(
        "This server was held up, or its store was away, and another request may have had the conversation meanwhile. "
        "Nothing of this answer was kept: please ask again.",
        code="conversation_locked",
        param="conversation",
        retry_after=1,
    )


def _locked(seconds: float = STILL) -> RequestError:
    """`seconds` after which it is free, if who has it gives no more signs of life."""
    return RequestError(
        "Another process is currently operating on this conversation. Please retry in a few seconds.",
        code="conversation_locked",
        param="conversation",
        retry_after=ceil(seconds),
    )


@asynccontextmanager
async def conversation_locks(store: ResponseStore, life: float) -> AsyncIterator[ConversationLocks]:
    """Locks as long as the context is open; leaving it frees what is still taken. `life` as there."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        locks = ConversationLocks(store, group, life)
        renewing = [
            group.create_task(locks.renew_leases(), name="leases of conversations"),
            group.create_task(locks.give_signs(), name="signs of life"),
        ]
        try:
            yield locks
        except Exception as error:  # noqa: BLE001 -- raised below: the group would wrap it
            failure = error
        finally:
            for task in renewing:
                task.cancel()
            locks.let_all_go()
    if failure is not None:
        raise failure
