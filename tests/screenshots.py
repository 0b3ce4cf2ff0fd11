"""`make screenshots`: the pictures of the page in the docs, of the demo's recorded answers."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from openai import AsyncOpenAI
from openai.types.responses import ResponseFunctionToolCall, ResponseInputItemParam

from proxy.cli.demo.loop import INSTRUCTIONS, QUESTION
from proxy.cli.demo.vault import TOOLS, Vault, samples_folder
from proxy.logs import configure
from proxy.replay.server import MODEL
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.browser_page import browser_page

IMAGES = Path(__file__).parent.parent / "docs" / "images"
# Name -> width, height and colours.
SHOTS = {"page": (1400, 760, "light"), "page-phone": (390, 760, "light")}


async def ask(url: str, folder: Path) -> None:
    """The demo's tool loop."""
    vault = Vault(folder / "vault")
    said: list[ResponseInputItemParam] = [{"role": "user", "content": QUESTION}]
    async with AsyncOpenAI(base_url=url, api_key="any", max_retries=0) as client:
        while True:
            response = await client.responses.create(model=MODEL, instructions=INSTRUCTIONS, input=said, tools=TOOLS)
            calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
            if not calls:
                return
            for call in calls:
                said.append(call.to_dict())  # type: ignore[arg-type]
                output = vault.call(call.name, json.loads(call.arguments))
                said.append({"type": "function_call_output", "call_id": call.call_id, "output": output})


async def main() -> None:
    folder = samples_folder()
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(
            port=0, backend=f"replay:{folder}", store="memory", inspect=True, call_key_secret=Path(home) / "call-key",
            speed="recorded", log_level="error",
        )  # fmt: skip
        configure(settings.log_level, settings.log_format)
        async with running_server(settings) as url:
            await ask(url, folder)
            for name, (width, height, scheme) in SHOTS.items():
                async with browser_page(Path(home), width=width, height=height, scheme=scheme) as page:
                    await page.run("await page.goto(given)", url.removesuffix("v1"))
                    await page.wait_for(".turn.done")
                    await page.run("await page.locator('.turn').nth(1).click()")
                    await page.wait_for(".column")
                    await page.run("await page.evaluate(() => scrollTo(0, 0))")
                    await page.run("await page.screenshot({ path: given })", str(IMAGES / f"{name}.png"))


if __name__ == "__main__":
    asyncio.run(main())
