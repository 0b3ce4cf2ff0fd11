"""A page of a real headless Chromium, driven from a test line by line."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from .codex_programs import child_environment
from .node_clients import CLIENTS, installed_browser, installed_node
from .patience import PATIENCE

# Characters that a line of an answer may have.
LINE = 1 << 24


class Browser:
    """A process of Chromium, which shows a page at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @asynccontextmanager
    async def page(self, *, width: int = 1280, height: int = 800, scheme: str = "light") -> AsyncIterator[BrowserPage]:
        """An empty one, with none of the cookies and the like of those before it."""
        await self.tell({"open": {"width": width, "height": height, "scheme": scheme}})
        try:
            yield BrowserPage(self)
        finally:
            await self.tell({"close": True})

    async def tell(self, what: Mapping[str, object]) -> Any:
        """What comes of it. Raises what it threw, as far as its process tells."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        async with asyncio.timeout(PATIENCE):
            line = await self._process.stdout.readline()
            assert line, (await self._process.stderr.read()).decode()
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["value"]


class BrowserPage:
    """`run` the body of a JavaScript function, which has Playwright's `page`, `given`, and the page's `complaints`."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    async def run(self, body: str, given: object = None) -> Any:
        """What the function returns."""
        return await self._browser.tell({"body": body, "given": given})

    async def text(self, selector: str) -> str:
        """The text of the first element for a selector, once there is one."""
        found: str = await self.run("return await page.locator(given).first().innerText()", selector)
        return found

    async def count(self, selector: str) -> int:
        found: int = await self.run("return await page.locator(given).count()", selector)
        return found

    async def wait_for(self, selector: str) -> None:
        await self.run("await page.locator(given).first().waitFor()", selector)


@asynccontextmanager
async def running_browser(home: Path, arguments: Sequence[str] = ()) -> AsyncIterator[Browser]:
    """A browser that is started with `arguments`."""
    node, browser = installed_node(), installed_browser()
    process = await asyncio.create_subprocess_exec(
        node,
        str(CLIENTS / "drive.mjs"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=child_environment(home),
        limit=LINE,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps({"browser": browser, "args": [*arguments]}).encode() + b"\n")
    try:
        yield Browser(process)
        process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def browser_page(home: Path, *, arguments: Sequence[str] = (), **look: Any) -> AsyncIterator[BrowserPage]:
    """An empty page of a browser of its own; `look` as that of `Browser.page`."""
    async with running_browser(home, arguments) as browser, browser.page(**look) as page:
        yield page
