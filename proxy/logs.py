"""Logging: structlog to standard error, for people or as one JSON object a line.

What may be logged is decided where it is logged: ids, names, numbers. Two libraries are held back here,
because they would log what clients sent.
"""

from __future__ import annotations

import logging
import sys

import structlog

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class _WithoutClientBytes(logging.Filter):
    """aiohttp logs the offending header line, keys included: keep the fact, drop the words."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = "a request could not be read", ()
        record.exc_info = record.exc_text = record.stack_info = None
        return True


def configure(level: str, form: str) -> None:
    """Sets up the process's logging. `level` and `form` are the settings' values."""
    threshold = LEVELS[level]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0)
    )
    structlog.configure(
        processors=[
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
