"""The page at `/` in Chromium: a tool loop through the real codex program, as somebody sees it who leaves it open."""

from __future__ import annotations

import asyncio
import json
import shlex
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from parser import write_call
from proxy.cli.record.kept import FixtureOfTurn
from proxy.cli.replay import ReplayOptions, run_replay
from proxy.ingress.inspect import PageOptions
from proxy.plugins import PLUGINS
from proxy.replay.key_placeholder import PLACEHOLDER
from proxy.server import running_server
from proxy.settings import Settings
from proxy.turn import FixedHabit, KeyHabits
from tests.support.backends import BACKENDS_UNDER_TEST
from tests.support.browser_page import Browser, BrowserPage, running_browser
from tests.support.conversation import results_shown
from tests.support.node_clients import PACKAGES, missing
from tests.support.ports import free_port
from tests.support.scripted_chat import ScriptedChat
from tests.support.scripted_model import Message, Refusal, Reply, ScriptedModel

pytestmark = [pytest.mark.clients, pytest.mark.browser]

HOSTILE = (
    "<script>window.pwned = 1</script><img src=x onerror=\"window.pwned = 1\"><svg onload='window.pwned = 1'>"
    "\"><iframe srcdoc='<script>parent.pwned = 1</script>'></iframe>{{7*7}}javascript:alert(1)"
)
PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = [{"type": "function", "name": "read_note", "description": HOSTILE, "parameters": PARAMETERS, "strict": False}]
REPAIRED = write_call("read_note", '{"path": "a.md"}').replace('"a.md"}', '"a.md",}')
ANSWER = "The note is strange."


def reader(body: Mapping[str, Any]) -> Reply:
    """A model that reads a note with a comma too much, tries a tool that is not there, and answers."""
    match len(results_shown(body)):
        case 0:
            return Reply([Message("I will look.\n" + REPAIRED)], chunk=5)
        case 1:
            return Reply([Message(f"{ANSWER}\n" + write_call("burn_note", "{}"))], chunk=5)
        case _:
            return Reply([Message("?")])


async def tool_loop(url: str, note: str = HOSTILE, client: str = "Obsidian/1.9", **headers: str) -> None:
    """One loop of two requests, by Chat Completions."""
    said: list[Any] = [{"role": "user", "content": "What is in a.md?"}]
    async with aiohttp.ClientSession(headers={"User-Agent": client, **headers}) as session:
        for _ in range(2):
            body = {"model": "gpt-5.5", "messages": said, "tools": [{"type": "function", "function": TOOLS[0]}]}
            async with session.post(url + "/chat/completions", json=body) as response:
                assert response.status == 200, await response.text()
                message = (await response.json())["choices"][0]["message"]
            said.append(message)
            said += [
                {"role": "tool", "tool_call_id": call["id"], "content": note}
                for call in message.get("tool_calls") or ()
            ]


