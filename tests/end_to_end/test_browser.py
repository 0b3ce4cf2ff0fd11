"""A web page completes the tool loop through openai-node in Chromium, and a page of another origin starts no turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.node_clients import Report, installed_browser, installed_node, run_node, task
from tests.support.scripted_model import ScriptedModel
from tests.support.tagcall_server import tagcall_server
from tests.support.vault import ANSWER, CALLS, ROUNDS, SAID, librarian

HTML = '<!doctype html><meta charset="utf-8"><title>Notes</title><script src="page.js"></script><body>'

pytestmark = [pytest.mark.clients, pytest.mark.browser, pytest.mark.parametrize("api", ["responses", "chat"])]


@asynccontextmanager
async def page_server(script: str) -> AsyncIterator[str]:
    """The origin of a page with this script. It is another site than the server's, whose host is an address."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=HTML, content_type="text/html")

    async def page_script(_: web.Request) -> web.Response:
        return web.Response(text=script, content_type="text/javascript")

    app = web.Application()
    app.router.add_get("/", page)
    app.router.add_get("/page.js", page_script)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://localhost:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def reports(model: ScriptedModel, api: str, ways: tuple[str, ...], folder: Path, *, listed: bool) -> list[Report]:
    """What a page saw whose origin is, or is not, on the server's list."""
    node, browser = installed_node(), installed_browser()
    [bundle] = await run_node(node, "bundle.mjs", {}, folder)
    async with page_server(bundle["script"]) as origin:
        origins = (origin,) if listed else ("https://notes.example",)
        async with tagcall_server(model, folder / "home", allow_origin=origins) as url:
            given = task(url, "openai_node", api, ways)
            shot = {"browser": browser, "page": origin, "screenshot": str(folder / "page.png")}
            return [Report.read(row) for row in await run_node(node, "browser.mjs", {**given, **shot}, folder)]


async def test_a_page_of_a_listed_origin_completes_the_tool_loop(api: str, tmp_path: Path) -> None:
    ways = ("streamed", "helper")
    async with ScriptedModel() as model:
        model.choose = librarian
        seen = await reports(model, api, ways, tmp_path, listed=True)
    assert seen == [Report(way, list(CALLS), [SAID, ANSWER], None) for way in ways]
    assert len(model.requests) == len(ROUNDS) * len(ways)


async def test_a_page_of_any_other_origin_starts_no_turn(api: str, tmp_path: Path) -> None:
    async with ScriptedModel() as model:
        streamed, create, blindly = await reports(model, api, ("streamed", "create", "blindly"), tmp_path, listed=False)
    for seen in (streamed, create):
        assert "Connection error" in (seen.error or "")
    assert blindly.error is None
    assert [seen.calls or seen.texts for seen in (streamed, create, blindly)] == [[], [], []]
    assert model.requests == []
