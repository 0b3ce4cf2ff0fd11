"""What is logged, and that it cannot be anything but one line an event."""

from __future__ import annotations

import json
import logging

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.logs import configure


@pytest.fixture(autouse=True)
def _restored() -> None:
    structlog.reset_defaults()


@given(word=st.text(max_size=500))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("form", ["json", "console"])
def test_an_event_is_one_line_whatever_a_client_sent(form: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", form)
    structlog.get_logger().info("request", model=word)
    line = capsys.readouterr().err
    assert line.endswith("\n")
    assert line[:-1].isprintable()
    structlog.reset_defaults()


def test_json_lines_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", "json")
    structlog.get_logger().info("request", model="a\nb", status=200)
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["level"], line["model"], line["status"]) == ("request", "info", "a\\nb", 200)


def test_less_than_the_level_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    configure("warning", "console")
    structlog.get_logger().info("request")
    assert capsys.readouterr().err == ""


def test_what_aiohttp_says_of_a_bad_request_holds_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    configure("info", "console")
    logging.getLogger("aiohttp.server").error("Error handling request", exc_info=ValueError("Bearer sk-secret"))
    assert "sk-secret" not in caplog.text
