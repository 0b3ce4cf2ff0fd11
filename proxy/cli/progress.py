"""The progress of a command that does many things one after the other."""

from __future__ import annotations

import shutil
import sys

from ..logs import obeys_codes


class Progress:
    """One line at the bottom of a terminal; nothing where there is none. `word` says how many are `bad`."""

    def __init__(self, total: int, word: str) -> None:
        self._total = total
        self._word = word
        self._done = 0
        self._bad = 0
        self._visible = obeys_codes(sys.stderr)

    def count(self, name: str, *, bad: bool) -> None:
        self._done += 1
        self._bad += bad
        if self._visible:
            told = f", {self._bad} {self._word}" if self._bad else ""
            line = f"{self._done}/{self._total}{told}  {name}"[: shutil.get_terminal_size().columns - 1]
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._visible:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
