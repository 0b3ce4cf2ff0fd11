"""Responses and conversations as keys and values: one store over every `KeyValue`.

    response:<id>        a Response          events:<id>          its event stream
    history:<id>, tail:<owner>:<digest>      the items of inputs that begin alike (`histories`)
    lease:<id>           the token of the run that makes it      request:<id>   its request, so that others can go on
    told:<id>            somebody was told of its output
    claim:<owner>:<id>   the token that has the conversation to itself, and its process; or which request was answered
    alive:<process>      there as long as the process lives
    item:<owner>:<id>    the newest Response in which an item stands
    made:<owner>:<id>    the Response whose output it is
    conversation:<id>    a conversation, its items as the list

A record that cannot be read counts as missing, because waiting would not bring it back.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Self

import orjson
import structlog
from msgspec.structs import asdict, replace
from structlog.typing import FilteringBoundLogger

from ..contracts import Claim, Journal, Run, StoredConversation, StoredRequest, StoredResponse, WireObject
from .histories import Histories, Reference
from .journal import OwnJournal
from .key_value import HEAD, MOMENT, NOTHING, Append, Change, Drop, KeyValue, Put, Take
from .records import StoredJson, decode, encode, pack, unpack

# Seconds that a Response is kept, and a conversation after its last addition, unless the owner says otherwise.
# OpenAI keeps them for 30 days.
TTL = 30 * 24 * 3600.0

# The only ids that become part of a key. Ours are shorter, those of other servers may be longer.
ID = re.compile(r"[\x21-\x7e]{1,256}")

# The newest items of a Response that can be referred to by id. Older ones are a history that was sent again.
MAX_INDEXED = 1_000

# Attempts to delete a Response while others join its history. After these its items stay until their time is over.
ATTEMPTS = 5

log: FilteringBoundLogger = structlog.get_logger(__name__)


class KeyedStore:
    """A `ResponseStore` over `keys`."""

    def __init__(self, keys: KeyValue, journal: Journal | None = None, *, keeps: bool = True, ttl: float = TTL) -> None:
        self._keys = keys
        self._ttl = ttl
        self._histories = Histories(keys, ttl)
        self.journal = journal or OwnJournal(keys)
        self.keeps = keeps

    async def __aenter__(self) -> Self:
        await self._keys.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._keys.__aexit__(*exc)

    @property
    def up(self) -> bool:
        return self._keys.up

    # Responses

    async def save(
        self,
        stored: StoredResponse,
        *,
        append_to: str | None = None,
        events: bytes | None = None,
        lease: Run | None = None,
        request: StoredRequest | None = None,
        leased_by: Run | None = None,
        claim: Claim | None = None,
    ) -> bool:
        changes: list[Change] = []
        items = [*stored.input, *stored.output]
        ids = [identifier for item in items if (identifier := _item_id(item)) is not None]
        mark = stored.id.encode()
        changes += [Put(f"item:{stored.owner}:{identifier}", mark, self._ttl) for identifier in ids[-MAX_INDEXED:]]
        changes += [
            Put(f"made:{stored.owner}:{made}", mark, self._ttl) for made in filter(None, map(_item_id, stored.output))
        ]
        if events is not None:
            changes.append(Put(f"events:{stored.id}", await asyncio.to_thread(pack, events), self._ttl))
        changes += _unleased(stored.id) if lease is None else [Put(_lease(lease), lease.token.encode(), self._hold)]
        if request is not None:
            record = await asyncio.to_thread(pack, orjson.dumps(_request_record(request)))
            changes.append(Put(f"request:{stored.id}", record, self._hold))
        expect = {} if leased_by is None else {_lease(leased_by): leased_by.token.encode()}
        if append_to is not None and await self.load_conversation(append_to, stored.owner) is not None:
            joined = [self._record_of(stored), *changes, self._appended(append_to, items), *_answered(claim)]
            claimed = {**expect, **_as_claimed(claim)}
            if await self._keys.commit(joined, require=[f"conversation:{append_to}"], expect=claimed):
                return True
            if claim is not None and await self._keys.read(_claim_key(claim)) != _claim_value(claim):
                return False
        elif (step := await self._histories.join(stored)) is not None:
            shared = [self._record_of(stored, step.reference), *step.changes, *changes]
            if await self._keys.commit(shared, expect={**expect, **step.expect}):
                return True
        # The conversation may have been deleted meanwhile, or its history gone on. The Response is kept all the same.
        return await self._keys.commit([self._record_of(stored), *changes], expect=expect)

    def _record_of(self, stored: StoredResponse, reference: Reference | None = None) -> Put:
        return Put(f"response:{stored.id}", encode(_response_record(stored, reference)), self._ttl)

    def _appended(self, conversation_id: str, items: Sequence[WireObject]) -> Append:
        return Append(f"conversation:{conversation_id}", tuple(map(encode, items)), self._ttl)

    @property
    def _hold(self) -> float:
        return self.journal.hold

    async def lease_of(self, response_id: str) -> Run | None:
        token = await self._keys.read(f"lease:{response_id}") if _is_id(response_id) else None
        return None if token is None else Run(response_id, token.decode("ascii", "replace"))

    async def load_request(self, response_id: str) -> StoredRequest | None:
        packed = await self._keys.read(f"request:{response_id}") if _is_id(response_id) else None
        written = None if packed is None else await asyncio.to_thread(unpack, packed)
        match None if written is None else orjson.loads(written):
            case {"owner": str(owner), "body": str(body), "claim": [str(conversation), str(token)]}:
                return StoredRequest(owner, body.encode(), Claim(conversation, owner, token))
            case {"owner": str(owner), "body": str(body)}:
                return StoredRequest(owner, body.encode(), None)
            case _:
                return None

    async def tell(self, run: Run) -> bool:
        return await self._keys.commit(
            [Put(f"told:{run.response_id}", b"1", self._hold)], expect={_lease(run): run.token.encode()}
        )

    async def take_over(self, run: Run, by: Run) -> bool:
        expect = {_lease(run): run.token.encode(), f"told:{run.response_id}": None}
        return await self._keys.commit([Put(_lease(by), by.token.encode(), self._hold)], expect=expect)

    async def load(self, response_id: str, owner: str) -> StoredResponse | None:
        record = await self._record(f"response:{response_id}", response_id, owner)
        if record is None or (items := await self._input(record)) is None:
            return None
        match record:
            case {
                "previous": str() | None as previous,
                "created_at": int(created_at),
                "response": dict(response),
            } if _is_response(response, response_id):
                return StoredResponse(response_id, previous, owner, created_at, items, response)
            case _:
                return None

    async def _input(self, record: Mapping[str, StoredJson]) -> tuple[WireObject, ...] | None:
        """The items of a Response's record; None if not all of them are there."""
        if (reference := _reference(record)) is not None:
            return await self._histories.items(reference)
        match record.get("input"):
            case list(items) if _are_objects(items):
                return tuple(item for item in items if isinstance(item, dict))
            case _:
                return None

    async def load_events(self, response_id: str, owner: str) -> bytes | None:
        if await self._record(f"response:{response_id}", response_id, owner) is None:
            return None
        packed = await self._keys.read(f"events:{response_id}")
        return None if packed is None else await asyncio.to_thread(unpack, packed)

    async def delete(self, response_id: str, owner: str) -> bool:
        key = f"response:{response_id}"
        dropped = [Drop(key), Drop(f"events:{response_id}"), *_unleased(response_id)]
        for _ in range(ATTEMPTS):
            if (record := await self._record(key, response_id, owner)) is None:
                return False
            if (reference := _reference(record)) is None:
                break
            step = await self._histories.leave(reference, response_id, owner)
            if await self._keys.commit([*dropped, *step.changes], require=[key], expect=step.expect):
                return True
        return await self._keys.commit(dropped, require=[key])

    async def find_items(self, item_ids: Sequence[str], owner: str) -> dict[str, WireObject]:
        found: dict[str, WireObject] = {}
        # Each Response is read once, and the newest one holds most items of a conversation. If it was deleted, an item
        # that it only referred to still stands in the Response that made it.
        for index in ("item", "made"):
            places: defaultdict[str, set[str]] = defaultdict(set)
            for item_id in filter(_is_id, dict.fromkeys(item_ids)):
                if item_id in found:
                    continue
                if (place := await self._keys.read(f"{index}:{owner}:{item_id}")) is not None:
                    places[place.decode("ascii", "replace")].add(item_id)
            for response_id, wanted in places.items():
                stored = await self.load(response_id, owner)
                for item in () if stored is None else (*stored.input, *stored.output):
                    if (identifier := _item_id(item)) in wanted:
                        found.setdefault(str(identifier), item)
        return found

    # Conversations

    async def sign(self, process: str, seconds: float) -> None:
        await self._keys.commit([Put(_alive(process), b"1", seconds)])

    async def claim(self, claim: Claim, lease: float, *, instead_of: Sequence[str] = ()) -> bool:
        change = Put(_claim_key(claim), _claim_value(claim), lease)
        if await self._claimed(claim, None, change):
            return True
        if (value := await self._keys.read(_claim_key(claim))) is None:
            return await self._claimed(claim, None, change)
        if value == _answer_mark(claim):
            return False
        token, _, process = value.decode("ascii", "replace").partition(" ")
        if token in instead_of:
            return await self._claimed(claim, value, change)
        return process != "" and await self._claimed(claim, value, change, {_alive(process): None})

    async def renew_claim(self, claim: Claim, lease: float) -> bool:
        value = _claim_value(claim)
        return await self._claimed(claim, value, Put(_claim_key(claim), value, lease))

    async def release(self, claim: Claim) -> None:
        await self._claimed(claim, _claim_value(claim), Drop(_claim_key(claim)))

    async def claimed_for(self, claim: Claim) -> float:
        if not _is_id(claim.conversation_id):
            return 0.0
        value = await self._keys.read(_claim_key(claim)) or b""
        _, _, process = value.decode("ascii", "replace").partition(" ")
        return await self._keys.left(_alive(process) if process else _claim_key(claim))

    async def _claimed(
        self, claim: Claim, value: bytes | None, change: Change, expect: Mapping[str, bytes | None] = NOTHING
    ) -> bool:
        """Makes the change if the claim has this `value`. An id of a wrong form names nothing, so nothing is locked."""
        expect = {_claim_key(claim): value, **expect}
        return not _is_id(claim.conversation_id) or await self._keys.commit([change], expect=expect)

    async def save_conversation(self, conversation: StoredConversation, items: Sequence[WireObject] = ()) -> None:
        key = f"conversation:{conversation.id}"
        begun = Put(key, encode({**asdict(conversation), "headed": True}), self._ttl)
        await self._keys.commit([begun, Append(key, (HEAD, *map(encode, items)), self._ttl)])

    async def load_conversation(self, conversation_id: str, owner: str) -> StoredConversation | None:
        return (await self._conversation(conversation_id, owner))[0]

    async def _conversation(self, conversation_id: str, owner: str) -> tuple[StoredConversation | None, bool]:
        """A conversation, and whether its list begins with a head. Lists that older versions wrote do not."""
        match await self._record(f"conversation:{conversation_id}", conversation_id, owner):
            case {"created_at": int(created_at), "metadata": dict(metadata), **more}:
                return StoredConversation(conversation_id, owner, created_at, metadata), more.get("headed") is True
            case _:
                return None, False

    async def update_conversation(
        self, conversation_id: str, owner: str, metadata: WireObject
    ) -> StoredConversation | None:
        conversation, headed = await self._conversation(conversation_id, owner)
        if conversation is None:
            return None
        conversation = replace(conversation, metadata=metadata)
        key = f"conversation:{conversation_id}"
        record = encode({**asdict(conversation), "headed": headed})
        written = await self._keys.commit([Put(key, record, self._ttl)], require=[key])
        return conversation if written else None

    async def delete_conversation(self, conversation_id: str, owner: str) -> bool:
        key = f"conversation:{conversation_id}"
        if await self.load_conversation(conversation_id, owner) is None:
            return False
        return await self._keys.commit([Drop(key)], require=[key])

    async def items(self, conversation_id: str, owner: str) -> tuple[WireObject, ...] | None:
        listed = await self._list(conversation_id, owner)
        return None if listed is None else tuple(item for _, item in listed)

    async def add_items(
        self, conversation_id: str, owner: str, items: Sequence[WireObject], *, claim: Claim | None = None
    ) -> bool:
        if await self.load_conversation(conversation_id, owner) is None:
            return False
        changes = [*([self._appended(conversation_id, items)] if items else []), *_answered(claim)]
        key = f"conversation:{conversation_id}"
        return await self._keys.commit(changes, require=[key], expect=_as_claimed(claim))

    async def delete_item(self, conversation_id: str, item_id: str, owner: str) -> bool:
        for written, item in await self._list(conversation_id, owner) or ():
            if item.get("id") == item_id:
                key = f"conversation:{conversation_id}"
                return await self._keys.commit([Take(key, written)], require=[key])
        return False

    # Records

    async def _record(self, key: str, identifier: str, owner: str) -> dict[str, StoredJson] | None:
        """The record of a key, if it is there, can be read and is `owner`'s."""
        if not _is_id(identifier) or (written := await self._keys.read(key)) is None:
            return None
        record = decode(written)
        if record is None:
            log.warning("record_unreadable", kind=key.partition(":")[0])
            return None
        return record if record.get("owner") == owner else None

    async def _list(self, conversation_id: str, owner: str) -> list[tuple[bytes, WireObject]] | None:
        """The readable items of a conversation, each with its bytes; None if any part of it is missing."""
        conversation, headed = await self._conversation(conversation_id, owner)
        if conversation is None:
            return None
        written = await self._keys.values(f"conversation:{conversation_id}")
        if headed and written[:1] != [HEAD]:
            log.warning("record_unreadable", kind="items")
            return None
        return [(value, item) for value in written if (item := decode(value)) is not None]


