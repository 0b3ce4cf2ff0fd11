"""An exchange as files."""

from __future__ import annotations

import json
from typing import Any

from proxy.cli.record.document import Recording, compose
from proxy.cli.record.scrub import Scrubber
from proxy.cli.record.tap import HeardLine
from proxy.replay.answers import FixtureBody
from proxy.replay.fixture import parse_fixture

THREAD, TURN, ITEM = "01a1f74d-9780", "0", "msg_77"


def line(at: float, method: str, *, from_client: bool = False, **params: Any) -> HeardLine:
    return HeardLine(at, from_client, {"method": method, "params": {"threadId": THREAD, **params}, "emittedAtMs": 5})


def exchange(text: str, **members: Any) -> Recording:
    item = {"type": "agentMessage", "id": ITEM, "text": "Hi.", "startedAtMs": 17}
    lines = (
        line(10.0, "turn/start", from_client=True, input=[{"type": "text", "text": text}]),
        line(10.1, "turn/started", turn={"id": TURN}),
        line(10.1, "item/completed", turnId=TURN, item={"type": "userMessage", "id": "u"}),
        line(10.2, "item/agentMessage/delta", turnId=TURN, itemId=ITEM, delta="Hi."),
        line(10.3, "item/completed", turnId=TURN, item=item),
        line(10.4, "turn/completed", turn={"id": TURN, "status": "completed", "durationMs": 12}),
    )
    given: dict[str, Any] = {
        "path": "/v1/responses",
        "request": {"model": "m", "input": "hi"},
        "answer": FixtureBody(200, {}, {"id": "resp_" + "0" * 32}),
        "lines": lines,
        "last_user": "hi",
        "model": "m",
        "with_tools": False,
    }
    return Recording(**{**given, **members})


def backend_lines(recording: Recording) -> list[Any]:
    return [json.loads(row) for row in compose(recording, Scrubber())["backend.jsonl"].decode().splitlines()]


def test_lines_have_names_for_ids_seconds_since_the_start_and_no_time_of_day() -> None:
    rows = backend_lines(exchange("hi"))
    assert [row["t"] for row in rows[1:]] == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert rows[3]["msg"]["params"] == {"threadId": "thread-1", "turnId": "turn-1", "itemId": "item-1", "delta": "Hi."}
    assert rows[4]["msg"]["params"]["item"] == {"type": "agentMessage", "id": "item-1", "text": "Hi."}
    assert "AtMs" not in json.dumps(rows)
    assert "durationMs" not in json.dumps(rows)


def test_the_ask_holds_the_users_words_and_none_of_the_proxys() -> None:
    meta = backend_lines(exchange("hi\n\nAnswer this with a call."))[0]
    assert meta["ask"] == {"last_user": "hi", "after_tools": [], "with_tools": False}


def test_what_is_written_can_be_played() -> None:
    files = compose(exchange("hi", settings={"calls": "live"}), Scrubber())
    fixture = parse_fixture("case", files["backend.jsonl"])
    assert (fixture.path, fixture.model, fixture.settings) == ("/v1/responses", "m", {"calls": "live"})
    assert len(fixture.turns) == 1
    assert json.loads(files["response.json"])["body"] == {"id": "resp_1"}
