"""The call key: a model copies it into each call that it means, so that nobody has to guess.

A note may hold a whole call, and a model may show it or be taken in by it. The note does not know the key, because the
key stands in the developer text alone and leaves nowhere (`masking`). The key is the same for a whole conversation, so
the text in front of the conversation does not change. It is HMAC-SHA256 over who asks and the developer text in front
of the key, cut to `KEY_LENGTH`.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Container, Mapping, Sequence
from enum import Enum
from functools import partial
from string import ascii_lowercase

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from parser import KEY, CallCompleted, members_of, without_member
from prompts import KEY_LENGTH

from .key_habits import Habits, KeyHabit, KeyHabits, Speaker

# Bytes of a secret; the digest that keys are cut from has as many.
SECRET_BYTES = 32


class KeyMode(Enum):
    """What a call is worth by its key."""

    AUTO = "auto"
    """With it a call is meant; one without it is asked for once more, unless the model is known never to write it."""
    REQUIRED = "required"
    """Without it a block is no call."""
    OFF = "off"
    """There is none: calls are judged as those of a model that never writes it."""


class CallKeys(Struct, frozen=True):
    """What the keys of one server are made from. `secret` is that of an installation; replicas share it."""

    mode: KeyMode = KeyMode.AUTO
    secret: bytes = field(default_factory=partial(secrets.token_bytes, SECRET_BYTES))
    habits: KeyHabits = field(default_factory=Habits)

    def __repr__(self) -> str:
        """Without the secret."""
        return f"CallKeys({self.mode})"

    def key(self, owner: str, before: str, was_sent: Callable[[str], bool]) -> str:
        """The key for `owner` behind the developer text `before`: another one if that `was_sent`."""
        attempt = 0
        while True:
            hashed = "\0".join((owner, str(attempt), before)).encode("utf-8", "surrogatepass")
            digest = hmac.digest(self.secret, hashed, "sha256")
            key = f"{digest[0] % 10}{''.join(ascii_lowercase[byte % 26] for byte in digest[1:KEY_LENGTH])}"
            # Whoever sends it has seen it: then it proves nothing any more.
            if not was_sent(key):
                return key
            attempt += 1


class Carried(Enum):
    """What a call carries where the key belongs."""

    RIGHT = "right"
    WRONG = "wrong"
    NOTHING = "nothing"


class TurnKey:
    """The key of one turn, and what its model is known to make of it. `key` None: there is none."""

    def __init__(self, mode: KeyMode, key: str | None, speaker: Speaker, habits: KeyHabits) -> None:
        self.mode = mode
        self.key = key
        self.speaker = speaker
        self._habits = habits
        self.habit = KeyHabit.NEVER if key is None else habits.begin(speaker)

    def note_key(self) -> None:
        """A call of the first answer carried it."""
        if self.key is not None:
            self.habit = KeyHabit.WRITES
            self._habits.note_key(self.speaker)

    def note_lack(self) -> None:
        """A call that is no quotation came without it, also when it was asked for once more."""
        if self.mode is KeyMode.AUTO and self.key is not None:
            self._habits.note_lack(self.speaker)

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
