"""The flags of `tagcall record`, besides those of `serve`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from ...errors import UsageError


class RecordOptions(Struct, frozen=True, kw_only=True):
    """`redact` are patterns as `Scrubber` has them, `replace` as in `Recorder`."""

    folder: Path
    redact: list[re.Pattern[str]] = field(default_factory=list)
    replace: bool = False


def add_record_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="the folder for the fixtures")
    parser.add_argument(
        "--redact",
        action="append",
        default=[],
        metavar="PATTERN",
        help="take out text that matches this regular expression, or its first group. Repeatable",
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="replace the fixture in DIR that answers the same request, if the answer differs",
    )


def record_options(arguments: Mapping[str, Any]) -> RecordOptions:
    """Raises `UsageError`."""
    patterns = [_pattern(text) for text in arguments["redact"]]
    return RecordOptions(folder=arguments["folder"], redact=patterns, replace=arguments["replace"])


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"--redact {text} is not a regular expression: {error}.") from None
