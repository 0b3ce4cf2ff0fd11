"""Whether a pattern is found in a text, in counted steps.

Strategy: a pattern becomes the states of an automaton, and all those that it can be in are followed at once (Thompson),
so that the work grows with the text and never runs away. What must stand ahead or behind is settled beforehand, for
each place in the text and from the innermost out: each look is an automaton of its own that goes over the text once,
the one for what is ahead from the end. Sets of states that were met are kept for as long as the check goes on, and not
longer: what a text costs must not depend on what was asked before.

Of the engines of linear time that can be installed none looks ahead, which ordinary patterns do (those of zod for
addresses of mail), and none says beforehand what a text will cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from .check_budget import CheckBudget, SchemaUnusable
from .pattern_syntax import (
    Assertion,
    Either,
    InRow,
    Node,
    OneOf,
    PatternUnusableError,
    Place,
    Repeated,
    is_word,
    read_pattern,
)

# Parts of a pattern. Counted repeats are written out, and those in one another multiply.
MOST_PARTS = 10_000

# Characters that are followed in a step, once the sets of states are known.
CHARACTERS_A_STEP = 4

# Steps for each look; while it goes over the text, a character takes twice as much.
LOOK = 4

# Tests of one character, or ways on from a state, that are gone through in a step.
TESTS_A_STEP = 2


class _State(NamedTuple):
    """Goes on to `following` past a character of `takes`, or at once where all bits of `needs` hold."""

    takes: OneOf | None
    needs: int
    following: tuple[int, ...]


class _Move(NamedTuple):
    """From a set of states: whether the end is among them, and which set is next."""

    accepts: bool
    following: frozenset[int]


@dataclass(slots=True)
class _Automaton:
    """The first state is the end. `begins` is where it is entered, at any place of the text."""

    states: list[_State] = field(default_factory=lambda: [_State(None, 0, ())])
    begins: int = 0


@dataclass(slots=True)
class _Look:
    """An assertion by its place, and the automaton for what stands there."""

    place: Place
    negated: bool
    automaton: _Automaton | None


class _CompiledPattern:
    """A pattern's automata. Each assertion has a bit, by its position in `looks`, behind all those within it."""

    def __init__(self, pattern: str) -> None:
        self.looks: list[_Look] = []
        self._bits: dict[int, int] = {}
        self.size = 0
        root = read_pattern(pattern)
        self.main = self._automaton(root, backwards=False)
        self.passes = sum(look.place not in {Place.START, Place.END} for look in self.looks)

    def _automaton(self, node: Node, *, backwards: bool) -> _Automaton:
        automaton = _Automaton()
        automaton.begins = self._add(automaton, node, 0, backwards)
        return automaton

    def _state(self, automaton: _Automaton, state: _State) -> int:
        automaton.states.append(state)
        return len(automaton.states) - 1

    def _add(self, automaton: _Automaton, node: Node, then: int, backwards: bool) -> int:
        """Where to enter what leads through `node` to the state `then`."""
        self.size += 1
        if self.size > MOST_PARTS:
            raise PatternUnusableError
        match node:
            case OneOf():
                return self._state(automaton, _State(node, 0, (then,)))
            case InRow(parts):
                for part in parts if backwards else reversed(parts):
                    then = self._add(automaton, part, then, backwards)
                return then
            case Either(forms):
                entries = tuple(self._add(automaton, form, then, backwards) for form in forms)
                return self._state(automaton, _State(None, 0, entries))
            case Repeated(part, least, most):
                if most is None:
                    loop = self._state(automaton, _State(None, 0, ()))
                    entry = self._add(automaton, part, loop, backwards)
                    automaton.states[loop] = _State(None, 0, (entry, then))
                    then = loop
                else:
                    past = then
                    for _ in range(most - least):
                        entry = self._add(automaton, part, then, backwards)
                        then = self._state(automaton, _State(None, 0, (entry, past)))
                for _ in range(least):
                    then = self._add(automaton, part, then, backwards)
                return then
            case Assertion():
                return self._state(automaton, _State(None, 1 << self._bit(node), (then,)))

    def _bit(self, node: Assertion) -> int:
        if id(node) not in self._bits:
            inner = None if node.part is None else self._automaton(node.part, backwards=node.place is Place.AHEAD)
            self._bits[id(node)] = len(self.looks)
            self.looks.append(_Look(node.place, node.negated, inner))
        return self._bits[id(node)]


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> _CompiledPattern | None:
    try:
        return _CompiledPattern(pattern)
    except PatternUnusableError:
        return None


