from __future__ import annotations

from proxy.near_names import near_name

KNOWN = ("--host", "--model", "--port")


def test_a_slip_of_the_pen_is_the_name_that_is_most_like_it() -> None:
    assert near_name("--prot", KNOWN, 0.75) == "--port"


def test_a_name_that_is_like_none_means_none() -> None:
    assert near_name("--quiet", KNOWN, 0.75) is None
