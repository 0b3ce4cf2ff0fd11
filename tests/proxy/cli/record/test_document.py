"""A request as files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prompts import Text
from proxy.cli.record.document import Recording, compose
from proxy.cli.record.scrub import Scrubber
from proxy.contracts import MessageEnded, Prompt, TextPiece, TurnEnded
from proxy.errors import BackendError
from proxy.ingress.inspect import HeardTurn
from proxy.replay.answers import FixtureBody
from proxy.replay.fixture import parse_fixture
from tests.proxy.replay.child import shown
from tests.support.backend_events import prompt

END = (10.4, TurnEnded(None))


def heard(text: str = "hi", *told: Any, asked: Prompt | None = None, **members: Any) -> HeardTurn:
    said = [(10.2, TextPiece("Hi.")), (10.3, MessageEnded()), *(told or [END])]
    given = {"read_to_its_end": True, "over": 10.5, **members}
    return HeardTurn(asked or prompt(text, model="m"), 10.0, said, **given)


def recorded(*turns: HeardTurn, **members: Any) -> Recording:
    given: dict[str, Any] = {
        "path": "/v1/responses",
        "request": {"model": "m", "input": "hi"},
        "answer": FixtureBody(200, {}, {"id": "resp_" + "0" * 32}),
        "turns": turns or (heard(),),
        "last_user": "hi",
    }
    return Recording(**{**given, **members})


def backend_lines(recording: Recording) -> list[Any]:
    return [json.loads(row) for row in compose(recording, Scrubber())["backend.jsonl"].decode().splitlines()]


def messages(recording: Recording) -> list[tuple[float, str, str, str]]:
    rows = backend_lines(recording)[1:]
    return [(row["t"], row["dir"], row["msg"]["method"], row["msg"]["params"]["threadId"]) for row in rows]


def test_a_turn_is_what_an_app_server_would_have_said() -> None:
    assert messages(recorded()) == [
        (0.0, "client", "turn/start", "thread-1"),
        (0.0, "server", "turn/started", "thread-1"),
        (0.2, "server", "item/started", "thread-1"),
        (0.2, "server", "item/agentMessage/delta", "thread-1"),
        (0.3, "server", "item/completed", "thread-1"),
        (0.4, "server", "turn/completed", "thread-1"),
    ]


@pytest.mark.parametrize(
    ("turn", "status"),
    [
        (heard(), "completed"),
        (heard("hi", (10.3, MessageEnded())), "completed"),
        (heard("hi", (10.4, TurnEnded(None, "max_output_tokens"))), "failed"),
        (heard("hi", (10.3, MessageEnded()), read_to_its_end=False, error=BackendError("gone")), "failed"),
        (heard("hi", (10.3, MessageEnded()), read_to_its_end=False), "interrupted"),
        (heard(read_to_its_end=False), "completed"),
    ],
)
def test_every_turn_has_one_end_and_is_marked_where_the_proxy_left_it(turn: HeardTurn, status: str) -> None:
    ends = [row["msg"]["params"]["turn"]["status"] for row in backend_lines(recorded(turn))[1:]
            if row["msg"]["method"] == "turn/completed"]  # fmt: skip
    assert ends == [status]
    (played,) = parse_fixture("case", compose(recorded(turn), Scrubber())["backend.jsonl"]).turns
    assert played.interrupted is turn.left_early


def test_the_turns_of_a_request_stand_one_after_the_other() -> None:
    files = compose(recorded(heard(), heard("hi again")), Scrubber())
    first, second = parse_fixture("case", files["backend.jsonl"]).turns
    assert (first.thread_id, second.thread_id) == ("thread-1", "thread-2")
    assert second.ask.seen is not None
    assert second.ask.seen.messages == shown("hi again")


def test_the_ask_holds_the_users_words_and_none_of_the_proxys() -> None:
    meta = backend_lines(recorded(heard("hi\n\nAnswer this with a call.")))[0]
    assert meta["ask"] == {"last_user": "hi", "after_tools": [], "with_tools": False}
    with_tools = heard(asked=prompt("hi", developer="Write <tool_call>.", model="m"))
    assert backend_lines(recorded(with_tools))[0]["ask"]["with_tools"] is True


@pytest.mark.parametrize(
    ("behind", "last_user", "asked"),
    [
        ("Answer this with a call.", "Where is <tool_call>?", "Where is <\\tool_call>?"),
        ("And the beans?\nAnswer this with a call.", "And the beans?", "And the beans?"),
    ],
)
def test_behind_results_the_ask_is_what_the_user_wrote_last(behind: str, last_user: str, asked: str) -> None:
    parts = tuple(map(Text, ("Where is <\\tool_call>?", "[tool:call_1] a result", behind)))
    recording = recorded(heard(asked=Prompt("m", None, parts)), last_user=last_user)
    assert backend_lines(recording)[0]["ask"]["last_user"] == asked


def test_what_is_written_can_be_played() -> None:
    files = compose(recorded(settings={"calls": "live"}), Scrubber())
    fixture = parse_fixture("case", files["backend.jsonl"])
    assert (fixture.path, fixture.model, fixture.settings) == ("/v1/responses", "m", {"calls": "live"})
    assert len(fixture.turns) == 1
    assert json.loads(files["response.json"])["body"] == {"id": "resp_1"}


def test_an_id_has_one_name_in_all_files_and_none_that_its_client_gave() -> None:
    minted = "call_" + "7a" * 16
    request = {"instructions": f"Not {minted}.", "input": [{"call_id": "call_1"}, {"call_id": minted}]}
    said = f"I looked at {minted}."
    turn = heard(f"[tool:{minted}] a result", *((10.2, TextPiece(piece)) for piece in (said[:20], said[20:])), END)
    files = compose(recorded(turn, request=request, answer=FixtureBody(200, {}, {"text": said})), Scrubber())
    assert json.loads(files["request.json"])["input"] == [{"call_id": "call_1"}, {"call_id": "call_2"}]
    assert "I looked at call_2." in files["response.json"].decode()
    assert "[tool:call_2] a result" in files["transcript.txt"].decode()
    assert not [name for name, data in files.items() if minted[:20] in data.decode()]


def test_what_was_recorded_before_is_not_seen() -> None:
    scrubber = Scrubber()
    first, second = (recorded(heard(text), request={"input": text}) for text in ("for a@corp.org", "for b@corp.org"))
    compose(first, scrubber)
    assert compose(second, scrubber) == compose(second, Scrubber())
