"""A request that needs nothing from the store: everything that it referred to stands in it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from prompts import Text, Transcript, UserTurn

from ...errors import RequestError
from ...replay.answers import FixtureAnswer, FixtureBody, FixtureEvent, FixtureStream, ReplayJson
from ...wire.chat.request import parse_chat_request
from ...wire.json_body import JsonObject, JsonValue
from ...wire.responses.input_items import History, referred_id
from ...wire.responses.request import parse_responses_request

_PREVIOUS = "previous_response_id"


class NotRecordedError(Exception):
    """The exchange makes no fixture; the message says why."""


def with_history(request: JsonObject, history: History) -> JsonObject:
    """`request` with the items of `history` before its own, and in the place of references to them."""
    items = request.get("input")
    if not history.items and not history.referred:
        return request
    own: list[JsonValue] = items if isinstance(items, list) else [{"role": "user", "content": items}]
    found = [item if (name := referred_id(item)) is None else dict(history.referred[name]) for item in own]
    rest = {name: value for name, value in request.items() if name != _PREVIOUS}
    return {**rest, "input": [*map(dict, history.items), *found]}


def standalone(answer: FixtureAnswer, *, stored: bool) -> FixtureAnswer:
    """The answer to such a request: it continues nothing, and is `stored` as was asked, whatever this server keeps."""
    told = {_PREVIOUS: None, "store": stored}
    match answer:
        case FixtureStream(events):
            return FixtureStream(tuple(FixtureEvent(event.name, _told(told, event.data)) for event in events))
        case FixtureBody():
            return replace(answer, body=_told(told, answer.body))


def _told(told: Mapping[str, bool | None], value: ReplayJson) -> ReplayJson:
    """A copy of `value` whose Responses have the members `told`."""
    match value:
        case dict():
            inner = {name: _told(told, member) for name, member in value.items()}
            return {**inner, **{name: told[name] for name in told if name in inner}} if _PREVIOUS in inner else inner
        case list():
            return [_told(told, member) for member in value]
        case _:
            return value


def last_user_of(path: str, request: JsonObject) -> str:
    """The newest user message as its client wrote it. Raises `NotRecordedError` for what cannot be asked again."""
    try:
        if path.endswith("completions"):
            return _newest(parse_chat_request(request).turn.transcript)
        return _newest(parse_responses_request(request).turn.transcript)
    except RequestError as error:
        raise NotRecordedError(f"it could not be asked again ({error.message})") from None


def _newest(transcript: Transcript) -> str:
    turns = [entry for entry in transcript.entries if isinstance(entry, UserTurn)]
    texts = [part.text for part in turns[-1].parts if isinstance(part, Text)] if turns else []
    return "\n".join(texts)
