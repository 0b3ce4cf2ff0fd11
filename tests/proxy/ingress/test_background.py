"""Responses that are made while nobody waits for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import APIError, AsyncOpenAI, BadRequestError, InternalServerError, NotFoundError, RateLimitError
from openai.types.responses import Response, ResponseStreamEvent

from parser import write_call
from proxy.contracts import BackendEvent, TextPiece, TurnEnded
from proxy.errors import BackendError, StoreError
from proxy.ingress.background.jobs import MAX_RUNNING
from proxy.stores import KeyedStore
from tests.support.patience import PATIENCE
from tests.support.talking import TOOLS, GatedBackend, shown, talking

PIECES: list[BackendEvent] = [TextPiece("one "), TextPiece("two "), TextPiece("three"), TurnEnded(None)]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.background.leases.RENEWAL", 0.05)
    monkeypatch.setattr("proxy.ingress.background.jobs.RETRY", 0.02)
    monkeypatch.setattr("proxy.stores.journal.POLL", 0.02)


async def ended(client: AsyncOpenAI, response_id: str) -> Response:
    """The response once it is over, by polling as clients do."""
    async with asyncio.timeout(PATIENCE):
        while True:
            response = await client.responses.retrieve(response_id)
            if response.status not in {"queued", "in_progress"}:
                return response


async def events_of(stream: Any) -> list[ResponseStreamEvent]:
    async with asyncio.timeout(PATIENCE):
        return [event async for event in stream]


async def raw_events(client: AsyncOpenAI, response_id: str, query: str = "") -> list[dict[str, Any]]:
    """As they are: the SDK makes an exception of a failure."""
    url, headers = f"{client.base_url}responses/{response_id}?stream=true{query}", {"Authorization": "Bearer mine"}
    async with (
        asyncio.timeout(PATIENCE),
        aiohttp.ClientSession(headers=headers) as session,
        session.get(url) as response,
    ):
        lines = (await response.text()).split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def numbers(events: Sequence[ResponseStreamEvent]) -> list[int]:
    return [event.sequence_number for event in events]


async def test_a_background_response_is_queued_at_once_and_polled_to_its_end() -> None:
    backend = GatedBackend([PIECES])
    async with talking(backend=backend) as (client, _):
        queued = await client.responses.create(model="m", input="x", background=True, metadata={"a": "b"})
        assert (queued.status, queued.background, queued.output, queued.usage) == ("queued", True, [], None)
        await backend.asked.wait()
        running = await client.responses.retrieve(queued.id)
        assert (running.status, running.metadata) == ("in_progress", {"a": "b"})
        backend.gate.set()
        response = await ended(client, queued.id)
        assert (response.status, response.output_text) == ("completed", "one two three")
        items = await client.responses.input_items.list(queued.id)
        assert [item.type for item in items.data] == ["message"]


async def test_its_stream_begins_with_queued_and_counts_without_gaps() -> None:
    async with talking("Hello") as (client, _):
        events = await events_of(await client.responses.create(model="m", input="x", background=True, stream=True))
    assert [event.type for event in events][:4] == [
        "response.created", "response.queued", "response.in_progress", "response.output_item.added",
    ]  # fmt: skip
    assert [event.response.status for event in events[:3] if hasattr(event, "response")] == [
        "queued", "queued", "in_progress",
    ]  # fmt: skip
    assert events[-1].type == "response.completed"
    assert numbers(events) == list(range(len(events)))


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_its_events_are_there_again_from_any_number_on(store: str, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/r.db" if store == "sqlite" else store
    async with talking(PIECES, store=store) as (client, _):
        first = await events_of(await client.responses.create(model="m", input="x", background=True, stream=True))
        assert first[-1].type == "response.completed"
        response_id = first[-1].response.id
        again = await events_of(await client.responses.retrieve(response_id, stream=True))
        assert [event.to_dict() for event in again] == [event.to_dict() for event in first]
        for after in (0, 5, len(first) - 2, len(first) - 1, 10_000):
            rest = await events_of(await client.responses.retrieve(response_id, stream=True, starting_after=after))
            assert numbers(rest) == list(range(after + 1, len(first)))


@pytest.mark.parametrize(
    ("written", "kind"),
    [("true", "text/event-stream"), ("True", "text/event-stream"), ("1", "text/event-stream"),
     ("false", "application/json"), ("False", "application/json"), ("0", "application/json")],
)  # fmt: skip
async def test_the_events_are_asked_for_as_each_language_writes_it(written: str, kind: str) -> None:
    async with talking("Hello") as (client, _):
        queued = await client.responses.create(model="m", input="x", background=True)
        raw = await client.responses.with_raw_response.retrieve(queued.id, extra_query={"stream": written})
        assert raw.headers["content-type"].startswith(kind)


async def test_who_comes_back_in_the_middle_is_told_the_rest_as_it_comes() -> None:
    backend = GatedBackend([PIECES])
    async with talking(backend=backend) as (client, _):
        stream = await client.responses.create(model="m", input="x", background=True, stream=True)
        seen = []
        async for event in stream:
            seen.append(event)
            if event.type == "response.output_text.delta":
                break
        await stream.close()
        assert seen[0].type == "response.created"
        after = seen[-1].sequence_number
        live = await client.responses.retrieve(seen[0].response.id, stream=True, starting_after=after)
        backend.gate.set()
        rest = await events_of(live)
    assert backend.left_early == 0
    assert numbers([*seen, *rest]) == list(range(len(seen) + len(rest)))
    assert rest[-1].type == "response.completed"
    assert rest[-1].response.output_text == "one two three"


@pytest.mark.parametrize("after", ["x", "-1", "1.5"])
async def test_a_number_that_is_none_is_refused(after: Any) -> None:
    async with talking("Hello") as (client, _):
        queued = await client.responses.create(model="m", input="x", background=True)
        with pytest.raises(BadRequestError, match="starting_after"):
            await client.responses.retrieve(queued.id, stream=True, starting_after=after)


async def test_only_background_responses_are_streamed_again_or_cancelled() -> None:
    async with talking("Hello") as (client, _):
        response = await client.responses.create(model="m", input="x")
        with pytest.raises(BadRequestError, match="Only a background response"):
            await client.responses.retrieve(response.id, stream=True)
        with pytest.raises(BadRequestError, match="Cannot cancel a synchronous response"):
            await client.responses.cancel(response.id)
        with pytest.raises(NotFoundError):
            await client.responses.cancel("resp_unknown")


async def test_one_that_never_ends_is_cut_at_so_many_bytes_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.background.job.MAX_EVENT_BYTES", 20_000)
    endless: list[BackendEvent] = [*[TextPiece("word ")] * 10_000, TurnEnded(None)]
    async with talking(endless) as (client, backend):
        queued = await client.responses.create(model="m", input="x", background=True)
        response = await ended(client, queued.id)
        assert (response.status, response.incomplete_details and response.incomplete_details.reason) == (
            "incomplete", "max_output_tokens",
        )  # fmt: skip
        assert 0 < len(response.output_text) < 20_000
        assert (backend.left_early, backend.open_turns) == (1, 0)
        events = await raw_events(client, queued.id)
        assert events[-1]["type"] == "response.incomplete"
        assert [event["sequence_number"] for event in events] == [*range(len(events))]


async def test_a_cancelled_response_ends_its_turn_and_its_stream_and_stays_cancelled() -> None:
    backend = GatedBackend([PIECES])
    async with talking(backend=backend) as (client, _):
        stream = await client.responses.create(model="m", input="x", background=True, stream=True)
        seen = [await anext(aiter(stream))]
        assert seen[0].type == "response.created"
        await backend.asked.wait()
        cancelled = await client.responses.cancel(seen[0].response.id)
        assert cancelled.status == "cancelled"
        seen += await events_of(stream)
        assert backend.left_early == 1
        last = seen[-1]
        assert last.type == "response.failed"
        assert last.response.status == "cancelled"
        assert numbers(seen) == list(range(len(seen)))
        again = await client.responses.cancel(cancelled.id)
        assert again.to_dict() == cancelled.to_dict() == (await client.responses.retrieve(cancelled.id)).to_dict()
        replayed = await events_of(await client.responses.retrieve(cancelled.id, stream=True))
        assert numbers(replayed) == numbers(seen)


async def test_what_is_over_is_not_changed_by_cancelling() -> None:
    async with talking("Hello") as (client, _):
        queued = await client.responses.create(model="m", input="x", background=True)
        completed = await ended(client, queued.id)
        assert (await client.responses.cancel(queued.id)).to_dict() == completed.to_dict()


async def test_a_deleted_response_ends_its_turn() -> None:
    backend = GatedBackend([PIECES])
    async with talking(backend=backend) as (client, _):
        queued = await client.responses.create(model="m", input="x", background=True)
        await backend.asked.wait()
        await client.responses.delete(queued.id)
        assert backend.left_early == 1
        with pytest.raises(NotFoundError):
            await client.responses.retrieve(queued.id)


async def test_a_turn_that_fails_is_stored_as_failed_with_its_error() -> None:
    error = BackendError("Slow down.", status=429, code="rate_limit_exceeded")
    async with talking(error) as (client, _):
        queued = await client.responses.create(model="m", input="x", background=True)
        failed = await ended(client, queued.id)
        assert failed.status == "failed"
        assert failed.error is not None
        assert (failed.error.code, failed.error.message) == ("rate_limit_exceeded", "Slow down.")
        with pytest.raises(BadRequestError, match="cannot be continued: it is failed"):
            await client.responses.create(model="m", input="y", previous_response_id=queued.id)


async def test_a_fault_of_ours_ends_the_response_and_no_other() -> None:
    async with talking(lambda _: str(1 // 0), "fine") as (client, _):
        queued = await client.responses.create(model="m", input="x", background=True)
        failed = await ended(client, queued.id)
        assert failed.status == "failed"
        assert failed.error is not None
        assert "division" not in failed.error.message
        assert (await client.responses.create(model="m", input="x")).output_text == "fine"


async def test_a_running_response_cannot_be_continued_and_a_finished_one_can() -> None:
    call = write_call("read_note", '{"path": "a.md"}')
    backend = GatedBackend([[TextPiece(call), TurnEnded(None)], "It says A."])
    async with talking(backend=backend) as (client, _):
        queued = await client.responses.create(model="m", input="Read a.md", tools=TOOLS, background=True)
        await backend.asked.wait()
        with pytest.raises(BadRequestError, match="it is in_progress"):
            await client.responses.create(model="m", input="y", previous_response_id=queued.id)
        backend.gate.set()
        first = await ended(client, queued.id)
        output: Any = {"type": "function_call_output", "call_id": first.output[0].to_dict()["call_id"], "output": "A"}
        second = await client.responses.create(model="m", previous_response_id=first.id, input=[output])
        assert second.output_text == "It says A."
        assert "Read a.md" in shown(backend)


@pytest.mark.parametrize(("limit", "status"), [(None, "completed"), (16, "incomplete")])
async def test_it_joins_its_conversation_once_it_is_over(limit: int | None, status: str) -> None:
    async with talking("word " * 100) as (client, _):
        made = await client.conversations.create()
        response = await client.responses.create(
            model="m", input="x", conversation=made.id, background=True, max_output_tokens=limit
        )
        assert (await ended(client, response.id)).status == status
        items = await client.conversations.items.list(made.id)
        assert [item.type for item in items.data] == ["message", "message"]


async def test_no_more_run_at_once_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.ingress.background.jobs.MAX_RUNNING", 2)
    backend = GatedBackend([PIECES] * 3)
    async with talking(backend=backend) as (client, _):
        queued = [await client.responses.create(model="m", input="x", background=True) for _ in range(2)]
        with pytest.raises(RateLimitError) as caught:
            await client.responses.create(model="m", input="x", background=True)
        assert caught.value.response.headers["retry-after"] == "5"
        backend.gate.set()
        for response in queued:
            assert (await ended(client, response.id)).status == "completed"
        third = await client.responses.create(model="m", input="x", background=True)
        assert (await ended(client, third.id)).status == "completed"


async def test_it_has_to_be_stored() -> None:
    async with talking("x") as (client, _):
        with pytest.raises(BadRequestError, match="background can only be used when `store` is true"):
            await client.responses.create(model="m", input="x", background=True, store=False)
    async with talking("x", store="none") as (client, _):
        with pytest.raises(BadRequestError, match="--store none"):
            await client.responses.create(model="m", input="x", background=True)


async def test_what_a_stopping_server_was_working_on_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.server.DRAIN", 0.05)
    monkeypatch.setattr("proxy.server.FAREWELL", 0.05)
    store = f"sqlite:{tmp_path}/r.db"
    backend = GatedBackend([PIECES])
    async with talking(backend=backend, store=store) as (client, _):
        queued = await client.responses.create(model="m", input="x", background=True)
        await backend.asked.wait()
    async with talking(store=store) as (client, _):
        failed = await client.responses.retrieve(queued.id)
        assert failed.status == "failed"
        assert failed.error is not None
        assert "stopped before" in failed.error.message
        events = await raw_events(client, queued.id)
        assert events[-1]["type"] == "response.failed"
        assert [event["sequence_number"] for event in events] == list(range(len(events)))


async def test_a_stopping_server_lets_it_finish_for_a_while(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/r.db"
    backend = GatedBackend([PIECES])
    async with talking(backend=backend, store=store) as (client, _):
        queued = await client.responses.create(model="m", input="x", background=True)
        await backend.asked.wait()
        asyncio.get_running_loop().call_later(0.05, backend.gate.set)
    async with talking(store=store) as (client, _):
        assert (await client.responses.retrieve(queued.id)).output_text == "one two three"


async def test_what_a_vanished_process_was_working_on_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease is over: whoever asks is told so, and where a stream went on, it ends."""
    monkeypatch.setattr("proxy.stores.journal.OwnJournal.hold", 0.2)
    monkeypatch.setattr("proxy.ingress.background.leases.RENEWAL", 60)
    store = f"sqlite:{tmp_path}/r.db"
    backend = GatedBackend([PIECES])
    async with talking(backend=backend, store=store) as (client, _):
        queued = await client.responses.create(model="m", input="x", background=True)
        await backend.asked.wait()
        async with talking(store=store) as (other, _):
            (event,) = await raw_events(other, queued.id, "&starting_after=41")
            assert (event["type"], event["sequence_number"]) == ("response.failed", 42)
            assert event["error"]["message"] == event["response"]["error"]["message"]
            failed = await other.responses.retrieve(queued.id)
            assert failed.status == "failed"
            assert failed.error is not None
            assert failed.error.message == "The server ended before this response was finished."
        # The process was not gone but slow: what it has is not written over what was told.
        backend.gate.set()
    async with talking(store=store) as (client, _):
        assert (await client.responses.retrieve(queued.id)).status == "failed"


