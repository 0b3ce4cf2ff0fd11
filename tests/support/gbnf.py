"""Whether a text is of a grammar of llama.cpp's, as far as our own use its notation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|(\[(?:[^\]\\]|\\.)*\])|([a-z][\w-]*)|(\{\d*,?\d*\})|([|()*+?]))')
# What is matched (a literal or a class as a pattern, a rule by its name, or one of a choice of sequences), how often.
_Repeat = tuple[object, int, int]


def is_of(grammar: str, text: str) -> bool:
    rules = {
        name.strip(): _Parser(body).choice()
        for name, body in (line.split("::=", 1) for line in grammar.splitlines() if line.strip())
    }

    @cache
    def ends(rule: str, start: int) -> frozenset[int]:
        return frozenset(choice_ends(rules[rule], start))

    def choice_ends(choice: object, start: int) -> set[int]:
        assert isinstance(choice, list)
        return {end for sequence in choice for end in sequence_ends(sequence, start)}

    def sequence_ends(sequence: list[_Repeat], start: int) -> set[int]:
        here = {start}
        for what, least, most in sequence:
            reached, new = (set(here) if least == 0 else set[int]()), here
            for count in range(1, most + 1):
                new = {end for place in new for end in atom_ends(what, place)} - (reached if count > least else set())
                if not new:
                    break
                reached |= new if count >= least else set()
            here = reached
        return here

    def atom_ends(what: object, start: int) -> set[int] | frozenset[int]:
        match what:
            case re.Pattern():
                found = what.match(text, start)
                return {found.end()} if found else set()
            case str(rule):
                # A text of one letter after the other is one rule behind the other.
                return ends(rule, start)
            case _:
                return choice_ends(what, start)

    for place in range(len(text), 0, -1):  # from behind, so that no rule waits for many others
        for rule in rules:
            if rule.startswith("text-"):
                ends(rule, place)
    return len(text) in ends("root", 0)


class _Parser:
    def __init__(self, body: str) -> None:
        self._tokens: Iterator[re.Match[str]] = _TOKEN.finditer(body)
        self._next = next(self._tokens, None)

    def _take(self) -> re.Match[str]:
        token, self._next = self._next, next(self._tokens, None)
        assert token is not None
        return token

    def choice(self) -> list[list[_Repeat]]:
        sequences: list[list[_Repeat]] = [[]]
        while self._next is not None and self._next[5] != ")":
            token = self._take()
            if token[5] == "|":
                sequences.append([])
            elif token[5] == "(":
                inner = self.choice()
                self._take()
                sequences[-1].append((inner, *self._counts()))
            else:
                literal = token[1] and re.escape(
                    re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), token[1][1:-1])
                )
                what: object = token[3] or re.compile(literal if token[1] else token[2])
                sequences[-1].append((what, *self._counts()))
        return sequences

    def _counts(self) -> tuple[int, int]:
        mark = self._next[5] or self._next[4] if self._next is not None else ""
        if mark in ("*", "+", "?"):
            self._take()
            return {"*": (0, 10**6), "+": (1, 10**6), "?": (0, 1)}[mark]
        if mark and mark.startswith("{"):
            self._take()
            least, comma, most = mark[1:-1].partition(",")
            return int(least or 0), int(most or 10**6 if comma else least)
        return 1, 1


_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
