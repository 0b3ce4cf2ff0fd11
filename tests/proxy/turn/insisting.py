"""Models that say the same however often they are asked, and what a client gets of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proxy.contracts import Prompt, TurnRequest
from proxy.replay.key_placeholder import key_of
from proxy.turn import CallKeys, FixedHabit, KeyHabit, TurnOptions
from tests.support.memory_backend import MemoryBackend

from .playing import Outcome, outcome_of

# Of a turn at most: the first answer, the second try, the one without tools, and room for a rule that asks oftener.
MOST_ANSWERS = 5

Answer = Callable[[str | None], str]
"""What is written, with the key for what is meant; None of a model that does not write it."""


@dataclass(frozen=True, slots=True)
class Model:
    """`habit` is what is known of it before; one that `writes` the key does so in what it means."""

    name: str
    habit: KeyHabit
    writes: bool


WRITER = Model("writes it", KeyHabit.WRITES, writes=True)
NEVER = Model("never writes it", KeyHabit.NEVER, writes=False)
UNKNOWN = Model("unknown, does not write it", KeyHabit.UNKNOWN, writes=False)
NEWCOMER = Model("unknown, writes it", KeyHabit.UNKNOWN, writes=True)
MODELS = (WRITER, NEVER, UNKNOWN, NEWCOMER)


def options_for(model: Model) -> TurnOptions:
    """All that these tests know of how habits are kept. Keys do not change from run to run."""
    return TurnOptions(call_keys=CallKeys(secret=b"secret of the tests", habits=FixedHabit(model.habit)))


async def insist(model: Model, request: TurnRequest, answer: Answer) -> Outcome:
    """The outcome of a turn in which the model gives this answer each time that it is asked."""

    def script(prompt: Prompt) -> str:
        return answer(key_of(prompt.developer) if model.writes else None)

    return await outcome_of(request, MemoryBackend([script] * MOST_ANSWERS), options_for(model))
