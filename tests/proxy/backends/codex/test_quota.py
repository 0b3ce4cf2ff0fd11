from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.codex.quota import MOST_LIMITS, QuotaBook
from proxy.quota import Quota, QuotaWindow

# As 0.169 tells it after an answer with the headers of a ChatGPT account.
UPDATE: dict[str, Any] = {
    "limitId": "codex",
    "limitName": None,
    "normalModelSlug": None,
    "primary": {"usedPercent": 43, "windowDurationMins": 300, "resetsAt": 1795368729},
    "secondary": {"usedPercent": 17, "windowDurationMins": 10080, "resetsAt": 1795451529},
    "credits": {"hasCredits": True, "unlimited": False, "balance": "12.50"},
    "individualLimit": None,
    "spendControlReached": None,
    "planType": None,
    "rateLimitReachedType": None,
}
# And after one without them.
NO_NEWS = {**dict.fromkeys(UPDATE), "limitId": "codex"}
WINDOWS = (QuotaWindow("primary", 43, 300, 1795368729), QuotaWindow("secondary", 17, 10080, 1795451529))


def book(*updates: dict[str, Any]) -> QuotaBook:
    """One that heard these at the moments 1, 2, ..."""
    made = QuotaBook()
    for now, update in enumerate(updates, 1):
        made.hear({"rateLimits": update}, now)
    return made


def test_an_update_is_a_limit() -> None:
    assert book(UPDATE).limits == (Quota("codex", WINDOWS, 1, credits="12.50"),)


def test_old_versions_know_of_one_limit_and_do_not_name_it() -> None:
    old = {name: UPDATE[name] for name in ("primary", "secondary", "credits", "planType")}
    assert book(old).limits == book(UPDATE).limits


def test_who_has_no_quota_has_no_limits() -> None:
    assert book(NO_NEWS).limits == ()
    assert book({**NO_NEWS, "credits": {"hasCredits": False, "unlimited": False, "balance": "0"}}).limits == ()


@pytest.mark.parametrize("credits", [None, UPDATE["credits"]])  # codex carries the balance on by itself
def test_an_update_without_news_leaves_all_as_it_was(credits: object) -> None:
    assert book(UPDATE, {**NO_NEWS, "credits": credits}).limits == book(UPDATE).limits


def test_what_an_update_leaves_out_goes_on() -> None:
    first = {**UPDATE, "planType": "plus", "individualLimit": {"remainingPercent": 60, "resetsAt": 9}}
    [quota] = book(first, {**NO_NEWS, "primary": {"usedPercent": 44}}).limits
    assert (quota.plan, quota.credits, quota.told_at) == ("plus", "12.50", 2)
    assert quota.windows == (QuotaWindow("primary", 44), WINDOWS[1], QuotaWindow("individual", 40, None, 9))


def test_that_a_limit_is_reached_holds_until_its_windows_are_told_anew() -> None:
    reached = {**UPDATE, "rateLimitReachedType": "rate_limit_reached"}
    assert [quota.reached for quota in book(reached, NO_NEWS).limits] == ["rate_limit_reached"]
    assert [quota.reached for quota in book(reached, UPDATE).limits] == [None]
    assert [quota.reached for quota in book({**UPDATE, "spendControlReached": True}).limits] == [
        "spend_control_reached"
    ]


@pytest.mark.parametrize(
    ("told", "credits"),
    [
        ({"hasCredits": True, "unlimited": True, "balance": None}, "unlimited"),
        ({"hasCredits": True, "unlimited": False, "balance": None}, "some"),
        ({"hasCredits": False, "unlimited": False, "balance": "0"}, None),
    ],
)
def test_credits_are_their_balance(told: object, credits: str | None) -> None:
    assert [quota.credits for quota in book(UPDATE, {**UPDATE, "credits": told}).limits] == [credits]


def test_a_reading_names_all_limits_the_main_one_first() -> None:
    other = {**UPDATE, "limitId": "codex_a_model", "limitName": "a-model", "credits": None}
    known = book({**UPDATE, "limitId": "gone"})
    known.take({"rateLimits": UPDATE, "rateLimitsByLimitId": {"codex_a_model": other, "codex": UPDATE}}, 7)
    assert [(quota.limit, quota.name, quota.told_at) for quota in known.limits] == [
        ("codex", None, 7),
        ("codex_a_model", "a-model", 7),
    ]


def test_another_account_has_another_quota() -> None:
    known = QuotaBook()
    known.belongs_to({"type": "chatgpt", "email": "a@b.c"})
    known.hear({"rateLimits": UPDATE}, 1)
    known.belongs_to({"type": "chatgpt", "email": "a@b.c"})
    assert known.limits
    known.belongs_to({"type": "apiKey"})
    assert not known.limits


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(UPDATE)) | st.text(), inner),
    max_leaves=8,
)
WINDOW = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("usedPercent", "windowDurationMins", "resetsAt", "remainingPercent"), JSON)
)
SNAPSHOT = st.fixed_dictionaries({}, optional=dict.fromkeys(UPDATE, JSON | WINDOW))


@given(st.lists(st.fixed_dictionaries({}, optional={"rateLimits": SNAPSHOT | JSON, "rateLimitsByLimitId": JSON})))
def test_nothing_that_is_told_raises(told: list[dict[str, Any]]) -> None:
    known = QuotaBook()
    for each in told:
        known.hear(each, 1)
        known.take(each, 2)
        known.hear(each, 3)
    for quota in known.limits:
        assert all(0 <= window.used_percent <= 100 for window in quota.windows)
        assert isinstance(quota.in_words(), str)


def test_limits_do_not_grow_without_end() -> None:
    assert len(book(*({**UPDATE, "limitId": f"limit-{number}"} for number in range(100))).limits) == MOST_LIMITS