@pytest.fixture(scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    async with running_browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture
async def server(model: ScriptedModel, tmp_path: Path) -> AsyncIterator[str]:
    model.choose = reader
    async with inspected(model, tmp_path / "home") as url:
        yield url


@asynccontextmanager
async def inspected(model: ScriptedModel, home: Path, habits: KeyHabits | None = None) -> AsyncIterator[str]:
    """As `tagcall serve --inspect` starts it."""
    settings = Settings(port=0, inspect=True, **BACKENDS_UNDER_TEST[0].settings(model, home))
    async with running_server(settings, habits=habits, page=PageOptions(save=FixtureOfTurn(settings))) as url:
        yield url


async def visit(page: BrowserPage, url: str) -> None:
    await page.run("await page.goto(given)", url.removesuffix("v1"))
    await page.wait_for("#status.ready")


async def test_the_list_fills_while_a_tool_loop_runs(server: str, model: ScriptedModel, browser: Browser) -> None:
    gate = asyncio.Event()
    model.choose = None
    model.push(Reply([Message(REPAIRED)], chunk=5, hold_after=2, gate=gate))
    model.push(Reply([Message(f"{ANSWER}\n" + write_call("burn_note", "{}"))]))
    async with browser.page() as page:
        await visit(page, server)
        assert await page.count(".turn") == 0
        async with asyncio.TaskGroup() as group:
            group.create_task(tool_loop(server))
            await page.wait_for(".turn.running")
            gate.set()
            await page.wait_for(".turn .repaired")
            await page.wait_for(".turn.done .refused")
        assert await page.count(".group") == 1
        assert await page.count(".turn") == 2
        assert await page.text(".turn .repaired") == "read_note repaired"
        assert await page.text(".turn .refused") == "first answer: burn_note refused"
        newest, oldest = await page.run("return await page.locator('.turn .said').allTextContents()")
        assert "burn_note is not among the tools that were offered" in newest
        assert oldest == "called read_note (mended: trailing comma)"
        assert await page.text(".turn:last-child .question") == "What is in a.md?"
        assert "Obsidian" in await page.text(".turn")
        await page.run("await page.locator('.turn').last().click(); await page.locator('.column').first().waitFor()")
        assert await page.count(".column") == 4
        assert await page.text("mark.repaired") == REPAIRED
        assert await page.run("return complaints") == []


async def test_the_head_tells_what_is_left_of_the_quota_after_each_turn(
    server: str, model: ScriptedModel, browser: Browser
) -> None:
    told = {
        f"x-codex-{window}-{name}": value
        for window, minutes in (("primary", "300"), ("secondary", "10080"))
        for name, value in (("used-percent", "43"), ("window-minutes", minutes), ("reset-at", "2000000000"))
    }
    model.choose = lambda body: Reply([Message(ANSWER)], headers=told)
    async with browser.page(width=390, height=800) as page, aiohttp.ClientSession() as session:
        await visit(page, server)
        assert await page.count("#quota") == 0
        for used, class_ in (("43", "span:not(.failure)"), ("100", "span.failure")):
            told["x-codex-primary-used-percent"] = used
            async with session.post(server + "/responses", json={"model": "gpt-5.5", "input": "hi"}):
                pass
            await page.wait_for(f"#quota > {class_}")
            assert f"{100 - int(used)} % of 5 h" in await page.text("#quota")
        assert await page.run("return await page.evaluate(() => document.documentElement.scrollWidth)") <= 390
        assert await page.run("return complaints") == []


async def test_the_lines_are_those_of_the_codex_program_without_the_key(server: str) -> None:
    await tool_loop(server)
    root = server.replace("/v1", "/inspect/turns")
    async with aiohttp.ClientSession() as session:
        async with session.get(root) as response:
            first = (await response.json())["turns"][-1]
        async with session.get(f"{root}/{first['id']}") as response:
            detail = await response.json()
        async with session.get(f"{root}/{first['id']}/lines") as response:
            lines = [json.loads(line) for line in (await response.text()).splitlines()]
    told = [(line["dir"], line["msg"].get("method")) for line in lines]
    assert told[:2] == [("client", "thread/start"), ("client", "turn/start")]
    assert told[-1] == ("server", "turn/completed")
    wrote = [line["msg"]["params"]["delta"] for line in lines if line["msg"].get("method") == "item/agentMessage/delta"]
    assert "".join(wrote) == detail["answers"][0]["wrote"]
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)
    assert PLACEHOLDER in lines[0]["msg"]["params"]["developerInstructions"]


async def test_what_a_note_a_tool_a_model_or_a_header_holds_is_text(server: str, browser: Browser) -> None:
    async with browser.page() as page:
        await visit(page, server)
        await tool_loop(server, client=HOSTILE[:150])
        await page.wait_for(".turn.done .refused")
        async with aiohttp.ClientSession() as session:
            body = {"model": HOSTILE[:60], "messages": [{"role": "user", "content": HOSTILE}]}
            async with session.post(server + "/chat/completions", json=body):
                pass
        rows = await page.count(".turn")
        for at in range(rows):
            await page.run("await page.locator('.turn').nth(given).click()", at)
            await page.wait_for(".column")
            await page.run(
                "await page.locator('details').evaluateAll((all) => all.forEach((each) => each.open = true))"
            )
        shown = await page.text("main")
        assert "<script>window.pwned = 1</script>" in shown
        assert "onerror=" in shown
        made = "return await page.evaluate(() => [window.pwned ?? 0, document.querySelectorAll('img, iframe').length])"
        assert await page.run(made) == [0, 0]
        assert await page.run("return complaints") == []


