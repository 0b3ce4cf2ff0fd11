"""Whole calls of which only what stands behind them will tell whether they are shown or made."""

from __future__ import annotations

import re

from prompts import Place, essence

from .read_call import ReadCall

# Characters behind a call in which its own result is looked for.
_MOST_BEHIND = 200
# A line that announces it.
_ANNOUNCED = re.compile(rf"(?=[^\n]{{0,{_MOST_BEHIND - 1}}}\n)[^\n]*:[ \t]*\n\s*")


class Showing:
    """Whether a call is shown: by its place, and for one that has `results` by whether one of them follows it.

    Hear the text behind it as it comes; how it is cut does not count.
    """

    def __init__(self, place: Place, results: frozenset[str] | None = None) -> None:
        self._place = place
        self._results = results
        self.behind = ""
        """What was heard."""

    @property
    def awaits_result(self) -> bool:
        """Whether it is a call that has its result already."""
        return self._results is not None

    def hear(self, text: str) -> None:
        self.behind += text

    def is_shown(self, *, ended: bool = False) -> bool | None:
        """None: not known yet. `ended`: nothing more follows, or another block does."""
        if self._place.is_quoted or (self._results is not None and self._place.is_listed):
            return True
        # All that is asked is asked: neither may be known before the other because of how the text came.
        quoted = self._place.is_quoted_by(self.behind, ended=ended) if self._place.may_be_quoted else False
        told = self._tells_result(ended=ended)
        if quoted or told:
            return True
        return None if quoted is None or told is None else False

    def _tells_result(self, *, ended: bool) -> bool | None:
        if not self._results:
            return False
        said = self.behind.lstrip()
        announced = _ANNOUNCED.match(said)
        line, found, _ = said[announced.end() if announced else 0 :].partition("\n")
        if not (found or ended or len(line) >= _MOST_BEHIND):
            return None
        told = essence(line[:_MOST_BEHIND])
        return any(result in told for result in self._results)


class Waiting:
    """Calls that wait, all of one block, and a second close tag of it. `cut`, `held`: as of the last that came."""

    __slots__ = ("calls", "closer", "cut", "held")

    def __init__(self) -> None:
        self.calls: list[tuple[ReadCall, Showing]] = []
        self.closer = ""
        self.cut = self.held = False

    def add(self, call: ReadCall, showing: Showing, *, cut: bool, held: bool) -> None:
        self.calls.append((call, showing))
        self.cut, self.held = cut, held

    def hear(self, text: str) -> bool:
        """Hears what follows. Returns whether that is enough to tell."""
        for _, showing in self.calls:
            showing.hear(text)
        return all(showing.is_shown() is not None for _, showing in self.calls)

    @property
    def behind(self) -> str:
        """What was heard."""
        return self.calls[0][1].behind if self.calls else ""
