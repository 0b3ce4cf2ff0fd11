"""The text of one answer on its way out.

text between blocks --> own notation --> the other filters, or the stream of JSON --> outlet
a block that is text -----------------------^
a block that is not shown --> only its place is noted
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from prompts import BLOCK, CONTEXT, ModelRule, Unescaper

from ..contracts import AnswerMessageEnded, AnswerText
from .filters import LineRule, Mask, OwnNotation, StopStrings, chained, headers, invented_results, own_lines
from .json_stream import JsonStream
from .outlet import Outlet
from .plan import Attempt, Plan
from .reason import Reason
from .report import Count, TurnReport


class ShownText:
    """Feed it the answer's text, and let it know of blocks.

    The model was shown these `lines` of ours: one that it repeats goes. `early`: what must be JSON leaves as it comes,
    where it is JSON.
    """

    def __init__(
        self, plan: Plan, attempt: Attempt, outlet: Outlet, report: TurnReport, lines: Sequence[str], *, early: bool
    ) -> None:
        key = plan.key.key
        self._outlet = outlet
        self._notation = OwnNotation([*_line_rules(plan, attempt, lines)], partial(report.count, Count.TAKEN_OUT))
        self.stop_strings = StopStrings(plan.request.stop)
        filters = (Mask(key) if key else None, Unescaper(), self.stop_strings if plan.request.stop else None)
        self._visible = chained([each for each in filters if each is not None])
        # What it may be instead of an answer.
        self._echoes = {*map(_on_one_line, plan.echoes if attempt.keep_for is Reason.ECHO else ())}
        self.before = ""
        """The end of the answer so far, which says where a block stands, with a `BLOCK` for each other one."""
        self._written: list[str] = []
        self._json = JsonStream(key) if early and attempt.keep_for is Reason.OUTPUT_INVALID else None
        self.block_is_text = False
        """The last block was text: then so is what closes it once more."""
        self.phase: str | None = None
        """Of the message that is being written."""

    @property
    def written(self) -> str:
        """The text as the model wrote it, where it has to be JSON."""
        return "".join(self._written)

    @property
    def is_echo(self) -> bool:
        """What is kept is one of `echoes`, white space aside."""
        return self._outlet.reason is Reason.ECHO and _on_one_line(self._outlet.kept_text) in self._echoes

    @property
    def leaves_json(self) -> bool:
        """What must be JSON leaves as it comes, and is such so far."""
        return self._json is not None and not self._json.given_up

    @property
    def is_no_json(self) -> bool:
        """The text that was to leave as the JSON that it is did not begin as such."""
        return self._json is not None and self._json.given_up

    @property
    def repeats_line(self) -> bool:
        """A line of ours was in it."""
        return Reason.OWN_LINE in self._notation.took

    def feed(self, text: str) -> None:
        self.before = (self.before + text)[-CONTEXT:]
        if text := self._notation.feed(text):
            self._say(text)

    def flush(self, *, ends: bool = True) -> None:
        """A stretch of text ends; unless the text `ends`, JSON goes on behind a block in one of its strings."""
        if text := self._notation.flush():
            self._say(text)
        if ends and self._json is not None:
            self._let(self._json.flush())
        self._put(self._visible.flush())

    def end_message(self) -> None:
        # The end of JSON that leaves is that of the answer.
        if not self._streams_json:
            self._outlet.put(AnswerMessageEnded(self.phase))
        self.phase = None
        self._notation.begin()

    def show_block(self, raw: str) -> None:
        """A block that is no call is shown as it is. Flushed, for a tag in it ends with it."""
        self.flush(ends=False)
        self.go_on()
        self.block_is_text = True
        self._notation.pass_by(raw)
        self._say(raw)
        self.flush(ends=False)

    def take_out(self, raw: str) -> bool:
        """A block that is no call and no quotation: nobody is shown markup. Whether it was taken out."""
        if self._streams_json:
            # It may be in a string of the JSON that is asked for, and if that is leaving it is.
            self.go_on()
            self._say(raw)
            return False
        if self._outlet.reason is Reason.OUTPUT_INVALID:
            self._written.append(raw)
        self._pass()
        self._notation.pass_out()
        return True

    def pass_call(self, name: str, raw: str = "") -> None:
        """A call of that name stood here, as `raw` if it does not leave."""
        self._pass()
        if raw:
            self._notation.pass_out()
        self._notation.pass_call(name)

    def go_on(self, text: str = BLOCK) -> None:
        """A block stood here, or white space that is no text."""
        self.before = (self.before + text)[-CONTEXT:]

    def _pass(self) -> None:
        self.go_on()
        self._outlet.left.pass_block()
        self.block_is_text = False

    @property
    def _streams_json(self) -> bool:
        return self._outlet.reason is Reason.OUTPUT_INVALID and self.leaves_json

    def _say(self, text: str) -> None:
        if self._outlet.reason is not None:
            text = self._but_json(text)
        self._put(self._visible.feed(text))

    def _but_json(self, text: str) -> str:
        """`text`, but for what leaves as the JSON that it has to be."""
        if self._outlet.reason is not Reason.OUTPUT_INVALID:
            return text
        self._written.append(text)
        if self._json is None or not self._streams_json:
            return text
        self._let(self._json.feed(text))
        return self.written if self.is_no_json else ""

    def _let(self, text: str) -> None:
        if text:
            self._outlet.let(AnswerText(text, self.phase))

    def _put(self, text: str) -> None:
        if text:
            self._outlet.put(AnswerText(text, self.phase))
            if self._outlet.reason is not None:
                self._speak_unless_echo()

    def _speak_unless_echo(self) -> None:
        """What is kept leaves, if it is no beginning of an echo."""
        if self._outlet.reason is Reason.ECHO:
            said = _on_one_line(self._outlet.kept_text)
            if not any(echo.startswith(said) for echo in self._echoes):
                self._outlet.speak()


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _line_rules(plan: Plan, attempt: Attempt, lines: Sequence[str]) -> Iterator[LineRule]:
    """What is taken out of an answer line by line."""
    names, named = plan.request.registry.names, plan.options.profile.named_results
    if plan.reads_calls and plan.has_rule(ModelRule.INVENTED_RESULT):
        # In front of headers, with which such a line may begin.
        yield invented_results(names, named=named)
    if plan.has_headers and plan.has_rule(ModelRule.HEADER):
        yield headers(lambda: plan.quotes_headers, names, named=named)
    if (lines or attempt.seen) and plan.has_rule(ModelRule.OWN_LINE):
        yield own_lines(lines, attempt.seen)