async def test_it_works_by_keyboard_alone_and_on_a_phone(server: str, browser: Browser) -> None:
    async with browser.page(width=390, height=800) as page:
        await visit(page, server)
        await tool_loop(server, note="# A\n" + "long " * 200)
        await page.wait_for(".turn.done .refused")
        await page.run("for (let n = 0; n < 20; n++) { await page.keyboard.press('Tab');"
                       " if (await page.locator('.turn:focus').count()) break; }")  # fmt: skip
        assert await page.count(".turn:focus") == 1
        await page.run("await page.keyboard.press('ArrowDown'); await page.keyboard.press('Enter')")
        await page.wait_for("#detail:focus .column")
        assert await page.run("return await page.evaluate(() => document.documentElement.scrollWidth)") <= 390
        await page.run("await page.keyboard.press('Escape')")
        assert await page.count("#detail[hidden]") == 1
        assert await page.count(".turn:focus") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_no_serious_problem(server: str, browser: Browser, scheme: str) -> None:
    axe = PACKAGES / "axe-core" / "axe.min.js"
    if not axe.is_file():
        missing("axe-core is not installed: run `make clients`.")
    async with browser.page(scheme=scheme) as page:
        await visit(page, server)
        await tool_loop(server)
        await page.wait_for(".turn.done .refused")
        await page.run("await page.locator('.turn').last().click(); await page.locator('.column').first().waitFor();"
                       " await page.locator('#plugins summary').click()")  # fmt: skip
        # By the debugger, which the policy of the page does not bind.
        found = await page.run(
            "await page.evaluate(given);"
            " return await page.evaluate(async () => (await axe.run()).violations"
            ".filter((each) => ['serious', 'critical'].includes(each.impact))"
            ".map((each) => [each.id, each.nodes.map((node) => node.html)]))",
            axe.read_text("utf-8"),
        )
        assert found == []


async def test_with_a_key_it_asks_for_it_and_the_link_opens_it_once(
    model: ScriptedModel, browser: Browser, tmp_path: Path
) -> None:
    settings = Settings(port=0, api_key=("secret",), **BACKENDS_UNDER_TEST[0].settings(model, tmp_path / "home"))
    async with running_server(settings, page=PageOptions(link="once")) as url, browser.page() as page:
        root = url.removesuffix("v1")
        await page.run("await page.goto(given)", root + "#once")
        await page.wait_for("#status.ready")
        assert await page.run("return page.url()") == root
        [cookie] = await page.run("return await page.context().cookies()")
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert "secret" not in json.dumps(cookie)
        await page.run("await page.reload()")
        await page.wait_for("#status.ready")
        await page.run(
            "await page.context().clearCookies(); await page.goto(given); await page.reload()", root + "#once"
        )
        await page.wait_for("#entry:not([hidden])")
        await page.run("await page.locator('#key').fill('wrong'); await page.keyboard.press('Enter')")
        await page.run("await page.getByText('Incorrect API key').waitFor()")
        await page.run("await page.locator('#key').fill('secret'); await page.keyboard.press('Enter')")
        await page.wait_for("#status.ready")


async def test_an_open_page_asks_for_the_key_when_the_server_was_started_anew(
    model: ScriptedModel, browser: Browser, tmp_path: Path
) -> None:
    backend = BACKENDS_UNDER_TEST[0].settings(model, tmp_path / "home")
    settings = Settings(port=free_port(), api_key=("secret",), **backend)
    async with browser.page() as page:
        async with running_server(settings, page=PageOptions(link="once")) as url:
            await page.run("await page.goto(given)", url.removesuffix("v1") + "#once")
            await page.wait_for("#status.ready")
        await page.wait_for("#status.trouble")
        async with running_server(settings):
            await page.wait_for("#entry:not([hidden])")
            await page.run("await page.locator('#key').fill('secret'); await page.keyboard.press('Enter')")
            await page.wait_for("#status.ready")


async def test_a_long_name_of_a_model_fits_a_phone(server: str, browser: Browser) -> None:
    async with browser.page(width=390, height=800) as page, aiohttp.ClientSession() as session:
        await visit(page, server)
        async with session.post(server + "/responses", json={"model": "m" * 100, "input": "hi"}):
            pass
        await page.run("await page.locator('.turn').click(); await page.locator('.column').first().waitFor()")
        assert await page.run("return await page.evaluate(() => document.documentElement.scrollWidth)") <= 390


async def test_a_browser_that_does_not_let_it_copy_is_told(server: str, browser: Browser) -> None:
    async with browser.page() as page:
        await visit(page, server)
        # As on a page that came over http from another machine.
        await page.run("await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }))")
        await page.run("await page.getByRole('button', { name: 'Copy base URL' }).click()")
        await page.run("await page.getByText('Not copied').waitFor()")
        assert await page.run("return complaints") == []


