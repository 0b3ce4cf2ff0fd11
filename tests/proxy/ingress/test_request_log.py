"""The line that a request leaves in the log."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from proxy.ingress.request_log import RequestLog


@pytest.mark.parametrize(("whole", "outcome", "status"), [(True, "done", 200), (False, "client gone", None)])
def test_a_client_that_hangs_up_has_gone_only_when_something_was_still_to_come(
    whole: bool, outcome: str, status: int | None
) -> None:
    entry = RequestLog("req_1", "POST", "/chat/completions", whole=whole)
    with capture_logs() as lines:
        entry.write(None)
    assert (lines[0]["outcome"], lines[0]["status"]) == (outcome, status)


def test_what_was_left_out_or_not_checked_is_said() -> None:
    entry = RequestLog("req_1", "POST", "/responses")
    entry.turn.unchecked["the check takes too long"] += 1
    entry.turn.truncated = 3
    with capture_logs() as lines:
        entry.write(200)
    assert lines[0]["unchecked"] == {"the check takes too long": 1}
    assert lines[0]["truncated"] == 3
