"""Logging: structlog to standard error, for people or as one JSON object a line.

What may be logged is decided where it is logged: ids, names, numbers. Here it is made harmless: one event
stays one line whatever a client called its model, and aiohttp does not log what clients sent.
"""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

# The values of `--log-level`, and `none` for commands that say themselves what happened.
LEVELS = {
    "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR,
    "none": logging.CRITICAL,
}  # fmt: skip

# Characters of a client's own word that a line shows.
LONGEST = 200


def _harmless(text: str) -> str:
    """Without line breaks, terminal codes and characters that reverse what is read."""
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


def configure(level: str, form: str) -> None:
    """Sets up the process's logging. `level` and `form` are the settings' values."""
    threshold = LEVELS[level]
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0)
    )
    structlog.configure(
        processors=[
            _make_harmless,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=max(threshold, logging.WARNING), stream=sys.stderr, format="%(levelname)s %(message)s")
    server_log = logging.getLogger("aiohttp.server")
    for old in list(server_log.filters):
        server_log.removeFilter(old)
    server_log.addFilter(_WithoutClientBytes())