async def test_what_it_copies_can_be_pasted(server: str, browser: Browser) -> None:
    async with browser.page() as page:
        await page.run("await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])")
        await visit(page, server)
        await tool_loop(server)
        await page.wait_for(".turn.done .refused")

        async def copied(button: str) -> str:
            text: str = await page.run(
                "await page.evaluate(() => navigator.clipboard.writeText(''));"
                " await page.getByRole('button', { name: given, exact: true }).click();"
                " const read = () => page.evaluate(() => navigator.clipboard.readText());"
                " for (;;) { const text = await read(); if (text) return text; }",
                button,
            )
            return text

        assert await copied("Copy base URL") == server
        await page.run("await page.locator('#plugins summary').click();"
                       " await page.locator('#plugin').selectOption('Smart Connections')")  # fmt: skip
        assert await copied("Copy Hostname") == "127.0.0.1"
        assert await copied("Copy Model Name") == await copied("Copy model")
        await page.run("await page.locator('#plugin').selectOption('Copilot')")
        assert await copied("Copy API key") == "tagcall"
        assert await page.text("#where") == next(each.where for each in PLUGINS if each.name == "Copilot")
        await page.run("await page.locator('#plugins summary').click()")
        await page.run("await page.locator('.turn').last().click(); await page.locator('.column').first().waitFor()")
        command, url, *_, body = shlex.split(await copied("Copy as curl"))
        assert (command, url) == ("curl", server + "/chat/completions")
        assert json.loads(body)["tools"][0]["function"]["description"] == HOSTILE
        assert json.loads(await copied("Copy as JSON"))["blocks"][0]["block"] == REPAIRED


async def test_a_turn_is_saved_as_a_fixture_that_replays(server: str, browser: Browser, tmp_path: Path) -> None:
    async with browser.page() as page:
        await visit(page, server)
        await tool_loop(server, note="# A\nBeans.")
        await page.wait_for(".turn.done .refused")
        await page.run("await page.locator('.turn').last().click(); await page.locator('.column').first().waitFor()")
        name = await page.run(
            "const [download] = await Promise.all([page.waitForEvent('download'),"
            " page.getByRole('button', { name: 'Save as fixture' }).press('Enter')]);"
            " await page.locator('#buttons button:focus').getByText('Save as fixture').waitFor();"
            " await download.saveAs(given); return download.suggestedFilename()",
            str(tmp_path / "turn.zip"),
        )
        assert await page.run("return complaints") == []
    assert name == "what-is-in-a-md.zip"
    with zipfile.ZipFile(tmp_path / "turn.zip") as archive:
        archive.extractall(tmp_path / "fixtures")
    assert await run_replay(tmp_path / "fixtures", ReplayOptions()) == 0


async def test_a_turn_is_run_again_and_its_lines_are_opened(server: str, browser: Browser) -> None:
    async with browser.page(width=390) as page:
        await visit(page, server)
        await tool_loop(server, note="# A\nBeans.")
        await page.wait_for(".turn.done .refused")
        await page.run("await page.locator('.turn').last().click(); await page.locator('.column').first().waitFor();"
                       " await page.getByRole('button', { name: 'Run again' }).press('Enter')")  # fmt: skip
        await page.run("await page.locator('.turn').getByText('this page').first().waitFor()")
        await page.wait_for(".turn.done[aria-current=true] .repaired")
        assert await page.count(".turn") == 3
        lines = await page.run(
            "const [tab] = await Promise.all([page.context().waitForEvent('page'),"
            " page.getByRole('link', { name: 'Raw JSON-RPC lines' }).click()]);"
            " await tab.waitForLoadState(); return await tab.evaluate(() => document.body.innerText)"
        )
        assert '"method": "turn/start"' in lines
        assert await page.run("return await page.evaluate(() => document.documentElement.scrollWidth)") <= 390
        assert await page.run("return complaints") == []


async def test_a_test_question_shows_one_whole_tool_loop(server: str, model: ScriptedModel, browser: Browser) -> None:
    model.choose = None
    model.push(Reply([Message(write_call("read", '{"note": "welcome.md"}'))]))
    model.push(Reply([Message("It opens in May.")]))
    async with browser.page() as page:
        await visit(page, server)
        await page.run("await page.getByRole('button', { name: 'Send a test question' }).press('Enter')")
        await page.wait_for("#trial.ready")
        assert "called a tool in" in await page.text("#trial")
        assert await page.count(".group") == 1
        assert await page.count(".turn.done") == 2
        assert "It opens in May." in await page.text("#columns")
        assert await page.run("return complaints") == []


