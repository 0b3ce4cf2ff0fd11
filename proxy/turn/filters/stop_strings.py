"""Text up to a stop string.

Strategy: the automaton of Knuth, Morris and Pratt for each stop string. It looks at each character once and holds back
only what may yet become a stop string. Where none has begun, `str.find` goes ahead.
"""

from __future__ import annotations

from collections.abc import Sequence


class _Matcher:
    """Where one string ends in a text. `begun` is how much of it stands at the end of what was read."""

    def __init__(self, string: str) -> None:
        self.string = string
        self.begun = 0
        # For each beginning of the string: the length of the longest shorter one that it ends in.
        self._shorter = [0] * len(string)
        length = 0
        for index in range(1, len(string)):
            length = self._shorter[index] = self._step(length, string[index])

    def _step(self, length: int, char: str) -> int:
        while length and self.string[length] != char:
            length = self._shorter[length - 1]
        return length + (self.string[length] == char)

    def find_end(self, text: str) -> int | None:
        """Reads `text`: the index behind the first occurrence's last character, None when there is none yet."""
        index = 0
        while index < len(text):
            if not self.begun:
                index = text.find(self.string[0], index)
                if index < 0:
                    break
            self.begun = self._step(self.begun, text[index])
            index += 1
            if self.begun == len(self.string):
                return index
        return None

    def reset(self) -> None:
        """What comes next is another text."""
        self.begun = 0


class StopStrings:
    """Lets text through up to the stop string that is complete first; of two that end together the longer counts."""

    def __init__(self, strings: Sequence[str]) -> None:
        self._matchers = [_Matcher(string) for string in strings if string]
        self._begun = ""
        self.reached: str | None = None
        """The string that came."""

    def feed(self, text: str) -> str:
        """The text that may be shown now."""
        if self.reached is not None:
            return ""
        if not self._matchers:
            return text
        ends = [(end, matcher.string) for matcher in self._matchers if (end := matcher.find_end(text)) is not None]
        text, before = self._begun + text, len(self._begun)
        if ends:
            end, string = min(ends, key=lambda found: (found[0], -len(found[1])))
            self.reached, self._begun = string, ""
            return text[: before + end - len(string)]
        hold = max(matcher.begun for matcher in self._matchers)
        self._begun = text[len(text) - hold :]
        return text[: len(text) - hold]

    def flush(self) -> str:
        """What waited, where the text ends; the next `feed` begins a new one."""
        begun, self._begun = self._begun, ""
        for matcher in self._matchers:
            matcher.reset()
        return begun
