"""A server behind a path of a reverse proxy, which may pass that path on or take it off."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import urljoin

import pytest

from proxy.errors import UsageError
from proxy.ingress.inspect.page import FILES
from proxy.settings import SETTINGS
from tests.support.http_client import client, error_of

(ROW,) = (row for row in SETTINGS if row.name == "base_path")
BODY = {"model": "m", "input": "hi"}
BROWSER = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate"}


@pytest.mark.parametrize(
    ("text", "path"), [("/llm", "/llm"), ("llm/", "/llm"), ("/a//b.c/", "/a/b.c"), ("/", ""), ("/v1/x", "/v1/x")]
)
def test_a_base_path_has_one_form(text: str, path: str) -> None:
    assert ROW.value(text, "--base-path") == path


@pytest.mark.parametrize("text", ["/llm/v1", "/a/../b", "/a b", "/a?b", "https://notes.example/llm", "/a/."])
def test_what_is_no_base_path_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--base-path: '"):
        ROW.value(text, "--base-path")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/llm/v1/models", 200), ("/llm/models/", 200), ("//llm//v1/v1/models", 200), ("/v1/models", 200),
        ("/models", 200), ("/llmx/models", 404), ("/v1/llm/models", 404), ("/llm/llm/models", 404),
        ("/models/llm", 404),
    ],
)  # fmt: skip
async def test_the_base_path_stands_at_the_beginning_once_and_whole_or_not_at_all(path: str, status: int) -> None:
    async with client(base_path="/llm") as (session, url):
        async with session.get(url.removesuffix("/llm/v1") + path) as response:
            assert response.status == status


@pytest.mark.parametrize("passed", ["/a/llm", ""], ids=["passed on", "taken off"])
async def test_everything_is_served_behind_it(passed: str) -> None:
    async with client("Hello", "Hello again", base_path="/a/llm") as (session, url):
        assert url.endswith("/a/llm/v1")
        root = url.removesuffix("/a/llm/v1") + passed
        async with session.post(f"{root}/v1/responses", json=BODY) as response:
            assert response.status == 200
        for path in ("healthz", "readyz", "metrics", "models", "v1/models", "", "inspect/state"):
            async with session.get(f"{root}/{path}") as response:
                assert response.status == 200, path
        async with session.get(f"{root}/v1/modles") as response:
            assert "with /a/llm/v1 and nothing behind it" in (await error_of(response))["message"]
        async with session.ws_connect(f"{root}/v1/responses") as socket:
            await socket.send_json({"type": "response.create", **BODY})
            assert (await socket.receive_json())["type"] == "response.created"


async def test_the_page_names_its_files_beside_itself() -> None:
    async with client(base_path="/a/llm") as (session, url):
        root = url.removesuffix("v1")
        for address in (root, f"{root}v1", root.removesuffix("/a/llm/") + "/"):
            async with session.get(address, headers=BROWSER) as response:
                names = re.findall(r'(?:href|src)="([^"]+)"', await response.text())
            assert {PurePosixPath(name).name for name in names} < set(FILES)
            for name in names:
                async with session.get(urljoin(address, name)) as response:
                    assert response.status == 200
        # Beside an address without a slash at its end are other people's files.
        async with session.get(root.rstrip("/"), headers=BROWSER, allow_redirects=False) as response:
            assert response.status == 308
            assert urljoin(root.rstrip("/"), response.headers["Location"]) == root


@pytest.mark.parametrize(("scheme", "secure"), [("http", False), ("https", True)])
async def test_the_pages_cookie_is_for_the_folder_of_its_routes(scheme: str, secure: bool) -> None:
    async with client(base_path="/llm", api_key=("secret",)) as (session, url):
        root = url.removesuffix("/llm/v1")
        headers = {"Origin": root, "Authorization": "Bearer secret", "X-Forwarded-Proto": scheme}
        async with session.post(f"{root}/llm/inspect/session", headers=headers) as response:
            cookie = response.headers["Set-Cookie"]
    assert "Path" not in cookie
    assert ("Secure" in cookie) is secure
