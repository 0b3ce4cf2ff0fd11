from __future__ import annotations

import pytest

from proxy.backends.codex.requests import ANSWERS, answer_request, thread_params, turn_params
from proxy.contracts import Prompt
from proxy.rpc import UnknownMethodError

GRANTS = {"accept", "approved", "acceptForSession", "approved_for_session"}


@pytest.mark.parametrize("method", ANSWERS)
def test_nothing_is_granted(method: str) -> None:
    assert not GRANTS & {str(value) for value in ANSWERS[method]().values()}


def test_a_request_nobody_knows_is_unknown() -> None:
    with pytest.raises(UnknownMethodError):
        answer_request("account/chatgptAuthTokens/refresh", {})


def test_a_tier_goes_with_the_turn_and_a_verbosity_with_its_thread() -> None:
    plain, asked = Prompt("m", None, ()), Prompt("m", None, (), tier="flex", verbosity="high")
    assert "config" not in thread_params(plain, None, None)
    assert "serviceTier" not in turn_params("t", plain, ())
    assert thread_params(asked, None, None)["config"] == {"model_verbosity": "high"}
    assert turn_params("t", asked, ())["serviceTier"] == "flex"
