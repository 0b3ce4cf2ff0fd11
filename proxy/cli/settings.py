"""`tagcall settings`: what is in force, and where each came from."""

from __future__ import annotations

import re
from typing import Any

from ..settings import SETTINGS
from ..sources import Sources

# Shown as set, and no more.
SECRET = frozenset({"api_key", "backend_key", "inspect_key"})
_PASSWORD = re.compile(r"(?<=://)[^/@]*@")


def run_settings(sources: Sources) -> int:
    rows = [
        (row.flag, _shown(row.name, getattr(sources.settings, row.name)), sources.origins[row.name]) for row in SETTINGS
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for flag, value, origin in rows:
        print(f"{flag:<{widths[0]}}  {value:<{widths[1]}}  {origin}")
    return 0


def _shown(name: str, value: Any) -> str:  # noqa: ANN401 -- whatever the table's fields hold
    if name in SECRET:
        return "(set)" if value else "none"
    match value:
        case None | () | "":
            return "none"
        case bool():
            return "on" if value else "off"
        case tuple():
            return ", ".join("=".join(one) if isinstance(one, tuple) else str(one) for one in value)
        case float():
            return f"{value:g}"
        case _:
            return _PASSWORD.sub("...@", str(value))