SCROLLS = "[...document.querySelectorAll('.column pre')].find((each) => each.scrollHeight > each.clientHeight)"


async def open_turn(page: BrowserPage, at: int = 0) -> None:
    await page.run("await page.locator('.turn').nth(given).click()", at)
    await page.wait_for("#detail .column")


async def test_the_arrows_scroll_the_text_that_has_the_focus(server: str, browser: Browser) -> None:
    async with browser.page(height=400) as page:
        await visit(page, server)
        await tool_loop(server, note="# A\n" + "line\n" * 100)
        await page.wait_for(".turn.done .refused")
        await open_turn(page)
        await page.run(f"await page.evaluate(() => {SCROLLS}.focus()); await page.keyboard.press('ArrowDown')")
        await page.run(f"await page.waitForFunction(() => {SCROLLS}.scrollTop > 0)")
        assert await page.count(".column pre:focus") == 1
        await page.run("await page.keyboard.press('j')")
        assert await page.count(".turn:focus") == 1
        assert await page.count("[aria-current=true]:focus") == 0


async def test_a_turn_that_runs_is_shown_as_it_goes_and_leaves_open_what_is_open(
    server: str, model: ScriptedModel, browser: Browser
) -> None:
    gate, words = asyncio.Event(), "The note is long. " * 100
    model.choose = lambda body: Reply([Message(words)], chunk=9, hold_after=100, gate=gate)
    async with browser.page() as page, aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        await visit(page, server)
        asked = {"model": "gpt-5.5", "input": "What is in a.md?", "stream": True}
        group.create_task(read_all(session, server + "/responses", asked))
        await page.wait_for(".turn.running")
        await open_turn(page)
        await page.run("await page.locator('.event summary').first().press('Enter');"
                       " await page.locator('.event[open]').waitFor()")  # fmt: skip
        await page.run("await page.waitForFunction((all) => document.querySelector('[aria-label=\"The model wrote\"]')"
                       ".innerText.length > all / 2 - 50, given)", len(words))  # fmt: skip
        gate.set()
        await page.wait_for(".turn.done[aria-current=true]")
        await page.run("await page.waitForFunction((all) => document.querySelector('[aria-label=\"The model wrote\"]')"
                       ".innerText.length > all - 50, given)", len(words))  # fmt: skip
        assert await page.count(".event[open]") == 1
        assert await page.count(".event summary:focus") == 1
        assert await page.run("return complaints") == []


async def read_all(session: aiohttp.ClientSession, url: str, body: Mapping[str, Any]) -> None:
    async with session.post(url, json=body) as response:
        await response.read()


async def test_an_open_page_forgets_the_turns_of_a_server_that_was_started_anew(
    model: ScriptedModel, browser: Browser, tmp_path: Path
) -> None:
    model.choose = reader
    backend = BACKENDS_UNDER_TEST[0].settings(model, tmp_path / "home")
    settings = Settings(port=free_port(), inspect=True, **backend)
    async with browser.page() as page:
        async with running_server(settings) as url:
            await visit(page, url)
            await tool_loop(url)
            await page.wait_for(".turn.done .refused")
            await open_turn(page)
        await page.wait_for("#status.trouble")
        # Of the one that is opened now nothing can be told: its name and its buttons are not those of the one before.
        await page.run("await page.locator('.turn').last().click()")
        await page.run("await page.locator('#columns').getByText('The server does not answer.').waitFor()")
        assert await page.count("#buttons > *") == 0
        async with running_server(settings):
            await page.wait_for("#status.ready")
            await page.wait_for("#none:not([hidden])")
            assert await page.count(".turn") == 0


async def test_whoever_comes_back_to_the_page_sees_how_the_server_is(server: str, browser: Browser) -> None:
    async with browser.page() as page:
        await visit(page, server)
        await page.run("await page.evaluate(() => { document.querySelector('#status').textContent = '?'; "
                       " document.dispatchEvent(new Event('visibilitychange')); });"
                       " await page.locator('#status').getByText('Ready').waitFor()")  # fmt: skip


async def test_a_turn_of_another_day_says_which(server: str, browser: Browser) -> None:
    async with browser.page() as page:
        await visit(page, server)
        told = await page.run(
            "return await page.evaluate(async () => {"
            " const { moment } = await import('/inspect/view.js'); return [86400, Date.now() / 1000].map(moment); })"
        )
        assert ["1970" in each or "/70" in each for each in told] == [True, False]