def _is_id(identifier: str) -> bool:
    return ID.fullmatch(identifier) is not None


def _lease(run: Run) -> str:
    return f"lease:{run.response_id}"


def _unleased(response_id: str) -> list[Change]:
    """Drops the records that were only there while somebody worked on it."""
    return [Drop(f"{kind}:{response_id}") for kind in ("lease", "request", "told")]


def _request_record(request: StoredRequest) -> WireObject:
    claim = request.claim and [request.claim.conversation_id, request.claim.token]
    return {"owner": request.owner, "body": request.body.decode(), "claim": claim}


def _claim_key(claim: Claim) -> str:
    return f"claim:{claim.owner}:{claim.conversation_id}"


def _claim_value(claim: Claim) -> bytes:
    return " ".join(filter(None, (claim.token, claim.process))).encode()


def _as_claimed(claim: Claim | None) -> Mapping[str, bytes | None]:
    """The record that stands in the store as long as a claim holds."""
    return NOTHING if claim is None else {_claim_key(claim): _claim_value(claim)}


def _answered(claim: Claim | None) -> list[Change]:
    """The end of a claim whose request was answered. A mark stays for a moment: if the process ends before the answer
    has left, a balancer asks the next one, and the mark says there that the request was answered.
    """
    if claim is None:
        return []
    key = _claim_key(claim)
    return [Put(key, _answer_mark(claim), MOMENT) if claim.request else Drop(key)]