async def test_another_process_follows_cancels_and_deletes(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/r.db"
    backend = GatedBackend([PIECES] * 3)
    async with talking(backend=backend, store=store) as (client, _), talking(store=store) as (other, _):
        queued = await client.responses.create(model="m", input="x", background=True)
        await backend.asked.wait()
        assert (await other.responses.retrieve(queued.id)).status == "in_progress"
        stream = await other.responses.retrieve(queued.id, stream=True)
        backend.gate.set()
        events = await events_of(stream)
        assert events[-1].type == "response.completed"
        assert numbers(events) == list(range(len(events)))
        assert (await other.responses.retrieve(queued.id)).output_text == "one two three"

        backend.gate.clear()
        for end in (other.responses.cancel, other.responses.delete):
            backend.asked.clear()
            backend.left.clear()
            queued = await client.responses.create(model="m", input="x", background=True)
            await backend.asked.wait()
            await end(queued.id)
            async with asyncio.timeout(PATIENCE):
                await backend.left.wait()
            if end == other.responses.cancel:
                assert (await ended(client, queued.id)).status == "cancelled"
        assert backend.left_early == 2


async def test_streams_end_when_another_process_deletes_their_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.ingress.event_stream.HEAD_WAIT", 0.05)
    store = f"sqlite:{tmp_path}/r.db"
    backend = GatedBackend([PIECES])
    async with talking(backend=backend, store=store) as (client, _), talking(store=store) as (other, _):
        stream = await client.responses.create(model="m", input="x", background=True, stream=True)
        created: Any = await anext(stream)
        following = await other.responses.retrieve(created.response.id, stream=True, starting_after=2)
        await other.responses.delete(created.response.id)
        for events in (stream, following):
            with pytest.raises(APIError, match="was deleted"):
                await events_of(events)


async def test_what_ends_while_another_process_cancels_it_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:{tmp_path}/r.db"
    backend = GatedBackend([PIECES])
    lease_of = KeyedStore.lease_of
    async with talking(backend=backend, store=store) as (client, _), talking(store=store) as (other, _):
        queued = await client.responses.create(model="m", input="x", background=True)
        await backend.asked.wait()
        asked = 0

        async def lease_at_last(self: KeyedStore, response_id: str) -> Any:
            nonlocal asked
            asked += 1
            if asked == 2:  # the first one found the response running
                backend.gate.set()
                await ended(client, queued.id)
            return await lease_of(self, response_id)

        monkeypatch.setattr(KeyedStore, "lease_of", lease_at_last)
        response = await other.responses.cancel(queued.id)
        assert (response.status, response.output_text) == ("completed", "one two three")
        assert (await other.responses.retrieve(queued.id)).status == "completed"


async def test_a_result_that_cannot_be_stored_is_served_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    real = KeyedStore.save
    failures = 40

    async def fail_for_a_while(self: KeyedStore, *arguments: Any, **named: Any) -> bool:
        nonlocal failures
        if named.get("leased_by") and failures:
            failures -= 1
            raise StoreError("it is away")
        return await real(self, *arguments, **named)

    monkeypatch.setattr(KeyedStore, "save", fail_for_a_while)
    async with talking("Hello") as (client, _):
        queued = await client.responses.create(model="m", input="x", background=True)
        assert (await ended(client, queued.id)).output_text == "Hello"
        async with asyncio.timeout(PATIENCE):
            while failures:
                assert (await client.responses.retrieve(queued.id)).output_text == "Hello"
        assert (await client.responses.retrieve(queued.id)).output_text == "Hello"


async def test_a_store_that_is_away_takes_no_background_response(monkeypatch: pytest.MonkeyPatch) -> None:
    real = KeyedStore.save

    async def fail(*_: object, **__: object) -> bool:
        raise StoreError("it is away")

    async with talking("Hello") as (client, _):
        monkeypatch.setattr(KeyedStore, "save", fail)
        for _ in range(MAX_RUNNING + 1):
            with pytest.raises(InternalServerError, match="cannot be reached"):
                await client.responses.create(model="m", input="x", background=True)
        monkeypatch.setattr(KeyedStore, "save", real)
        queued = await client.responses.create(model="m", input="x", background=True)
        assert (await ended(client, queued.id)).output_text == "Hello"


async def test_one_key_neither_sees_nor_ends_what_is_anothers() -> None:
    backend = GatedBackend([PIECES])
    async with talking(backend=backend) as (client, _):
        queued = await client.responses.create(model="m", input="x", background=True)
        other = client.with_options(api_key="yours")
        for call in (other.responses.retrieve, other.responses.cancel, other.responses.delete):
            with pytest.raises(NotFoundError):
                await call(queued.id)
        with pytest.raises(NotFoundError):
            await other.responses.retrieve(queued.id, stream=True)
        backend.gate.set()
        assert (await ended(client, queued.id)).status == "completed"
