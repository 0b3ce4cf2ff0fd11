"""Where requests go: the dialects of a path, and what of OpenAI's API is not here."""

from __future__ import annotations

import pytest

from proxy.ingress.dialects import DIALECT_HEADER, DIALECTS
from proxy.ingress.routes import API, FOREIGN, ROUTES, UNSERVED
from proxy.settings import SETTINGS
from tests.support.http_client import client, error_of


async def test_anthropics_batches_are_batches() -> None:
    async with client() as (session, url):
        for path in ("/messages/batches", "/messages/batches/b/results"):
            async with session.get(url + path) as response:
                assert response.status == 404
                error = (await response.json())["error"]
            assert error["type"] == "not_found_error"
            assert error["message"] == f"tagcall does not serve /v1/batches: {UNSERVED['batches']}"


@pytest.mark.parametrize("name", sorted(UNSERVED))
async def test_a_part_of_the_api_that_is_not_here_says_what_to_do_instead(name: str) -> None:
    async with client() as (session, url):
        for path in (f"{url}/{name}", f"{url.removesuffix('/v1')}/{name}/", f"{url}/{name}/more"):
            async with session.post(path, json={}) as response:
                assert response.status == 404
                error = await error_of(response)
            assert error["code"] == "unsupported_endpoint"
            assert error["message"] == f"tagcall does not serve /v1/{name}: {UNSERVED[name]}"


@pytest.mark.parametrize("path", ["", "/models", "/chat/completions", "/models/gpt-5.5"])
async def test_a_websocket_at_another_path_is_told_where_it_is_served(path: str) -> None:
    """Some clients open it at the base URL as it was given."""
    opening = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    async with client() as (session, url), session.get(f"{url}{path}", headers=opening) as response:
        assert response.status == 404
        error = await error_of(response)
    assert error["code"] == "unsupported_endpoint"
    assert error["message"] == f"No WebSocket is served at /v1{path}: open it at /v1/responses or /v1/realtime."


@pytest.mark.parametrize("name", sorted(FOREIGN))
async def test_another_api_is_named_with_the_address_for_this_one(name: str) -> None:
    async with client(base_path="/llm") as (session, url):
        root = url.removesuffix("/v1")
        async with session.post(f"{root}/{name}/more", json={}) as response:
            assert response.status == 404
            error = await error_of(response)
    assert error["code"] == "unsupported_endpoint"
    assert error["message"].startswith(f"This is {FOREIGN[name]} API")
    assert error["message"].endswith(f"with this address: {root.removesuffix('/llm')}/llm/v1")


def test_nothing_is_both_served_and_not() -> None:
    of_codex = "/api/codex/usage"  # stands where all else is Ollama's
    assert not {route.split("/")[1] for route in ROUTES if route != of_codex} & {*UNSERVED, *FOREIGN}
    assert not set(UNSERVED) & set(FOREIGN)


async def test_an_unknown_path_is_told_how_base_urls_end() -> None:
    async with client() as (session, url), session.get(f"{url}/chat/completions/models") as response:
        assert response.status == 404
        error = await error_of(response)
    assert error["code"] is None
    assert error["message"].startswith("Invalid URL (GET /v1/chat/completions/models).")
    assert "/v1 and nothing behind it" in error["message"]
    served = error["message"].partition(" tagcall serves ")[2].rstrip(".").split(", ")
    assert served == [route if route.startswith("/api/") else f"/v1{route}" for route in API]
    assert "/v1/responses" in served
    assert not [path for path in served if path.startswith(("/v1/inspect", "/v1/health", "/v1/readyz", "/v1/metrics"))]


async def test_an_unknown_path_of_ollamas_api_is_told_the_address_without_v1() -> None:
    async with client() as (session, url), session.get(f"{url.removesuffix('/v1')}/api/blobs") as response:
        assert response.status == 404
        message = (await response.json())["error"]
    assert "The base URL is the address of this server with nothing behind it. " in message
    assert ", /api/chat, " in message


async def test_a_dialect_that_there_is_not_is_refused_with_those_there_are() -> None:
    async with client("Hello") as (session, url):
        async with session.post(f"{url}/responses", headers={DIALECT_HEADER: "latin"}) as response:
            assert response.status == 400
            message = (await error_of(response))["message"]
    assert all(f"'{name}'" in message for name in DIALECTS)


def test_the_dialects_that_can_be_set_are_those_that_can_be_asked_for() -> None:
    (row,) = (row for row in SETTINGS if row.name == "dialect")
    assert row.choices == tuple(DIALECTS)
    assert all(answers in row.help for answers in DIALECTS.values())
