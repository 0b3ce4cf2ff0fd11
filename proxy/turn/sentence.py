"""The outcome of a turn in one sentence, for people: on the page, in `tagcall log` and on the terminal.

    called localSearch, renamed from local_search
    no call left: the block of read_note stands in a code fence, so it was shown
    2 tools offered, none asked for
    answered from the results of 2 calls
    asked again: the arguments did not fit localSearch (query is missing), and the second answer did; called localSearch

It holds names of tools and our own words, but none of a prompt or an answer. Logs and metrics have their own names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from .block_note import BlockNote
from .reason import Fate, Reason
from .report import TurnReport


def sentence_of(report: TurnReport, *, answered: bool) -> str:
    """What came of the turn, without what failed outside of it. No stop, and no capital at its beginning.

    Empty if there is nothing to tell of one that was not `answered`.
    """
    left = calls_left(report)
    again = _asked_again(report, left) if report.again else ""
    called = "; ".join(_all_called(report, left))
    lost = None if again or called else _last_lost(report)
    why_none = f"no call left: {fault_of(lost)}" if lost else ""
    nothing = "answered with nothing" if report.answered_nothing else ""
    parts = [*filter(None, [again, called, why_none, nothing])]
    if answered and not parts:
        return _plain_answer(len(report.tools), report.conversation.results)
    return "; ".join(parts)


def _plain_answer(tools: int, results: int) -> str:
    if results:
        return "answered from the result of a call" if results == 1 else f"answered from the results of {results} calls"
    return f"{tools} tool{'' if tools == 1 else 's'} offered, none asked for" if tools else "answered"


def _all_called(report: TurnReport, left: Sequence[BlockNote]) -> Iterator[str]:
    if whole := [note for note in left if note.reason is not Reason.CUT]:
        yield f"called {', '.join(map(_called, whole))}"
    if cut := [note for note in left if note.reason is Reason.CUT]:
        yield fault_of(cut[0])
    if not left and report.calls:
        yield f"called {', '.join(report.calls)}"


def calls_left(report: TurnReport) -> list[BlockNote]:
    """The notes of the calls that left. Of equal ones in two answers the later left: it was asked for anew."""
    names = Counter(report.calls)
    left: list[BlockNote] = []
    for note in reversed(report.notes):
        if note.is_call and names[note.name] > 0:
            names[note.name] -= 1
            left.append(note)
    return left[::-1]


def _called(note: BlockNote) -> str:
    renamed = f", renamed from {note.renamed}" if note.renamed else ""
    mended = f" (mended: {', '.join(map(in_words, note.rules))})" if note.rules else ""
    misfit = f" although its arguments do not fit{note.lacking}" if note.reason is Reason.ARGUMENTS_MISFIT else ""
    return note.name + renamed + mended + misfit


def in_words(rule: str) -> str:
    """The name of a rule that helped, for people."""
    return rule.replace("_", " ").replace("-", " ")


def _asked_again(report: TurnReport, left: Sequence[BlockNote]) -> str:
    faults = list(_faults(report))
    again = f"asked again: {faults[0]}"
    if len(faults) > 1:
        return f"{again}; and once more, without tools: {', '.join(faults[1:])}"
    last = _last_lost(report, since=report.attempt)
    missing = report.unfit or report.answered_nothing or report.again[0] is Reason.CALL_MISSING
    if not (last or left or missing) or any(note.attempt and note.reason is not report.again[0] for note in left):
        return f"{again}, and the second answer {_mended(report.again[0])}"
    if left or report.unfit:
        return f"{again}, and the second answer was no better"
    return f"{again}; the second answer left no call{f': {fault_of(last)}' if last else ''}"


def _faults(report: TurnReport) -> Iterator[str]:
    """Why each further answer was asked for."""
    for attempt, reason in enumerate(report.again):
        notes = [note for note in report.notes if note.reason is reason and note.attempt <= attempt]
        yield fault_of(notes[-1]) if notes else reason_in_words(reason)


def _last_lost(report: TurnReport, *, since: int = 0) -> BlockNote | None:
    """The last block that left as no call, of the answers from that one on."""
    left = calls_left(report)
    lost = (note for note in reversed(report.notes) if note not in left and note.attempt >= since)
    return next((note for note in lost if note.reason not in {Reason.GOOD, Reason.JOINED}), None)


def fault_of(note: BlockNote) -> str:
    """Why it did not leave as it was written, as a part of a sentence."""
    also = ", so it was shown" if note.reason is Reason.MALFORMED and note.ruling.fate is Fate.TEXT else ""
    return reason_in_words(note.reason, note.name, note.lacking, fenced=note.fenced) + also


def reason_in_words(reason: Reason, name: str = "", lacking: str = "", *, fenced: bool = False) -> str:
    """Of a block of the tool `name`, or of none in particular."""
    where = "stands in a code fence" if fenced else "is a quotation"
    return reason.words.format(tool=name or "a tool", of=f" of {name}" if name else "", lacking=lacking, where=where)


def _mended(reason: Reason) -> str:
    """What the second answer did, behind the fault of the first."""
    match reason:
        case Reason.ARGUMENTS_MISFIT | Reason.NO_KEY | Reason.WRONG_KEY:
            return "did"
        case Reason.MALFORMED:
            return "could"
        case _:
            return "was better"


def empty_answer(report: TurnReport) -> str:
    """What a client gets in place of nothing. A whole sentence."""
    lost = _last_lost(report)
    if lost is None:
        return "The model answered with nothing."
    if lost.reason is Reason.UNDECLARED:
        named = f" (`{lost.name}`)" if lost.name else ""
        return f"The model asked for a tool that was not offered{named}, and said nothing else."
    return f"The model said nothing that can be shown: {fault_of(lost)}."
