"""GET /api/codex/usage, as a backend's quota fills it."""

from __future__ import annotations

from proxy.ingress.codex_usage import usage_payload
from proxy.quota import MAIN_LIMIT, Quota, QuotaWindow
from tests.support.http_client import client


def test_each_window_is_told_with_the_seconds_until_its_end() -> None:
    windows = (QuotaWindow("primary", 43, 300, 1600), QuotaWindow("secondary", 100, 10080, 900))
    main = Quota(MAIN_LIMIT, windows, 0.0, plan="plus", credits="12.5")
    other = Quota("codex_spark", (QuotaWindow("primary", 1, 300, None),), 0.0, name="Spark")
    told = usage_payload([main, other], 1000.4)
    assert (told["plan_type"], told["credits"]) == (
        "plus",
        {"has_credits": True, "unlimited": False, "balance": "12.5"},
    )
    limit = {"allowed": True, "limit_reached": False}
    assert told["rate_limit"] == {
        **limit,
        "primary_window": {
            "used_percent": 43,
            "limit_window_seconds": 18000,
            "reset_after_seconds": 600,
            "reset_at": 1600,
        },
        "secondary_window": {
            "used_percent": 100,
            "limit_window_seconds": 604800,
            "reset_after_seconds": 0,
            "reset_at": 900,
        },
    }
    window = {"used_percent": 1, "limit_window_seconds": 18000, "reset_after_seconds": 0, "reset_at": 1000}
    assert told["additional_rate_limits"] == [
        {
            "limit_name": "Spark",
            "metered_feature": "codex_spark",
            "rate_limit": {**limit, "primary_window": window, "secondary_window": None},
        }
    ]


def test_a_limit_that_is_used_up_is_reached() -> None:
    told = usage_payload([Quota(MAIN_LIMIT, (QuotaWindow("primary", 100),), 0.0)], 0)
    assert isinstance(told["rate_limit"], dict)
    assert (told["rate_limit"]["allowed"], told["rate_limit"]["limit_reached"]) == (False, True)


async def test_without_a_quota_there_are_no_limits_and_a_key_is_wanted_as_elsewhere() -> None:
    async with client(api_key=("k",)) as (session, url):
        async with session.get(f"{url}/api/codex/usage", headers={"Authorization": "Bearer k"}) as response:
            assert (response.status, (await response.json())["rate_limit"]) == (200, None)
        async with session.get(f"{url}/api/codex/usage") as response:
            assert response.status == 401