async def test_the_same_block_in_two_answers_has_the_mark_of_each(
    model: ScriptedModel, browser: Browser, tmp_path: Path
) -> None:
    """Of a model of which nothing is known a call without the key is doubted once, and taken when it comes again."""
    model.push(*[Reply([Message(write_call("read_note", '{"path": "a.md"}'))])] * 2)
    asked = {"model": "gpt-5.5", "input": "What is in a.md?", "tools": TOOLS}
    async with (
        inspected(model, tmp_path / "home", FixedHabit()) as server,
        browser.page() as page,
        aiohttp.ClientSession() as session,
    ):
        await visit(page, server)
        await read_all(session, server + "/responses", asked)
        await page.wait_for(".turn.done")
        await open_turn(page)
        marks = "return await page.locator('mark').evaluateAll((all) => all.map((each) => each.className))"
        assert await page.run(marks) == ["refused", "valid"]


async def test_a_turn_far_down_in_the_list_is_shown_beside_it(server: str, browser: Browser) -> None:
    async with browser.page() as page, aiohttp.ClientSession() as session:
        await visit(page, server)
        for _ in range(30):
            await read_all(session, server + "/responses", {"model": "gpt-5.5", "input": "hi", "stream": True})
        await page.run("await page.locator('.turn').nth(29).waitFor()")
        await open_turn(page, 25)
        seen = await page.run(
            "const seen = async (what) => { const box = await what.boundingBox(); return box.y > -1 && box.y < 780; };"
            " return [await seen(page.locator('.turn').nth(25)), await seen(page.locator('#detail-title'))]"
        )
        assert seen == [True, True]


async def test_on_a_phone_a_turn_is_shown_from_its_title_on_and_closed_by_a_finger(
    server: str, browser: Browser
) -> None:
    async with browser.page(width=390, height=500) as page, aiohttp.ClientSession() as session:
        await visit(page, server)
        for _ in range(12):
            await read_all(session, server + "/responses", {"model": "gpt-5.5", "input": "hi", "stream": True})
        await page.run("await page.locator('.turn').nth(11).waitFor()")
        await open_turn(page)
        await page.wait_for("#detail:focus")
        title = await page.run("return await page.locator('#detail-title').boundingBox()")
        assert 0 <= title["y"] < 100
        await page.run("await page.getByRole('button', { name: 'Close' }).click()")
        assert await page.count("#detail[hidden]") == 1
        assert await page.count(".turn:focus") == 1


async def test_what_is_long_or_read_from_the_right_fits(server: str, model: ScriptedModel, browser: Browser) -> None:
    model.choose = None
    model.push(Reply([Message("שלום עולם!")]))
    model.push(Refusal(400, {"message": "x" * 300, "type": "invalid_request_error"}))
    image = {"type": "input_image", "image_url": "data:image/png;base64," + "QUJD" * 1000}
    async with browser.page() as page, aiohttp.ClientSession() as session:
        await visit(page, server)
        for part in (image, {"type": "input_text", "text": "hi"}):
            body = {"model": "gpt-5.5", "input": [{"role": "user", "content": [part]}]}
            await read_all(session, server + "/responses", body)
        await page.wait_for(".turn.failed")
        await open_turn(page)
        await page.wait_for(".column .failure")
        assert await page.run("return await page.evaluate(() => document.documentElement.scrollWidth)") <= 1280
        await open_turn(page, 1)
        assert "(4022 characters)" in await page.text(".column")
        direction = (
            "return await page.locator('.column pre').last().evaluate((each) => getComputedStyle(each).unicodeBidi)"
        )
        assert await page.run(direction) == "plaintext"


async def chosen(page: BrowserPage) -> list[str]:
    """The questions of the turns that are shown."""
    found: list[str] = await page.run("return await page.locator('.turn .question').allTextContents()")
    return found


async def ask_all(url: str, model: ScriptedModel) -> None:
    """Three turns: one of another client, one of another model, one whose first answer was thrown away."""
    model.choose = None
    model.push(Reply([Message("Ten beans.")]), Reply([Message("Two peas.")]))
    for arguments in ("{}", '{"path": "a.md"}'):
        model.push(Reply([Message(write_call("read_note", arguments))]))
    strict = [{**TOOLS[0], "parameters": {**PARAMETERS, "required": ["path"]}}]
    for client, name, question in (
        ("Obsidian/1.9", "gpt-5.5", "How many beans?"),
        ("curl/8", "gpt-5.5-mini", "How many peas?"),
        ("Obsidian/1.9", "gpt-5.5", "What is in a.md?"),
    ):
        async with aiohttp.ClientSession(headers={"User-Agent": client}) as session:
            await read_all(session, url + "/responses", {"model": name, "input": question, "tools": strict})


