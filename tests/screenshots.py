"""`make screenshots`: the pictures of the README and the docs, of the demo's recorded answers."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from proxy.backends import replay_backend
from proxy.cli.demo.recording import RecordingBackend
from proxy.cli.demo.vault import samples_folder
from proxy.logs import configure
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.browser_page import browser_page
from tests.support.demo_loop import Hop, demo_loop
from tests.tool_loop_picture import Card, picture, scene_of

IMAGES = Path(__file__).parent.parent / "docs" / "images"


async def main() -> None:
    folder = samples_folder()
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(
            port=0, backend=f"replay:{folder}", store="memory", inspect=True, call_key_secret=Path(home) / "call-key",
            speed="recorded", log_level="error",
        )  # fmt: skip
        configure(settings.log_level, settings.log_format)
        backend = RecordingBackend(replay_backend(folder, speed="recorded"))
        async with running_server(settings, backend=backend) as url:
            scenes: list[list[Card]] = []
            before: Hop | None = None
            async for hop in demo_loop(url, folder / "vault"):
                (turn,) = backend.take()
                scenes.append(scene_of(hop, turn, before))
                before = hop
            (IMAGES / "tool-loop.svg").write_text(picture(scenes), "utf-8")
            async with browser_page(Path(home), width=1400, height=760, scheme="light") as page:
                await page.run("await page.goto(given)", url.removesuffix("v1"))
                await page.wait_for(".turn.done")
                await page.run("await page.locator('.turn').nth(1).click()")
                await page.wait_for(".column")
                await page.run("await page.evaluate(() => scrollTo(0, 0))")
                await page.run("await page.screenshot({ path: given })", str(IMAGES / "page.png"))


if __name__ == "__main__":
    asyncio.run(main())
