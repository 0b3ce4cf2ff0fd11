"""Requests that need nothing from the store."""

from __future__ import annotations

import pytest

from proxy.cli.record.standalone import NotRecordedError, last_user_of, standalone, with_history
from proxy.replay.answers import FixtureBody, FixtureEvent, FixtureStream
from proxy.wire.json_body import JsonObject
from proxy.wire.responses.input_items import NO_HISTORY, History

ASKED = {"type": "message", "role": "user", "content": "What?"}
ANSWERED = {"type": "message", "role": "assistant", "content": "That."}


def test_the_items_before_it_stand_in_its_input() -> None:
    request: JsonObject = {"model": "m", "previous_response_id": "resp_1", "input": "And?"}
    assert with_history(request, History((ASKED, ANSWERED))) == {
        "model": "m",
        "input": [ASKED, ANSWERED, {"role": "user", "content": "And?"}],
    }


def test_an_item_stands_where_it_was_referred_to() -> None:
    request: JsonObject = {"input": [{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "And?"}]}
    written = with_history(request, History((), {"msg_1": ASKED}))
    assert written["input"] == [ASKED, {"role": "user", "content": "And?"}]


def test_a_request_that_refers_to_nothing_stays_as_it_is() -> None:
    request: JsonObject = {"model": "m", "input": "Hi"}
    assert with_history(request, NO_HISTORY) is request


@pytest.mark.parametrize("stored", [True, False])
def test_its_answer_continues_nothing_and_is_stored_as_was_asked(stored: bool) -> None:
    response = {"id": "resp_2", "previous_response_id": "resp_1", "store": False, "metadata": {"store": "corner"}}
    alone = {**response, "previous_response_id": None, "store": stored}
    assert standalone(FixtureBody(200, {}, response), stored=stored) == FixtureBody(200, {}, alone)
    stream = FixtureStream((FixtureEvent("response.created", {"response": response}), FixtureEvent(None, "[DONE]")))
    assert standalone(stream, stored=stored) == FixtureStream(
        (FixtureEvent("response.created", {"response": alone}), FixtureEvent(None, "[DONE]"))
    )


@pytest.mark.parametrize(
    ("path", "request_body"),
    [
        ("/v1/responses", {"model": "m", "input": [ASKED, ANSWERED, {**ASKED, "content": "And\nthat?"}]}),
        ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "And\nthat?"}]}),
    ],
)
def test_the_newest_user_message_is_the_clients_own(path: str, request_body: JsonObject) -> None:
    assert last_user_of(path, request_body) == "And\nthat?"


def test_what_cannot_be_read_cannot_be_asked_again() -> None:
    with pytest.raises(NotRecordedError, match="it could not be asked again"):
        last_user_of("/v1/responses", {"model": "m", "input": 1})
