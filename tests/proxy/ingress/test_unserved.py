"""What of OpenAI's API is not here."""

from __future__ import annotations

import pytest

from proxy.ingress.routes import ROUTES
from proxy.ingress.unserved import UNSERVED
from tests.support.http_client import client, error_of


@pytest.mark.parametrize("name", sorted(UNSERVED))
async def test_a_part_of_the_api_that_is_not_here_says_what_to_do_instead(name: str) -> None:
    async with client() as (session, url):
        for path in (f"{url}/{name}", f"{url.removesuffix('/v1')}/{name}/", f"{url}/{name}/more"):
            async with session.post(path, json={}) as response:
                assert response.status == 404
                error = await error_of(response)
            assert error["code"] == "unsupported_endpoint"
            assert error["message"] == f"tagcall does not serve /v1/{name}: {UNSERVED[name]}"


def test_nothing_is_both_served_and_not() -> None:
    assert not {route.split("/")[1] for route in ROUTES} & set(UNSERVED)


async def test_an_unknown_path_is_told_how_base_urls_end() -> None:
    async with client() as (session, url), session.get(f"{url}/chat/completions/models") as response:
        assert response.status == 404
        error = await error_of(response)
    assert error["code"] == "unknown_url"
    assert "/v1 and nothing behind it" in error["message"]
