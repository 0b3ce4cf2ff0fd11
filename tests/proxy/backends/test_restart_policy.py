from __future__ import annotations

from proxy.backends.restart_policy import Pause, RestartHistory, RestartPolicy

POLICY = RestartPolicy()
OPEN = Pause(30.0, broken=True)


def history() -> RestartHistory:
    return RestartHistory(POLICY, jitter=lambda low, high: 1.0)


def test_pauses_grow_with_the_failures_in_a_row() -> None:
    it = RestartHistory(RestartPolicy(ends=100), jitter=lambda low, high: 1.0)
    pauses = [it.ended(0, lasted=0, proven=False).seconds for _ in range(9)]
    assert pauses == [0, 0.5, 1, 2, 4, 8, 16, 30, 30]


def test_pauses_are_jittered_by_a_fifth() -> None:
    it = RestartHistory(RestartPolicy(ends=100), jitter=lambda low, high: high)
    assert [it.ended(0, lasted=0, proven=False).seconds for _ in range(3)] == [0, 0.6, 1.2]


def test_three_starts_in_vain_open_the_breaker() -> None:
    it = history()
    assert [it.failed_to_start() for _ in range(3)] == [Pause(0), Pause(0.5), OPEN]


def test_five_ends_within_a_minute_open_the_breaker() -> None:
    it = history()
    assert [it.ended(10.0 * n, lasted=1, proven=False).broken for n in range(5)] == [False] * 4 + [True]


def test_ends_that_lie_apart_do_not() -> None:
    it = history()
    assert not any(it.ended(16.0 * n, lasted=1, proven=False).broken for n in range(20))


def test_after_the_breaker_one_start_decides() -> None:
    it = history()
    for _ in range(3):
        it.failed_to_start()
    assert it.failed_to_start() == OPEN
    assert it.ended(100, lasted=1, proven=False) == OPEN
    assert it.ended(200, lasted=1, proven=True) == Pause(0)
    assert [it.failed_to_start() for _ in range(3)] == [Pause(0), Pause(0.5), OPEN]


def test_what_lasted_or_did_its_work_starts_anew_at_once() -> None:
    it = history()
    for lasted, proven in ((60, False), (1, True)):
        assert it.ended(0, lasted=1, proven=False) == Pause(0)
        assert it.ended(0, lasted=1, proven=False) == Pause(0.5)
        assert it.ended(0, lasted=lasted, proven=proven) == Pause(0)
