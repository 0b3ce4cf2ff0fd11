"""The text of one answer: which of it is shown, at once or later, and what is known of that in the end.

text between blocks --> own notation --> visible text --> release --> the client
a block that is text ------------------------^
a block that is not shown --> told and counted
"""

from __future__ import annotations

from collections.abc import Iterable

from prompts import BLOCK, CONTEXT

from ..contracts import AnswerMessageEnded, AnswerText
from .filters import Chain, OwnNotation, TakenOut
from .json_stream import JsonStream
from .outlet import Outlet
from .reason import Reason
from .report import TurnReport
from .verdict import Said

# Pieces of the answer's end that are kept before they are joined and cut.
_KEPT = 512
# Pieces of the answer that are kept to see whether a second one begins with them.
_COMPARED = 4096
# Characters. What stands in front of a call and says more than that it comes is an answer of its own.
MAX_PREFACE = 200


class ShownText:
    """Feed it the answer's text, and tell it of blocks.

    `echoes` are what it may be instead of an answer, where that is why it is kept.
    """

    def __init__(
        self,
        outlet: Outlet,
        report: TurnReport,
        notation: OwnNotation,
        visible: Chain,
        *,
        echoes: Iterable[str] = (),
    ) -> None:
        self._outlet = outlet
        self._report = report
        self._notation = notation
        self._visible = visible
        self._echoes = {*map(_on_one_line, echoes)}
        self._told: list[str] = []
        self._compares = True
        self._before: list[str] = []
        self._written: list[str] = []
        self._preface = ""
        # Whether there was a block that is not text, and whether the last one was text: then so is what closes it once
        # more.
        self._blocks = False
        self.block_is_text = False
        self._json: JsonStream | None = None
        self.left_json = False
        """The text that was to be told as the JSON that it is did not begin as such."""
        self.shown = False
        """Text has left."""
        self.phase: str | None = None
        """Of the message that is being written."""
        self.lost: list[str] = []
        """What a client is told of blocks that were taken out."""

    @property
    def before(self) -> str:
        """The end of the answer so far, up to `CONTEXT` characters, with a `BLOCK` for each block in it."""
        self._before[:] = ["".join(self._before)[-CONTEXT:]]
        return self._before[0]

    @property
    def told(self) -> str:
        """What has left of the first message; empty where another one has begun, or it is too long to be compared."""
        return "".join(self._told) if self._compares else ""

    @property
    def written(self) -> str:
        """The text as the model wrote it, where it has to be JSON."""
        return "".join(self._written)

    @property
    def said(self) -> Said:
        # JSON that leaves early is no preface.
        is_preface = self._blocks and self.shown and len(self._preface) <= MAX_PREFACE
        return Said(shown=self.shown, told=self.told, preface=self._preface if is_preface else "")

    @property
    def echo(self) -> bool:
        """What is held is one of `echoes`, white space aside."""
        return self._outlet.reason is Reason.ECHO and _on_one_line(self._outlet.kept_text) in self._echoes

    def speak(self) -> None:
        """What was held as a possible echo is none, and leaves."""
        if self._outlet.reason is Reason.ECHO:
            self.shown = self.shown or bool(self._outlet.kept)
            self._told.append(self._outlet.kept_text)
            self._outlet.speak()

    @property
    def tells_json(self) -> bool:
        """What must be JSON leaves as it comes, and is such so far."""
        return self._json is not None

    def tell_json(self, stream: JsonStream | None) -> None:
        """Before the first text: what must be JSON leaves through `stream`, where it is JSON."""
        self._json = stream

    def feed(self, text: str) -> None:
        before = self._before
        before.append(text)
        if len(before) > _KEPT:
            before[:] = [self.before]
        if text := self._notation.feed(text):
            self._say(text)

    def flush(self, *, ends: bool = True) -> None:
        """A stretch of text ends; unless the text `ends`, JSON goes on behind a block in one of its strings."""
        if text := self._notation.flush():
            self._say(text)
        if ends and self._json is not None:
            self._tell(self._json.flush())
        if text := self._visible.flush():
            self._show(AnswerText(text, self.phase))

    def end_message(self) -> None:
        self._show(AnswerMessageEnded(self.phase))
        self.phase = None
        self._notation.begin()

    def show_block(self, raw: str) -> None:
        """A block that is no call is shown as it is. Flushed, for a tag in it ends with it."""
        self.flush(ends=False)
        self._before.append(BLOCK)
        self.block_is_text = True
        self._notation.pass_by(raw)
        self._say(raw)
        self.flush(ends=False)

    def take_out(self, raw: str, told: str) -> None:
        """A block that is no call and no quotation: nobody is shown markup, and the client is `told`."""
        # It may be in a string of the JSON that is asked for, and if that is leaving it is.
        if self._json is not None and self._outlet.reason is Reason.OUTPUT_INVALID:
            self._before.append(BLOCK)
            self._say(raw)
            return
        self._write(raw)
        self._pass()
        self._notation.pass_out()
        self._report.take_out(TakenOut.BLOCK)
        self.lost.append(told)

    def pass_call(self, name: str, raw: str = "") -> None:
        """A call of that name stood here, as `raw` if it does not leave."""
        self._pass()
        if raw:
            self._notation.pass_out()
        self._notation.pass_call(name)

    def pass_blank(self, blank: str) -> None:
        """White space stood here that is no text."""
        self._before.append(blank)

    def _pass(self) -> None:
        self._before.append(BLOCK)
        self._blocks, self.block_is_text = True, False

    def _say(self, text: str) -> None:
        self._write(text)
        if self._json is not None and self._outlet.reason is Reason.OUTPUT_INVALID:
            self._tell(self._json.feed(text))
            if not self._json.held:
                return
            text, self._json, self.left_json = self.written, None, True
        if text := self._visible.feed(text):
            self._show(AnswerText(text, self.phase))

    def _tell(self, text: str) -> None:
        if text:
            self.shown = True
            self._outlet.let(AnswerText(text, self.phase))

    def _write(self, text: str) -> None:
        if self._outlet.reason is Reason.OUTPUT_INVALID:
            self._written.append(text)

    def _show(self, event: AnswerText | AnswerMessageEnded) -> None:
        if self._json is not None and self._outlet.reason is Reason.OUTPUT_INVALID:
            return  # its end is that of the answer
        if self._outlet.keeps:
            self._outlet.put(event)
            if self._outlet.reason is Reason.ECHO:
                said = _on_one_line(self._outlet.kept_text)
                if not any(echo.startswith(said) for echo in self._echoes):
                    self.speak()
        else:
            if isinstance(event, AnswerText):
                self.shown = True
                if self._compares:
                    self._told.append(event.text)
                    self._compares = len(self._told) < _COMPARED
            else:
                self._compares = False
            self._outlet.put(event)
        if isinstance(event, AnswerText) and len(self._preface) <= MAX_PREFACE:
            # Behind a block it is none.
            behind = "." * MAX_PREFACE if self._blocks and not event.text.isspace() else ""
            self._preface += event.text + behind


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
