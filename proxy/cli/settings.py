"""`tagcall settings`: the settings in force, and where each came from."""

from __future__ import annotations

import re

from ..settings import SETTINGS, Setting, Settings, written
from ..sources import Sources

# Shown as set, and no more.
SECRET = frozenset({"api_key", "backend_key", "inspect_key"})
_PASSWORD = re.compile(r"(?<=://)[^/@]*@")


def run_settings(sources: Sources) -> int:
    rows = [(row.flag, _shown(row, sources.settings), sources.origins[row.name]) for row in SETTINGS]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for flag, value, origin in rows:
        print(f"{flag:<{widths[0]}}  {value:<{widths[1]}}  {origin}")
    return 0


def _shown(row: Setting, settings: Settings) -> str:
    value = getattr(settings, row.name)
    if row.name in SECRET and value:
        return "(set)"
    return _PASSWORD.sub("...@", written(value, row.parse))