class Patterns:
    """The patterns that one check meets, each with the sets of states that it came through."""

    def __init__(self, budget: CheckBudget) -> None:
        self._budget = budget
        self._known: dict[str, _Search] = {}

    def found(self, pattern: str, text: str) -> bool:
        """Whether `pattern` is found in `text`. Raises `SchemaUnusable`."""
        search = self._known.get(pattern)
        if search is None:
            self._budget.spend(1 + len(pattern))
            compiled = _compiled(pattern)
            if compiled is None:
                raise SchemaUnusable("a pattern cannot be used")
            self._budget.spend(compiled.size)
            search = self._known[pattern] = _Search(compiled, self._budget)
        return search.found(text)


class _Search:
    def __init__(self, pattern: _CompiledPattern, budget: CheckBudget) -> None:
        self._pattern = pattern
        self._budget = budget
        self._runs: dict[int, _Run] = {}

    def found(self, text: str) -> bool:
        along = len(text) // CHARACTERS_A_STEP
        self._budget.spend(2 + along + self._pattern.passes * (LOOK + 2 * along))
        holds = [0] * (len(text) + 1)
        for number, look in enumerate(self._pattern.looks):
            bit = 1 << number
            for place in self._places(look, text, holds):
                holds[place] |= bit
        return next(self._run(self._pattern.main).ends(text, holds), None) is not None

    def _places(self, look: _Look, text: str, holds: Sequence[int]) -> Iterable[int]:
        """Where in `text` it holds."""
        everywhere = range(len(text) + 1)
        found: Iterable[int] = ()
        match look.place:
            case Place.START:
                found = (0,)
            case Place.END:
                found = (len(text),)
            case Place.BOUNDARY:
                words = [False, *map(is_word, text), False]
                found = [place for place in everywhere if words[place] != words[place + 1]]
            case Place.BEHIND if look.automaton is not None:
                found = list(self._run(look.automaton).ends(text, holds))
            case Place.AHEAD if look.automaton is not None:
                backwards = self._run(look.automaton).ends(text[::-1], holds[::-1])
                found = [len(text) - place for place in backwards]
        if not look.negated:
            return found
        out = set(found)
        return [place for place in everywhere if place not in out]

    def _run(self, automaton: _Automaton) -> _Run:
        if id(automaton) not in self._runs:
            self._runs[id(automaton)] = _Run(automaton, self._budget)
        return self._runs[id(automaton)]


class _Run:
    """One automaton at work."""

    def __init__(self, automaton: _Automaton, budget: CheckBudget) -> None:
        self._states = automaton.states
        self._begins = automaton.begins
        self._budget = budget
        self._moves: dict[tuple[frozenset[int], int, str], _Move] = {}

    def ends(self, text: str, holds: Sequence[int]) -> Iterator[int]:
        """Each place where something ends that began at any place up to there."""
        moves = self._moves
        here = frozenset((self._begins,))
        for place, (character, held) in enumerate(zip(chain(text, ("",)), holds, strict=True)):
            move = moves.get((here, held, character))
            if move is None:
                move = moves[here, held, character] = self._move(here, held, character)
            accepts, here = move
            if accepts:
                yield place

    def _move(self, here: frozenset[int], held: int, character: str) -> _Move:
        reached = set(here)
        waiting = list(here)
        following = {self._begins}
        steps = 4
        while waiting:
            takes, needs, onward = self._states[waiting.pop()]
            if takes is not None:
                steps += 1 + len(takes.tests) // TESTS_A_STEP
                if character and takes.takes(character):
                    following.update(onward)
            elif needs & held == needs:
                steps += 1 + len(onward) // TESTS_A_STEP
                fresh = [each for each in onward if each not in reached]
                reached.update(fresh)
                waiting += fresh
        self._budget.spend(steps)
        return _Move(0 in reached, frozenset(following))
