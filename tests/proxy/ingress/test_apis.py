"""The APIs: a row is all that there is of one, and whatever goes wrong on its paths it writes itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import orjson
import pytest
from aiohttp import web
from msgspec.structs import replace

from proxy.contracts import AnswerText, TurnEvent, TurnFailed, TurnFinished
from proxy.errors import ApiError, BackendError
from proxy.ingress import apis, chat, routes
from proxy.ingress.apis import Api, Late
from proxy.ingress.delivery import Exchange
from proxy.wire.builder import WireEvent
from proxy.wire.json_body import JsonObject
from proxy.wire.wire_format import WireFormat
from tests.support.http_client import client


class LineBuilder:
    """An API as small as one can be: a line a piece of text."""

    id = "line_1"

    def __init__(self) -> None:
        self.body: WireEvent = {"said": ""}

    def start(self) -> list[WireEvent]:
        return []

    def pulse(self) -> list[WireEvent]:
        return []

    def handle(self, event: TurnEvent) -> list[WireEvent]:
        match event:
            case AnswerText(text):
                self.body = {"said": f"{self.body['said']}{text}"}
                return [{"text": text}]
            case TurnFinished():
                return [{"over": True}]
            case TurnFailed(error):
                return [{"wrong": error.message}]
            case _:
                return []


async def begin(request: web.Request, body: JsonObject, held: ExitStack) -> Exchange:
    asked: JsonObject = {"model": "m", "messages": [{"role": "user", "content": body.get("ask")}]}
    exchange = await chat.begin_completion(request, asked, held)
    turn = replace(exchange.turn, streamed=body.get("stream") is True)
    return replace(exchange, turn=turn, builder=LineBuilder())


def wrong(error: ApiError, request_id: str) -> Mapping[str, object]:
    return {"wrong": error.message, "status": error.status, "request": request_id}


LINES = Api(
    name="a small API",
    claims=lambda _, path: path.startswith("/lines"),
    format=WireFormat(
        lambda events: [orjson.dumps(event) + b"\n" for event in events],
        wrong,
        content_type="application/x-ndjson",
        pulse=b"",
        end=b"",
        id_header="line-id",
    ),
    turns={"/lines": begin},
    routes={},
    asked_again=True,
    recorded=True,
)


@pytest.fixture
def _lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small API has its row. The table of routes was made of the rows before."""
    monkeypatch.setattr(apis, "APIS", (LINES, *apis.APIS))
    for path in LINES.turns:
        monkeypatch.setitem(routes.ROUTES, path, dict(LINES.methods(path)))


@pytest.mark.usefixtures("_lines")
async def test_an_api_is_a_room_and_a_row() -> None:
    async with client("Hello", "Hello") as (session, url):
        async with session.post(f"{url}/lines", json={"ask": "hi"}) as response:
            assert await response.json() == {"said": "Hello"}
            assert response.headers["line-id"] == response.headers["x-request-id"]
        async with session.post(f"{url}/lines", json={"ask": "hi", "stream": True}) as response:
            assert response.content_type == "application/x-ndjson"
            lines = [orjson.loads(line) for line in (await response.text()).splitlines()]
    assert lines[-1] == {"over": True}
    assert "".join(line.get("text", "") for line in lines) == "Hello"


@pytest.mark.usefixtures("_lines")
async def test_whatever_goes_wrong_on_its_paths_is_told_in_its_form() -> None:
    async with client(BackendError("Slow down.", status=429), api_key=("key",), max_body=100) as (session, url):
        key = {"Authorization": "Bearer key"}
        asked = {"ask": "hi"}
        faults: list[tuple[int, str, dict[str, Any]]] = [
            (401, "/lines", {"json": asked}),
            (403, "/lines", {"json": asked, "headers": {"Origin": "https://evil.example"}}),
            (404, "/lines/more", {"json": asked, "headers": key}),
            (413, "/lines", {"json": {"ask": "hi" * 100}, "headers": key}),
            (415, "/lines", {"data": b"{}", "headers": key}),
            (421, "/lines", {"json": asked, "headers": {"Host": "evil.example"}}),
            (429, "/lines", {"json": asked, "headers": key}),
            (500, "/lines", {"json": asked, "headers": key}),  # its backend has no more answers
        ]
        for status, path, more in faults:
            async with session.post(url + path, **more) as response:
                body = await response.json()
                assert (response.status, set(body)) == (status, {"wrong", "status", "request"})
                assert (body["status"], body["request"]) == (status, response.headers["line-id"])
        async with session.get(f"{url}/lines", headers=key) as response:
            assert response.status == (await response.json())["status"] == 405


@pytest.mark.usefixtures("_lines")
async def test_the_page_and_the_recorder_read_its_row() -> None:
    assert "/lines" in apis.turns_asked_again()
    assert apis.turns_recorded()["/lines"] is LINES


def test_what_is_loaded_late_is_there() -> None:
    """Else only the first one who asks for it would see that it is broken."""
    routes_of_all = [methods for api in apis.APIS for methods in api.routes.values()]
    found: list[object] = [begin for api in apis.APIS for begin in api.turns.values()]
    found += [handler for methods in routes_of_all for handler in methods.values()]
    late = [handler for handler in found if isinstance(handler, Late)]
    assert len(late) > 20
    assert all(callable(handler.load()) for handler in late)


def test_a_start_does_without_the_apis_that_nobody_asks_in() -> None:
    names = "'proxy.ingress.messages', 'proxy.ingress.ollama', 'proxy.ingress.websocket.responses'"
    said = f"import sys; import proxy.server; sys.exit(not sys.modules.keys().isdisjoint([{names}]))"
    assert subprocess.run([sys.executable, "-c", said], check=False).returncode == 0


def test_no_path_of_a_turn_is_claimed_by_two() -> None:
    paths = [path for api in apis.APIS for path in api.turns]
    assert len(paths) == len(set(paths))
