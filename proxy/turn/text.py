"""Text on its way to the client: escaped tags restored, and nothing from a stop string on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prompts import Unescaper

from .stops import StopStrings


class VisibleText:
    """What `feed` and `flush` return may be shown; a `flush` ends one stretch of text. `stopped`: nothing more will."""

    feed: Callable[[str], str]

    def __init__(self, stop: Sequence[str]) -> None:
        self._unescaper = Unescaper()
        self._stop_strings = StopStrings(stop)
        self.stopped = False
        # Called for each delta: without stop strings there is nothing to look for.
        self.feed = self._feed if stop else self._unescaper.feed

    def _feed(self, text: str) -> str:
        return self._until_stop(self._unescaper.feed(text))

    def flush(self) -> str:
        return self._until_stop(self._unescaper.flush()) + self._stop_strings.flush()

    def _until_stop(self, text: str) -> str:
        text = self._stop_strings.feed(text)
        self.stopped = self._stop_strings.reached
        return text
