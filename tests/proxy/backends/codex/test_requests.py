from __future__ import annotations

import pytest

from proxy.backends.codex.requests import ANSWERS, answer_request
from proxy.rpc import UnknownMethodError

GRANTS = {"accept", "approved", "acceptForSession", "approved_for_session"}


@pytest.mark.parametrize("method", ANSWERS)
def test_nothing_is_granted(method: str) -> None:
    assert not GRANTS & {str(value) for value in ANSWERS[method]().values()}


def test_a_request_nobody_knows_is_unknown() -> None:
    with pytest.raises(UnknownMethodError):
        answer_request("account/chatgptAuthTokens/refresh", {})
