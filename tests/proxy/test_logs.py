"""What is logged, and that it cannot be anything but one line an event."""

from __future__ import annotations

import io
import json
import logging
import re

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.backends import Finding
from proxy.cli.doctor import show
from proxy.logs import _Json, configure, tell


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


TURN = {"method": "POST", "path": "/responses", "outcome": "done", "status": 200, "model": "m", "duration_ms": 3210.0}


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    monkeypatch.setattr("proxy.logs.on_terminal", lambda: True)
    return capsys


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "m  3.2 s  answered"),
        ({"client": "Obsidian", "said": "called read, search"}, "Obsidian  m  3.2 s  called read, search"),
        (
            {"outcome": "client gone", "calls": ["read"], "said": "called read"},
            "m  3.2 s  the client left; called read",
        ),
        ({"outcome": "client gone", "status": None}, "m  3.2 s  the client left"),
        (
            {"outcome": "failed", "error": "backend_auth", "error_status": 503},
            "m  3.2 s  failed: backend_auth (503)",
        ),
        (
            {"model": None, "outcome": "refused", "status": 401, "error": "invalid_api_key", "error_status": 401},
            "POST /responses  3.2 s  refused: invalid_api_key (401)",
        ),
    ],
)
def test_on_a_terminal_a_turn_is_a_short_line(
    terminal: pytest.CaptureFixture[str], more: dict[str, object], said: str
) -> None:
    configure("info", "console")
    structlog.get_logger().info("request", **{**TURN, **more})
    time, line = terminal.readouterr().err.rstrip("\n").split("  ", 1)
    assert re.fullmatch(r"\d\d:\d\d:\d\d", time)
    assert line == said


def test_on_a_terminal_the_rest_is_behind_debug_and_warnings_stay(terminal: pytest.CaptureFixture[str]) -> None:
    for level, seen in (("info", ["backend_down"]), ("debug", ["codex_ready", "request", "backend_down"])):
        configure(level, "console")
        log = structlog.get_logger()
        log.info("codex_ready")
        log.info("request", **{name: value for name, value in TURN.items() if name != "model"} | {"path": "/models"})
        log.warning("backend_down")
        printed = terminal.readouterr().err
        assert [name for name in ("codex_ready", "request", "backend_down") if name in printed] == seen


def test_every_line_is_json_where_lines_are(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", "json")
    tell("tagcall is stopping.")
    record = logging.LogRecord("aiohttp.x", logging.ERROR, "", 0, "a\nb %s", ("c",), None)
    lines = [*capsys.readouterr().err.splitlines(), _Json().format(record)]
    assert [json.loads(line)["event"] for line in lines] == ["tagcall is stopping.", "a\\nb c"]
    configure("info", "console")
    tell("tagcall is stopping.")
    assert capsys.readouterr().err == "tagcall is stopping.\n"


@pytest.mark.parametrize(
    ("variable", "terminal", "coloured"), [("", "xterm", True), ("1", "xterm", False), ("", "dumb", False)]
)
def test_a_terminal_has_colours_unless_somebody_wants_none_or_it_knows_none(
    variable: str, terminal: str, coloured: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", variable)
    monkeypatch.setenv("TERM", terminal)
    for level in ("info", "debug"):
        configure(level, "console")
        structlog.get_logger().warning("backend_down")
        assert ("\x1b" in capsys.readouterr().err) is coloured
    show(Finding("port", True, "is free"))
    assert ("\x1b" in capsys.readouterr().out) is coloured


class Gone(io.StringIO):
    """What a stream is whose reader has gone, or whose disk is full."""

    def write(self, text: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


@pytest.mark.parametrize("stream", [Gone(), None])
def test_where_nothing_can_be_logged_nothing_is_raised(
    stream: io.StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    configure("info", "console")
    structlog.get_logger().warning("heard by nobody")
    tell("nor is this")
