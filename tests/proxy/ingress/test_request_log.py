"""The line that a request leaves in the log."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from proxy.errors import BackendError
from proxy.ingress.request_log import RequestLog, client_name
from proxy.schema.coercion import Coercion
from proxy.turn import Reason


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
    entry.turn.counts["unchecked"]["the check takes too long"] += 1
    entry.turn.conversation.truncated = 3
    with capture_logs() as lines:
        entry.write(200)
    assert lines[0]["unchecked"] == {"the check takes too long": 1}
    assert lines[0]["truncated"] == 3


def test_rules_and_reasons_are_named_in_words() -> None:
    entry = RequestLog("req_1", "POST", "/responses")
    entry.turn.again.append(Reason.ARGUMENTS_MISFIT)
    entry.turn.counts["repaired"][Coercion.NUMBER] += 1
    with capture_logs() as lines:
        entry.write(200)
    assert repr(lines[0]["again"]) == "['arguments_misfit']", "as a line of the log shows it"
    assert repr(lines[0]["repaired"]) == "{'coerced_number': 1}"


@pytest.mark.parametrize(
    ("status", "failed", "outcome"),
    [
        (200, None, "done"),
        (401, None, "refused"),
        (500, None, "failed"),
        (200, BackendError("x", status=503), "failed"),
    ],
)
def test_what_was_refused_or_failed_is_not_done(status: int, failed: BackendError | None, outcome: str) -> None:
    entry = RequestLog("req_1", "POST", "/responses", failed=failed)
    with capture_logs() as lines:
        entry.write(status)
    assert lines[0]["outcome"] == outcome


@pytest.mark.parametrize(
    ("origin", "agent", "name"),
    [
        ("app://obsidian.md", "Mozilla/5.0", "Obsidian"),
        ("capacitor://localhost", "", "Obsidian"),
        ("", "OpenAI/Python 2.9.0", "OpenAI"),
        ("", "curl/8.1", "curl"),
        ("", "", ""),
    ],
)
def test_a_client_is_named_in_a_word(origin: str, agent: str, name: str) -> None:
    assert client_name(origin, agent) == name