async def test_turns_are_found_by_their_words_and_by_reason_client_and_model(
    server: str, model: ScriptedModel, browser: Browser
) -> None:
    await ask_all(server, model)
    everything = ["What is in a.md?", "How many peas?", "How many beans?"]
    async with browser.page() as page:
        await visit(page, server)
        await page.run("await page.locator('.turn').nth(2).waitFor()")
        assert await chosen(page) == everything
        # By what the model wrote, which stands in no row.
        await page.run("await page.locator('#search').fill('two peas')")
        await page.run("await page.waitForFunction(() => document.querySelectorAll('.turn').length === 1)")
        assert await chosen(page) == ["How many peas?"]
        await page.run("await page.locator('#search').fill('')")
        await page.run("await page.waitForFunction(() => document.querySelectorAll('.turn').length === 3)")
        for filter_, label, found in (
            ("reason", "the arguments did not fit a tool", ["What is in a.md?"]),
            ("client", "curl", ["How many peas?"]),
            ("model", "gpt-5.5", ["What is in a.md?", "How many beans?"]),
        ):
            await page.run(
                f"await page.locator('#{filter_}').selectOption({{ label: given.label }});"
                " await page.waitForFunction((count) => document.querySelectorAll('.turn').length === count,"
                " given.count)",
                {"label": label, "count": len(found)},
            )
            assert await chosen(page) == found
            await page.run(f"await page.locator('#{filter_}').selectOption({{ index: 0 }})")
        assert await page.run("return complaints") == []


async def test_a_flag_in_a_sentence_stands_on_one_line_at_any_width(
    model: ScriptedModel, tmp_path: Path, browser: Browser
) -> None:
    model.choose = reader
    settings = Settings(port=0, **BACKENDS_UNDER_TEST[0].settings(model, tmp_path))
    async with running_server(settings) as url, browser.page() as page:
        await tool_loop(url)
        await visit(page, url)
        await page.run("await page.locator('.turn').first().click()")
        await page.wait_for("#detail code")
        # The page is made narrower from inside, since a browser takes its time for each size of a window.
        broken = await page.run(
            "await page.setViewportSize({ width: 480, height: 800 });"
            "return await page.evaluate(() => {"
            "  const flags = [...document.querySelectorAll('code')], broken = [];"
            "  for (let width = 320; width < 480; width += 4) {"
            "    document.body.style.width = `${width}px`;"
            "    if (flags.some((flag) => flag.getClientRects().length !== 1)) broken.push(width);"
            "  }"
            "  return [flags.map((flag) => flag.textContent), broken];"
            "});"
        )
        assert broken == [["--inspect", "--inspect"], []]


async def test_a_second_prompt_shows_what_was_added_and_arguments_stand_beside_their_schema(
    server: str, model: ScriptedModel, browser: Browser
) -> None:
    await ask_all(server, model)
    async with browser.page(width=1300) as page:
        await visit(page, server)
        await open_turn(page)
        assert await page.run("return await page.locator('.prompt .role').allTextContents()") == [
            "user", "2 messages as in the prompt before", "user, added by tagcall",
        ]  # fmt: skip
        assert "do not fit the tool's parameters" in await page.text(".prompt div:last-child")
        assert await page.text(".turn .mark") == "first answer: read_note discarded"
        await page.run("await page.locator('.wrote summary', { hasText: 'and its schema' }).last().click()")
        arguments, schema = await page.run("return await page.locator('details[open] .beside pre').allTextContents()")
        assert json.loads(arguments) == {"path": "a.md"}
        assert json.loads(schema)["required"] == ["path"]
        boxes = await page.run(
            "const boxes = await page.locator('details[open] .beside pre').all();"
            " return Promise.all(boxes.map((each) => each.boundingBox()))"
        )
        assert boxes[0]["y"] == boxes[1]["y"]
        # The prompt and the answer have the room: no line of some words is broken at each of them.
        widths = await page.run(
            "const width = async (each) => (await page.locator(each).boundingBox()).width;"
            " return Promise.all(['.prompt', '.wrote'].map(width))"
        )
        assert min(widths) > 400


class SmallChat(ScriptedChat):
    """As llama.cpp's server lists its model."""

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "small", "meta": {"n_ctx": 2048}}, {"id": "another"}]})


