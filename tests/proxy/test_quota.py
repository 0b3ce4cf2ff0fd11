from __future__ import annotations

import time

import pytest

from proxy.quota import Quota, QuotaWindow

FULL, HALF = QuotaWindow("primary", 100, 300), QuotaWindow("primary", 50, 300)


@pytest.mark.parametrize(
    ("quota", "exhausted"),
    [
        (Quota("codex", (), 0), False),
        (Quota("codex", (HALF, QuotaWindow("secondary", 99)), 0), False),
        (Quota("codex", (FULL,), 0), True),
        (Quota("codex", (HALF, QuotaWindow("secondary", 100)), 0), True),
        (Quota("codex", (FULL,), 0, credits="12.50"), False),
        (Quota("codex", (HALF,), 0, reached="rate_limit_reached"), True),
        (Quota("codex", (HALF,), 0, reached="rate_limit_reached", credits="unlimited"), False),
        (Quota("codex", (HALF,), 0, reached="workspace_member_usage_limit_reached", credits="12.50"), True),
        (Quota("codex", (HALF, QuotaWindow("individual", 100)), 0, credits="12.50"), True),
    ],
)
def test_a_quota_is_used_up_when_its_service_would_refuse_a_turn(quota: Quota, exhausted: bool) -> None:
    assert quota.exhausted is exhausted


def test_a_person_is_told_what_is_left_and_until_when() -> None:
    soon = int(time.time()) + 600
    clock_time = time.strftime("%H:%M", time.localtime(soon))
    windows = (
        QuotaWindow("primary", 43, 300, soon),
        QuotaWindow("secondary", 17, 10_079),
        QuotaWindow("individual", 1),
    )
    quota = Quota("codex", windows, 0, plan="plus", credits="12.50", reached="rate_limit_reached")
    assert quota.in_words() == (
        f"57 % left of 5 hours (until {clock_time}), 83 % left of 7 days, 99 % left of the individual limit, "
        "rate limit reached, plan plus, credits 12.50"
    )


@pytest.mark.parametrize(
    ("minutes", "length"), [(1, "1 minute"), (30, "30 minutes"), (60, "1 hour"), (1440, "1 day"), (43_200, "30 days")]
)
def test_the_length_of_a_window_is_said_in_its_own_unit(minutes: int, length: str) -> None:
    assert Quota("codex", (QuotaWindow("primary", 0, minutes),), 0).in_words() == f"100 % left of {length}"


@pytest.mark.parametrize("resets_at", [2**40, 2**62, 2**80])
def test_no_moment_is_too_far_away_to_be_said(resets_at: int) -> None:
    assert (
        Quota("codex", (QuotaWindow("primary", 0, 60, resets_at),), 0)
        .in_words()
        .startswith("100 % left of 1 hour (until ")
    )
