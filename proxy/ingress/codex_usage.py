"""GET /api/codex/usage: the rest of the backend's quota, in the form in which codex asks the service of its login."""

from __future__ import annotations

import time
from collections.abc import Sequence

from aiohttp import web

from ..quota import MAIN_LIMIT, Quota, QuotaWindow
from .bodies import json_reply
from .state import BACKEND

# Of an account whose plan is not told, as of one that has none.
NO_PLAN = "unknown"


async def codex_usage(request: web.Request) -> web.StreamResponse:
    return json_reply(usage_payload(request.app[BACKEND].load().quota, time.time()))


def usage_payload(limits: Sequence[Quota], now: float) -> dict[str, object]:
    """In the service's words. Without a quota it is the answer of an account that has no limits."""
    main = next((quota for quota in limits if quota.limit == MAIN_LIMIT), None)
    return {
        "plan_type": (main and main.plan) or NO_PLAN,
        "rate_limit": _rate_limit(main, now) if main else None,
        "credits": _credits(main) if main else None,
        "additional_rate_limits": [
            {
                "limit_name": quota.name or quota.limit,
                "metered_feature": quota.limit,
                "rate_limit": _rate_limit(quota, now),
            }
            for quota in limits
            if quota.limit != MAIN_LIMIT
        ],
    }


def _rate_limit(quota: Quota, now: float) -> dict[str, object]:
    windows = {window.name: _window(window, now) for window in quota.windows}
    return {
        "allowed": not quota.exhausted,
        "limit_reached": quota.exhausted,
        "primary_window": windows.get("primary"),
        "secondary_window": windows.get("secondary"),
    }


def _window(window: QuotaWindow, now: float) -> dict[str, int]:
    end = window.resets_at or int(now)
    return {
        "used_percent": window.used_percent,
        "limit_window_seconds": (window.minutes or 0) * 60,
        "reset_after_seconds": max(0, end - int(now)),
        "reset_at": end,
    }


def _credits(quota: Quota) -> dict[str, object]:
    unlimited = quota.credits == "unlimited"
    return {
        "has_credits": quota.credits is not None,
        "unlimited": unlimited,
        "balance": None if unlimited else quota.credits,
    }
