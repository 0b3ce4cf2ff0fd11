"""Answers that carry the key, and requests that quote calls."""

from __future__ import annotations

from collections.abc import Callable

from parser import write_call
from prompts import Entry, PastCall, Text, ToolResult, Transcript, UserTurn
from proxy.contracts import BackendEvent, Prompt, TurnEnded
from proxy.replay.key_placeholder import PLACEHOLDER, key_of
from proxy.turn import CallKeys, CallRelease, Habits, KeyHabit, KeyMode, Known, Speaker, TurnOptions
from tests.proxy.turn.playing import READ_A, ask
from tests.support.memory_backend import USAGE, Script, pieces

A, B = '{"path": "a.md"}', '{"path": "b.md"}'
READ_B, READ_C = write_call("read_note", B), write_call("read_note", '{"path": "c.md"}')
NOTE = f"A note.\n{READ_A}\nIts end."

Write = Callable[[str], str]


def keyed(write: Write) -> Callable[[Prompt], str]:
    """An answer that is written with the key of its prompt."""
    return lambda prompt: write(key_in(prompt))


def key_in(prompt: Prompt) -> str:
    key = key_of(prompt.developer)
    assert key is not None
    return key


def written(text: str, cut: str | None = None, *, size: int = 0) -> Script:
    """An answer with the key of its prompt for each placeholder, in pieces of a `size`; `cut` by that limit."""

    def script(prompt: Prompt) -> list[BackendEvent]:
        return [*pieces(text.replace(PLACEHOLDER, key_of(prompt.developer) or ""), size), TurnEnded(USAGE, cut)]

    return script


def call(arguments: str = A, name: str = "read_note") -> Callable[[Prompt], str]:
    return keyed(lambda key: write_call(name, arguments, key=key))


def options(
    mode: KeyMode = KeyMode.AUTO, habit: KeyHabit = KeyHabit.UNKNOWN, release: CallRelease = CallRelease.WHOLE
) -> TurnOptions:
    return TurnOptions(release=release, call_keys=CallKeys(mode, b"s" * 32, known(habit)))


def known(habit: KeyHabit) -> Habits:
    return Habits([("", "m", Known(habit))])


def shown(note: str = NOTE, *more: Entry) -> Transcript:
    """A note that a tool has just read, and what was said since."""
    read = PastCall("call_1", "search", "{}"), ToolResult("call_1", (Text(note),))
    return Transcript((UserTurn((Text("What is in the note?"),)), *read, *more))


QUOTED = ask(transcript=shown())
LIVE = options(release=CallRelease.LIVE)


def habit_of(options: TurnOptions) -> KeyHabit:
    return options.call_keys.habits.begin(Speaker("", "m"))
