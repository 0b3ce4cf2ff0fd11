"""The call key: what a model copies into each call that it means, so that no call has to be guessed at.

A note may hold a whole call, and a model may show it or be taken in by it. Neither knows the key, since it stands in
the developer text alone and leaves nowhere (`masking`). It is the same for a whole conversation, so the text in front
of the conversation does not change: HMAC-SHA256 over who asks and the developer text in front of it, cut to
`KEY_LENGTH`.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from string import ascii_lowercase
from types import MappingProxyType
from typing import Protocol

import orjson
from cachetools import LRUCache

from parser import KEY, CallCompleted, members_of, without_member
from prompts import KEY_LENGTH, holds_word

# Models whose habits are known; their names are the clients' own words, so there must be an end.
MOST_MODELS = 1000
# Bytes of a secret; the digest that keys are cut from has as many.
SECRET_BYTES = 32


class KeyMode(Enum):
    """What a call is worth by its key."""

    AUTO = "auto"
    """With it a call is meant; without it the quote guard judges, or the model is asked once more."""
    REQUIRED = "required"
    """Without it a block is text."""
    OFF = "off"
    """There is none: the quote guard judges all calls."""


class KeyHabit(Enum):
    """What is known of a model: whether to ask it once more for a call without a key is worth its price."""

    UNKNOWN = "unknown"
    WRITES = "writes"
    """It has written the key: a call without it is hardly meant."""
    NEVER = "never"
    """It was asked for the key and has never written it: its calls are judged without."""


class KeyHabits(Protocol):
    """Remembers the habits of models, by name."""

    def of(self, model: str) -> KeyHabit: ...

    def learn(self, model: str, habit: KeyHabit) -> None: ...


class Habits:
    """`KeyHabits` of this process, `known` before or since."""

    def __init__(self, known: Mapping[str, KeyHabit] = MappingProxyType({})) -> None:
        self.known: LRUCache[str, KeyHabit] = LRUCache(MOST_MODELS)
        self.known.update(known)

    def of(self, model: str) -> KeyHabit:
        return self.known.get(model, KeyHabit.UNKNOWN)

    def learn(self, model: str, habit: KeyHabit) -> None:
        self.known[model] = habit


class NoHabits:
    """Remembers nothing from turn to turn, so that what becomes of one depends on nothing but that turn."""

    def of(self, model: str) -> KeyHabit:
        return KeyHabit.UNKNOWN

    def learn(self, model: str, habit: KeyHabit) -> None:
        pass


@dataclass(frozen=True, slots=True)
class CallKeys:
    """What the keys of one server are made from. `secret` is that of an installation; replicas share it."""

    mode: KeyMode = KeyMode.AUTO
    secret: bytes = field(default_factory=partial(secrets.token_bytes, SECRET_BYTES), repr=False)
    habits: KeyHabits = field(default_factory=Habits)

    def key(self, owner: str, before: str, sent: Sequence[str]) -> str:
        """The key for `owner` behind the developer text `before`: another one if it stands in what was `sent`."""
        attempt = 0
        while True:
            told = "\0".join((owner, str(attempt), before)).encode("utf-8", "surrogatepass")
            digest = hmac.digest(self.secret, told, "sha256")
            key = f"{digest[0] % 10}{''.join(ascii_lowercase[byte % 26] for byte in digest[1:KEY_LENGTH])}"
            # Whoever sends it has seen it: then it tells nothing any more.
            if not holds_word(key, sent):
                return key
            attempt += 1


class Carried(Enum):
    """What a call carries where the key belongs."""

    RIGHT = "right"
    WRONG = "wrong"
    NOTHING = "nothing"


@dataclass(slots=True)
class TurnKey:
    """The key of one turn, and what its model is known to make of it. `key` None: there is none."""

    mode: KeyMode
    key: str | None
    model: str
    habits: KeyHabits
    _learnt: KeyHabit | None = field(default=None, init=False)
    """In this turn, whatever is remembered of it: who has written the key writes it."""

    def carried(self, members: Sequence[tuple[str, str]]) -> Carried:
        """What is carried by a call with these members, each a name and the text of a JSON value."""
        value = self.written(members)
        if self.key is None or not value:
            return Carried.NOTHING
        return Carried.RIGHT if value == self.key else Carried.WRONG

    @staticmethod
    def written(members: Sequence[tuple[str, str]]) -> str:
        """What stands where the key belongs; empty where nothing does."""
        written: Mapping[str, str] = dict(members)
        # A key that is written as anything but a string is none.
        return str(orjson.loads(written[KEY])) if written.get(KEY, "").startswith('"') else ""

    def found_in(self, call: CallCompleted, parameters: Container[str]) -> CallCompleted:
        """The call with the key where it belongs, if its model put the key elsewhere: under another name, or into the
        arguments of a tool that has no such parameter.
        """
        if self.key is None:
            return call
        key, arguments = json.dumps(self.key), call.arguments
        if key in arguments:
            for name, value in members_of(arguments):
                if value == key and name not in parameters:
                    arguments = without_member(arguments, name)
        others = [member for member in call.extra if member[1] != key]
        if (others, arguments, call.id == self.key) == ([*call.extra], call.arguments, False):
            return call
        # What stands in its place says itself what the call is worth.
        keyed = [] if KEY in dict(others) else [(KEY, key)]
        return replace(call, arguments=arguments, extra=(*keyed, *others))

    @property
    def habit(self) -> KeyHabit:
        return self._learnt or self.habits.of(self.model)

    def learn(self, habit: KeyHabit) -> None:
        """Told with each call: what is known already is not told again."""
        if self.habit is not habit:
            self._learnt = habit
            self.habits.learn(self.model, habit)
