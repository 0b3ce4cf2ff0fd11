"""What of requests a provider reads from its prompt cache, and what it bills, by the rules that OpenAI publishes.

Of a request its `input` counts alone, a token being four characters. That is a lower bound: instructions are the same
every time. Nothing is read across keys, although a provider may find something there by chance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from .conversation import texts_in

# Characters of a token.
TOKEN = 4
# Tokens: the least that is kept.
LEAST = 1024
# Tokens: before GPT-5.6 what is read ends at a multiple of it.
STEP = 128
# The price of a token that is read, beside one that is new.
READ = 0.1

Messages = Sequence[str]


@dataclass(frozen=True, slots=True)
class Rules:
    """`reads` are the tokens that a request has in common with an earlier one; `write` is the price of what is new."""

    reads: Callable[[Messages, Messages], float]
    write: float


@dataclass(frozen=True, slots=True)
class Bill:
    """In tokens; `billed` counts them at the price of new ones."""

    sent: float = 0.0
    read: float = 0.0
    billed: float = 0.0

    @property
    def share(self) -> float:
        """Percent of what was sent."""
        return 100 * self.read / self.sent


def _same_beginning(now: Messages, before: Messages) -> float:
    pairs = zip("\0".join(now), "\0".join(before), strict=False)
    characters = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    tokens = characters // TOKEN // STEP * STEP
    return tokens if tokens >= LEAST else 0


def _whole_request(now: Messages, before: Messages) -> float:
    """A request is kept up to its newest message, and found by nothing less."""
    tokens = _tokens(before)
    return tokens if now[: len(before)] == before and tokens >= LEAST else 0


def _tokens(messages: Messages) -> float:
    return sum(map(len, messages)) / TOKEN


# By the models that have them.
RULES = {
    "before GPT-5.6": Rules(_same_beginning, write=1.0),
    "GPT-5.6 and later": Rules(_whole_request, write=1.25),
}


def bill(bodies: Iterable[Mapping[str, Any]], rules: Rules) -> Bill:
    """For requests to `/v1/responses`, in their order."""
    kept: defaultdict[str, list[Messages]] = defaultdict(list)
    total = Bill()
    for body in bodies:
        messages, earlier = _messages(body), kept[body["prompt_cache_key"]]
        sent = _tokens(messages)
        read = max((rules.reads(messages, before) for before in earlier), default=0.0)
        earlier.append(messages)
        billed = READ * read + rules.write * (sent - read)
        total = Bill(total.sent + sent, total.read + read, total.billed + billed)
    return total


def _messages(body: Mapping[str, Any]) -> Messages:
    return [f"{item.get('role', item.get('name'))}:{''.join(texts_in(item))}" for item in body["input"]]
