"""A web page completes the tool loop through openai-node in Chromium, and a page of another origin starts no turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from tests.support.lanes import continued
from tests.support.librarian import ROUNDS, librarian
from tests.support.node_clients import Report, installed_browser, installed_node, run_node, task
from tests.support.scripted_model import ScriptedModel
from tests.support.tagcall_server import tagcall_server
from tests.support.vault import ANSWER, CALLS, SAID

HTML = '<!doctype html><meta charset="utf-8"><title>Notes</title><script src="page.js"></script><body>'

pytestmark = [pytest.mark.clients, pytest.mark.browser, pytest.mark.parametrize("api", ["responses", "chat"])]


async def serve_page(aiohttp_server: AiohttpServer, script: str) -> str:
    """The origin of a page with this script. It is another site than the server's, whose host is an address."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=HTML, content_type="text/html")

    async def page_script(_: web.Request) -> web.Response:
        return web.Response(text=script, content_type="text/javascript")

    app = web.Application()
    app.router.add_get("/", page)
    app.router.add_get("/page.js", page_script)
    server = await aiohttp_server(app, access_log=None)
    return f"http://localhost:{server.port}"


Visit = Callable[[tuple[str, ...], bool], Awaitable[list[Report]]]


@pytest.fixture
def visit(model: ScriptedModel, aiohttp_server: AiohttpServer, api: str, tmp_path: Path) -> Visit:
    """What a page saw on these ways, whose origin is, or is not, on the server's list."""

    async def visit(ways: tuple[str, ...], listed: bool) -> list[Report]:
        node, browser = installed_node(), installed_browser()
        [bundle] = await run_node(node, "bundle.mjs", {}, tmp_path)
        origin = await serve_page(aiohttp_server, bundle["script"])
        origins = (origin,) if listed else ("https://notes.example",)
        async with tagcall_server(model, tmp_path / "home", allow_origin=origins) as url:
            given = task(url, "openai_node", api, ways)
            shot = {"browser": browser, "page": origin, "screenshot": str(tmp_path / "page.png")}
            return [Report.read(row) for row in await run_node(node, "browser.mjs", {**given, **shot}, tmp_path)]

    return visit


async def test_a_page_of_a_listed_origin_completes_the_tool_loop(model: ScriptedModel, visit: Visit) -> None:
    ways = ("streamed", "helper")
    model.choose = librarian
    seen = await visit(ways, True)
    assert seen == [Report(way, list(CALLS), [SAID, ANSWER], None) for way in ways]
    assert len(model.requests) == len(ROUNDS) * len(ways)
    assert continued(model.requests) == (len(ROUNDS) - 1) * len(ways)


async def test_a_page_of_any_other_origin_starts_no_turn(model: ScriptedModel, visit: Visit) -> None:
    streamed, create, blindly = await visit(("streamed", "create", "blindly"), False)
    for seen in (streamed, create):
        assert "Connection error" in (seen.error or "")
    assert blindly.error is None
    assert [seen.calls or seen.texts for seen in (streamed, create, blindly)] == [[], [], []]
    assert model.requests == []
