"""Logging: structlog to standard error, for people or as one JSON object a line.

Each caller logs only ids, names and numbers. This module makes them harmless: one event stays one line, whatever a
client called its model, and aiohttp does not log what clients sent.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

# The values of `--log-level`, and `none` for commands that print their own messages.
LEVELS = {
    "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR,
    "none": logging.CRITICAL,
}  # fmt: skip

# Characters of a client's text that a line shows.
LONGEST = 200


def _harmless(text: str) -> str:
    """`text` without line breaks, terminal codes and characters that reverse the direction."""
    text = text if len(text) <= LONGEST else text[:LONGEST] + "..."
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _make_harmless(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = _harmless(value)
    return event


class _WithoutClientBytes(logging.Filter):
    """aiohttp logs the offending header line, keys included: keep the fact, drop the words."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = "a request could not be read", ()
        record.exc_info = record.exc_text = record.stack_info = None
        return True


class _Json(logging.Formatter):
    """Formats the records of libraries as our JSON lines."""

    def format(self, record: logging.LogRecord) -> str:
        return _json_line(_harmless(record.getMessage()), record.levelno, datetime.fromtimestamp(record.created, UTC))


def _json_line(event: str, level: int, time: datetime, **more: object) -> str:
    timestamp = time.isoformat().replace("+00:00", "Z")
    return json.dumps({"event": event, "level": logging.getLevelName(level).lower(), "timestamp": timestamp, **more})


def _without_small_talk(_logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Drops all lines that a person at the terminal does not need. Turns, refusals and faults stay."""
    if event["event"] == "request":
        if event["outcome"] == "done" and "model" not in event:
            raise structlog.DropEvent
    elif method in {"debug", "info"}:
        raise structlog.DropEvent
    return event


# The words for a request's `outcome`.
OUTCOMES = {"done": "answered", "client gone": "the client left", "refused": "refused", "failed": "failed"}


def request_line(event: EventDict) -> str:
    """A turn as a line for people: time, client, model, seconds, and its outcome in words."""
    outcome = OUTCOMES[event["outcome"]]
    said = event.get("said")
    if event["outcome"] == "done" and said:
        outcome, said = said, None
    if error := event.get("error"):
        outcome += f": {error} ({event['error_status']})"
    elif event["outcome"] in {"refused", "failed"}:
        outcome += f" ({event['status']})"
    if said and (event.get("calls") or event.get("again") or event.get("refused")):
        outcome += f"; {said}"
    if origin := event.get("origin"):
        outcome += f", from {origin}"
    what = event.get("model") or f"{event['method']} {event['path']}"
    seconds = f"{event['duration_ms'] / 1000:.1f} s"
    return "  ".join(filter(None, [event["timestamp"], event.get("client"), what, seconds, outcome]))


class _ForPeople:
    """A line of `request_line` for each turn; everything else as structlog shows it."""

    def __init__(self) -> None:
        self._other = structlog.dev.ConsoleRenderer(colors=in_colour(sys.stderr), pad_event_to=0)

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> str:
        return request_line(event) if event["event"] == "request" else self._other(logger, method, event)


class _StandardError:
    """Standard error, if there is one. If it cannot be written, the line is lost, and no answer fails for it."""

    def write(self, text: str) -> None:
        if sys.stderr is not None:
            with suppress(OSError, ValueError):
                sys.stderr.write(text)

    def flush(self) -> None:
        if sys.stderr is not None:
            with suppress(OSError, ValueError):
                sys.stderr.flush()


STANDARD_ERROR = cast("TextIO", _StandardError())


def tell(sentence: str, level: int = logging.WARNING, **more: object) -> None:
    """Writes a sentence to standard error, at every `--log-level`. With JSON logs it is a line with `more` beside the
    sentence.
    """
    line = _json_line(sentence, level, datetime.now(UTC), **more) if _Form.now == "json" else sentence
    print(line, file=STANDARD_ERROR, flush=True)


def tell_as(form: str) -> None:
    """Chooses the form in which `tell` writes: `json` or `console`."""
    _Form.now = form


class _Form:
    """The form in which `tell` writes."""

    now = "console"


def discard_output() -> None:
    """Sends standard output nowhere: its reader has gone, and the rest of its buffer must not fail at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def obeys_codes(out: TextIO | None) -> bool:
    """Whether `out` is there, and a terminal that can do more than show lines."""
    return out is not None and out.isatty() and os.environ.get("TERM") != "dumb"


def in_colour(out: TextIO | None) -> bool:
    """Whether `out` can show colours, and nobody has set NO_COLOR. https://no-color.org"""
    return obeys_codes(out) and not os.environ.get("NO_COLOR")


def configure(level: str, form: str) -> None:
    """Sets up the process's logging. `level` and `form` are the settings' values."""
    threshold = LEVELS[level]
    tell_as(form)
    for_people = form == "console" and level != "debug" and on_terminal()
    renderer: Processor
    if form == "json":
        renderer = structlog.processors.JSONRenderer()
    elif for_people:
        renderer = _ForPeople()
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=in_colour(sys.stderr), pad_event_to=0)
    stamp = (
        structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False)
        if for_people
        else structlog.processors.TimeStamper(fmt="iso", utc=True)
    )
    structlog.configure(
        processors=[
            *([_without_small_talk] if for_people else []),
            _make_harmless,
            structlog.processors.add_log_level,
            stamp,
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(STANDARD_ERROR),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else logging.Formatter("%(levelname)s %(message)s"))
    logging.basicConfig(level=max(threshold, logging.WARNING), handlers=[handler])
    server_log = logging.getLogger("aiohttp.server")
    for old in list(server_log.filters):
        server_log.removeFilter(old)
    server_log.addFilter(_WithoutClientBytes())
