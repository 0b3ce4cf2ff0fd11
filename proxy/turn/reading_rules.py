"""How one answer is read: what a request, a profile and the turn so far make of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prompts import ModelRule

from .outlet import CallRelease
from .reason import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRules:
    keep_for: Reason | None = None
    """Why it is kept from the beginning."""
    release: CallRelease = CallRelease.WHOLE
    parallel: bool = True
    """False: one call is all that is wanted."""
    final: bool = False
    """Nothing is asked for once more after this one."""
    may_repeat: bool = False
    """A call that the conversation goes round in, or that adds nothing, is as good as any."""
    key: str | None = None
    """Masked in all that leaves."""
    demanded: bool = False
    """The request demands a call."""
    bare_calls: bool = False
    """An answer that is nothing but a call's JSON is that call."""
    echoes: Sequence[str] = ()
    """With `Reason.ECHO`: the results that it may only repeat."""
    model_rules: frozenset[ModelRule] = frozenset(ModelRule)
    """What is taken out of the lines of its text."""
    named_results: bool = False
    """Headers of results name the tool."""
    may_begin_so: Callable[[], bool] | None = None
    """Whether an answer may begin as a header of ours does; None: no such thing is taken out."""
    stop_strings: Sequence[str] = ()

    @property
    def live(self) -> bool:
        """Calls leave while they are written, where they can."""
        return self.release is CallRelease.LIVE