async def test_a_row_tells_how_full_the_context_of_a_local_model_is_where_its_server_tells_the_size(
    aiohttp_server: AiohttpServer, browser: Browser
) -> None:
    chat = await aiohttp_server(SmallChat().app)
    async with (
        running_server(Settings(port=0, backend=str(chat.make_url("/v1")))) as url,
        browser.page() as page,
        aiohttp.ClientSession() as session,
    ):
        await visit(page, url)
        for name in ("small", "another"):
            await read_all(session, url + "/responses", {"model": name, "input": "Hi."})
        await page.run("await page.locator('.turn.done').nth(1).waitFor()")
        another, small = await page.run("return await page.locator('.turn .facts').allInnerTexts()")
        assert "100 \u2192 20 tokens, 6 % of 2,048" in small
        assert "100 \u2192 20 tokens" in another
        assert "%" not in another


async def test_a_refused_block_shows_its_name_and_its_arguments(server: str, browser: Browser) -> None:
    async with browser.page() as page:
        await visit(page, server)
        await tool_loop(server)
        await page.wait_for(".turn.done .refused")
        await open_turn(page)
        await page.run("await page.locator('.wrote summary', { hasText: 'arguments of burn_note' }).first().click()")
        assert await page.text("details[open] .beside pre") == "{}"
        assert "refused: burn_note is not among the tools that were offered" in await page.text(".wrote pre")


async def test_a_request_is_edited_and_sent_again_and_both_are_held_against_each_other(
    server: str, model: ScriptedModel, browser: Browser
) -> None:
    model.choose = None
    model.push(Reply([Message("Ten beans.\nThat is all.")]), Reply([Message("Two peas.\nThat is all.")]))
    async with browser.page() as page, aiohttp.ClientSession() as session:
        await visit(page, server)
        await read_all(session, server + "/responses", {"model": "gpt-5.5", "input": "How many beans?", "tools": TOOLS})
        await page.wait_for(".turn.done")
        await open_turn(page)
        await page.run(
            "await page.getByRole('button', { name: 'Edit and send again' }).click();"
            " const text = page.getByRole('textbox', { name: 'The request' });"
            " const asked = JSON.parse(await text.inputValue());"
            " await text.fill(JSON.stringify({ ...asked, input: 'How many peas?', tools: [] }));"
            " await page.getByRole('button', { name: 'Send', exact: true }).click()"
        )
        await page.run("await page.locator('.turn[aria-current=true]', { hasText: 'How many peas?' }).waitFor()")
        await page.run("await page.locator('#columns .wrote', { hasText: 'Two peas.' }).waitFor()")
        assert await page.count("#editor textarea") == 0
        await page.run(
            "await page.locator('#other option', { hasText: 'what this one repeats' }).waitFor({ state: 'attached' });"
            " await page.locator('#other').selectOption({ index: 1 })"
        )
        await page.wait_for("#comparison table")
        assert await page.count("#columns[hidden]") == 1
        rows = await page.run("return await page.locator('#comparison tr').allInnerTexts()")
        cells = {name: values for name, *values in (row.split("\t") for row in rows)}
        assert cells["tools"] == ["1", "0"]
        assert cells["what came of it"] == ["1 tool offered, none asked for", "answered"]
        earlier, later = await page.run(
            "return Promise.all(['earlier', 'later'].map((each) =>"
            " page.getByRole('region', { name: `The model wrote, ${each}` }).locator('pre').textContent()))"
        )
        assert earlier.split("\n")[:2] == ["- Ten beans.", "  That is all."]
        assert later.split("\n")[:2] == ["+ Two peas.", "  That is all."]
        await page.run("await page.locator('#other').selectOption({ index: 0 })")
        await page.run("await page.locator('#columns .wrote').waitFor()")
        assert await page.run("return complaints") == []


async def test_what_cannot_be_sent_says_why_and_leaves_the_text(server: str, browser: Browser) -> None:
    async with browser.page() as page:
        await visit(page, server)
        await tool_loop(server)
        await page.wait_for(".turn.done .refused")
        await open_turn(page)
        await page.run(
            "await page.getByRole('button', { name: 'Edit and send again' }).click();"
            " await page.getByRole('textbox', { name: 'The request' }).fill('no JSON');"
            " await page.getByRole('button', { name: 'Send', exact: true }).click()"
        )
        await page.run("await page.locator('#trouble').getByText('JSON').waitFor()")
        assert await page.run("return await page.locator('#editor textarea').inputValue()") == "no JSON"
