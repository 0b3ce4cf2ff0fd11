"""What a codex of tomorrow may say: each name of a program's own schema, changed into one that nobody knows."""

from __future__ import annotations

import pytest

from proxy.backends.codex import allowed_items, turn_failure
from proxy.contracts import MessageEnded, TextPiece, TurnEnded
from proxy.errors import BackendError
from tests.codex_schema import protocol_of
from tests.support.backend_events import merged, prompt
from tests.support.codex_programs import TestProgram
from tests.support.scripted_codex import AT, Server, backend
from tests.support.virtual_clock import on_a_virtual_clock


def mutated(program: TestProgram, what: str) -> list[str]:
    """Names that this program does not have."""
    assert program.path is not None
    names = protocol_of(program.path).names[what]
    assert names
    changed = {f"{name}Anew" for name in names} | {name.swapcase() for name in names} | {name[:-1] for name in names}
    return sorted(changed - names)


def test_an_error_of_an_unknown_kind_is_a_failure_of_the_backend_with_its_sentence(program: TestProgram) -> None:
    for kind in mutated(program, "kinds of errors"):
        for info in (kind, {kind: {"httpStatusCode": None}}, {kind: {"anything": [1]}}):
            failure = turn_failure({"message": "internal: it is too late", "codexErrorInfo": info})
            assert isinstance(failure, BackendError)
            assert (failure.status, failure.code) == (502, "backend_error"), info
            assert failure.message == "internal: it is too late"


@on_a_virtual_clock
async def test_notifications_that_nobody_knows_change_nothing(program: TestProgram) -> None:
    server = Server()
    anything = {**AT, "itemId": "m", "delta": "not this", "turn": {"id": "1", "status": "ended"}, "item": {"id": "m"}}
    async with backend(server) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        for text in ("all ", "of it"):
            for method in mutated(program, "notifications"):
                server.tell(method, **anything)
                server.tell(method)
            server.say(text)
        server.complete()
        events = [event async for batch in batches for event in batch]
    assert merged(events) == [TextPiece("all of it"), MessageEnded(), TurnEnded(None)]


@on_a_virtual_clock
async def test_an_item_of_an_unknown_kind_ends_its_turn_with_one_clear_error_and_spoils_no_other(
    program: TestProgram,
) -> None:
    for kind in mutated(program, "kinds of items"):
        server = Server()
        async with backend(server) as it, it.stream(prompt()) as other:
            await server.wait_for("turn/start")
            async with it.stream(prompt()) as batches:
                await server.wait_for("turn/start", 2)
                server.say("to be", "t1")
                server.tell("item/started", threadId="t2", turnId="1", item={"id": "i", "type": kind})
                server.tell("item/completed", threadId="t2", turnId="1", item={"id": "i", "type": kind})
                with pytest.raises(BackendError) as failed:
                    await anext(batches)
            server.say(" continued", "t1")
            server.complete("t1")
            events = [event async for batch in other for event in batch]
        assert (failed.value.status, failed.value.code) == (502, "backend_not_text_only")
        assert f"--allow-item {kind}" in str(failed.value)
        assert merged(events) == [TextPiece("to be continued"), MessageEnded(), TurnEnded(None)]


@on_a_virtual_clock
async def test_one_that_its_owner_allows_is_passed_over(program: TestProgram) -> None:
    kinds = mutated(program, "kinds of items")
    server = Server()
    async with backend(server, allowed_items=allowed_items(kinds)) as it, it.stream(prompt()) as batches:
        await server.wait_for("turn/start")
        for kind in kinds:
            server.tell("item/started", **AT, item={"id": kind, "type": kind})
            server.tell("item/completed", **AT, item={"id": kind, "type": kind})
        server.say("done")
        server.complete()
        events = [event async for batch in batches for event in batch]
    assert merged(events) == [TextPiece("done"), MessageEnded(), TurnEnded(None)]