def _answer_mark(claim: Claim) -> bytes:
    """The value of that mark. Any other request takes it for the claim of a process that is gone."""
    return f"answered {claim.request}".encode()


def _alive(process: str) -> str:
    return f"alive:{process}"


def _item_id(item: WireObject) -> str | None:
    identifier = item.get("id")
    return identifier if isinstance(identifier, str) and _is_id(identifier) else None


def _are_objects(values: list[StoredJson]) -> bool:
    return all(isinstance(value, dict) for value in values)


def _is_response(value: dict[str, StoredJson], response_id: str) -> bool:
    match value:
        case {"id": str(identifier), "status": str(), "output": list(output)}:
            return identifier == response_id and _are_objects(output)
        case _:
            return False


def _response_record(stored: StoredResponse, reference: Reference | None) -> WireObject:
    """With a reference `input` is missing, not empty: versions that know no histories then find no Response."""
    return {
        "owner": stored.owner,
        "previous": stored.previous,
        "created_at": stored.created_at,
        **({"input": stored.input} if reference is None else {"history": asdict(reference)}),
        "response": stored.response,
    }


def _reference(record: Mapping[str, StoredJson]) -> Reference | None:
    match record:
        case {"history": {"history": str(history), "count": int(count)}}:
            return Reference(history, count)
        case _:
            return None
