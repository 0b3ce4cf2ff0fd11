"""A finished turn, ready to become a fixture: its request needs nothing from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aiohttp import web

from ...ingress.apis import api_of
from ...ingress.history import find_history
from ...ingress.inspect import HeardTurn
from ...ingress.routes import canonical_path
from ...ingress.state import BACKEND
from ...replay.answers import FixtureAnswer
from ...wire.json_body import parse_json_object
from ...wire.responses.request import lookups
from .document import Recording
from .standalone import NotRecordedError, last_user_of, standalone, with_history


async def recording_of(
    request: web.Request,
    path: str,
    asked: bytes,
    answer: FixtureAnswer,
    turns: Sequence[HeardTurn],
    *,
    kind: str,
    settings: Mapping[str, str | bool],
) -> Recording:
    """What POST `path` with the body `asked` came to. `request` finds what it refers to; `kind` and `settings` as
    `Recorder` has them. Raises `NotRecordedError` and `RequestError`.
    """
    if not (api := api_of(request, canonical_path(path))).recorded:
        raise NotRecordedError(f"it was asked in {api.name}.")
    body = parse_json_object(asked)
    wanted = lookups(body)
    if wanted.conversation:
        raise NotRecordedError("it is part of a stored 'conversation': ask with 'previous_response_id' instead.")
    if body.get("background"):
        raise NotRecordedError("it goes on in the 'background': leave that out.")
    if wanted.previous_response_id or wanted.referred:
        body = with_history(body, await find_history(request, wanted))
    if not turns:
        raise NotRecordedError("the model was not asked.")
    last_user = last_user_of(path, body)
    if body.get("context_management") and len(turns) > 1:
        raise NotRecordedError("its conversation may have been summed up first: leave 'context_management' out.")
    if any(turn.stopped for turn in turns):
        raise NotRecordedError("the server was stopped before it was answered.")
    health = await request.app[BACKEND].health()
    version = f", version {health.version}" if health.version else ""
    return Recording(
        path=path,
        request=body,
        answer=standalone(answer, stored=body.get("store") is not False),
        turns=tuple(turns),
        last_user=last_user,
        note=f"Recorded with --backend {kind}{version}.",
        settings=settings,
        key_habit=turns[0].prompt.key_habit,
    )
