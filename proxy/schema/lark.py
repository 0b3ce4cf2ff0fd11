"""Whether a text keeps to a Lark grammar, by llguidance, which the extra `grammars` brings.

OpenAI names llguidance for the grammars of its own custom tools. It reads Lark's notation with terminals that need no
backtracking, so all of its work can be counted. It walks a grammar by recursion, and a stack overflow would end the
whole process. So each check runs in a thread with a stack of known size, and a grammar may have few levels.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.util import find_spec
from math import isqrt
from typing import TYPE_CHECKING, TypeVar

from .check_budget import SchemaUnusable

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

R = TypeVar("R")

# Characters of a grammar, and what may lead to one level more of it: to tell a mistake takes a time that grows with the
# square of the levels above it, a second below 200.
LONGEST_GRAMMAR = 8_192
LEVELS = frozenset(":([{")
MOST_LEVELS = 200

# Bytes of a thread's stack: 250 levels take half a megabyte.
STACK = 16 * 2**20

# Bytes of a text. Most grammars read one in 7 us.
LONGEST_TEXT = 32 * 1024

# Ways of reading that may be open at a place of a text. Each looks at each other one, in 5 to 20 ns, so the longer a
# text, the fewer there may be: a second in all. The grammar of a SELECT needs 55, that of a patch or of JSON 20.
WORK = 100_000_000
MOST_OPEN, LEAST_OPEN = 300, 55

# What the terminals may take: to be read, and for all new states that a text leads to, in 100 ns each.
FUEL_OF_GRAMMAR, FUEL_OF_TEXT = 20_000, 1_000_000
MOST_STATES = 20_000

# Bytes that are read in one go. Between two others have their turn.
AT_ONCE = 256

# Bytes are the tokens; the last one ends a text.
_END = 256


def grammar_problem(definition: str) -> str | None:
    """Why texts are not held to this grammar, as a sentence without its stop; None where that is tried.

    Whether it is a grammar shows when a text is held to it: clients declare many tools, and few are called.
    """
    if len(definition) > LONGEST_GRAMMAR:
        return f"it has more than {LONGEST_GRAMMAR} characters"
    if sum(map(definition.count, LEVELS)) > MOST_LEVELS:
        return f"it has more than {MOST_LEVELS} rules and groups"
    if find_spec("llguidance") is None:
        return "it is read by llguidance, which is not installed here (the extra `grammars` of tagcall)"
    return None


def grammar_misfit(definition: str, text: str) -> str | None:
    """Why `text` does not keep to a grammar without `grammar_problem`, as a short sentence without its stop.

    None when it does. Raises `SchemaUnusable` when that cannot be told in bounds, or the grammar is none.
    """
    data = text.encode("utf-8", "replace")
    if len(data) > LONGEST_TEXT:
        raise SchemaUnusable(f"the text has more than {LONGEST_TEXT} bytes")
    if (fault := _fault(definition)) is not None:
        raise SchemaUnusable(f"the grammar cannot be read: {fault}")
    return _on_own_stack(lambda: _misfit(definition, data))


@lru_cache(maxsize=64)
def _fault(definition: str) -> str | None:
    return _on_own_stack(lambda: _matcher(definition, MOST_OPEN).get_error().partition("\n")[0] or None)


def _misfit(definition: str, data: bytes) -> str | None:
    most = max(LEAST_OPEN, min(MOST_OPEN, isqrt(WORK // max(1, len(data)))))
    matcher = _matcher(definition, most)
    for start in range(0, len(data), AT_ONCE):
        part = data[start : start + AT_ONCE]
        read = matcher.try_consume_tokens(list(part))
        if matcher.is_error():
            raise SchemaUnusable("to hold the text to its grammar takes too many steps")
        if read < len(part):
            place = len(data[: start + read].decode("utf-8", "ignore"))
            return f"it does not match its Lark grammar from character {place + 1} on"
    return None if matcher.is_accepting() else "it ends before its Lark grammar does"


def _matcher(definition: str, most_open: int) -> LLMatcher:
    """One at the beginning of a text; in error if the grammar cannot be used."""
    from llguidance import LLMatcher, LLParserLimits  # noqa: PLC0415 -- an extra, and 8 MB

    limits = LLParserLimits(
        max_items_in_row=most_open,
        initial_lexer_fuel=FUEL_OF_GRAMMAR,
        step_lexer_fuel=FUEL_OF_TEXT,
        max_lexer_states=MOST_STATES,
        precompute_large_lexemes=False,
        verbose_errors=False,
    )
    matcher = LLMatcher(_bytes_as_tokens(), definition, log_level=0, limits=limits)
    if not matcher.is_error():
        matcher.compute_bitmask()  # the fuel is counted from here on, through all of the text
    return matcher


@cache
def _bytes_as_tokens() -> LLTokenizer:
    from llguidance import LLTokenizer, TokenizerWrapper  # noqa: PLC0415 -- as above

    return LLTokenizer(TokenizerWrapper(_Bytes()), slices=[])


class _Bytes:
    """A tokenizer as llguidance wants one."""

    eos_token_id = _END
    bos_token_id = None
    tokens = (*(bytes([byte]) for byte in range(_END)), b"<end>")
    special_token_ids = (_END,)

    def __call__(self, data: bytes) -> list[int]:
        return list(data)


_starting = threading.Lock()


def _on_own_stack(work: Callable[[], R]) -> R:
    """What `work` returns or raises."""
    done: list[R] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            done.append(work())
        except Exception as error:  # noqa: BLE001 -- raised where it is waited for
            failed.append(error)

    thread = threading.Thread(target=run, name="lark-grammar")
    with _starting:
        before = threading.stack_size(STACK)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    if failed:
        raise failed[0]
    return done[0]
