"""The quote guard: a call that stands in the request's own untrusted text is a quotation, not a call.

A note may hold a whole call. A model that is asked to show the note writes it, and nobody has jailbroken
anything. So before a call is passed on, its name and its arguments, compared as values, are looked up among
all calls that can be read from the request, however a copy may spell it (`copies`, `decodings`), and as far gone as
`SentinelParser` would still repair it (`quoted_blocks`). One that is found is judged by where it stands (`zones`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cached_property

from parser import ToolRegistry

from ..transcript import PastCall, Transcript
from .budget import ReadingBudget, TooMuchToReadError
from .characters import fold
from .copies import rows
from .mentions import Mention, essence, scalars
from .readable import AskedCall, FoldedCall, FoldedTexts, ReadableCalls
from .zones import Zones

# Characters between the tags. Less than this, as `{"name":`, is what any two broken blocks have in common.
_LEAST_QUOTATION = 10
_TAG = re.compile("</?tool_call>?")

# Folded characters in front of a block that tell whether its context was copied with it: no sentence of the model's own
# ends in so many of a note's. Fewer than the least are what any two sentences may end in.
_CONTEXT, _LEAST_CONTEXT = 24, 6
# Characters of an answer that hold so many folded ones, unless somebody fills them up.
_CONTEXT_READ = 1024

# A word of a tool's name, and the letters of one by which a user may call for it. Shorter ones, as `get` and `all`, are
# in any sentence.
_WORD = re.compile(r"[^\W\d_]+")
_NAMING = 4
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class QuoteGuard:
    """Knows the calls that stand in `strings`, which are read when the first question is asked.

    `transcript` is the conversation that they stand beside, if any. Names are compared as `registry` understands
    them. The work is a few searches without the tag's word in the request, linear in its length with it, and
    bounded by `ReadingBudget`s.
    """

    def __init__(self, strings: Iterable[str], registry: ToolRegistry, transcript: Transcript | None = None) -> None:
        self._registry = registry
        self._also = tuple(strings)
        self._transcript = Transcript(()) if transcript is None else transcript
        self._whole = ReadableCalls(
            lambda: [self._also, *(rows(transcript, registry) if transcript else ())],
            registry,
            transcript=transcript,
            tools=registry,
        )
        # A budget of its own: what is read as calls must not depend on how many broken blocks were asked for.
        self._texts = FoldedTexts(self._whole.texts, lambda: ReadingBudget(self._whole.length))

    @classmethod
    def of(cls, transcript: Transcript, registry: ToolRegistry, also: Iterable[str] = ()) -> QuoteGuard:
        """The guard over everything untrusted in one request; `also` are its strings beside the transcript."""
        return cls(also, registry, transcript)

    def is_quotation(self, name: str, arguments: str, *, before: str = "", demanded: bool = False) -> bool:
        """Whether a call of `name` with the JSON object `arguments`, which has no key, is a quotation.

        `before` is the answer's text right in front of its block. `demanded`: the client demands a call.
        """
        call = AskedCall.of(name, arguments, self._registry)
        if call is None or not self._whole.has(call):
            return False
        return self._is_quoted(
            lambda zone: zone.has(call),
            # Of what was read to its end all is known. Of what was too much, a string that no zone owns to is a
            # coincidence, but two of them may make up a call.
            across=not self._whole.too_much or self._whole.has_cut(call),
            name=name,
            arguments=arguments,
            before=before,
            demanded=demanded,
        )

    def stands_in_new_output(self, name: str, arguments: str) -> bool:
        """Whether the call can be read from tool results that are newer than the last user message."""
        call = AskedCall.of(name, arguments, self._registry)
        return call is not None and self._whole.has(call) and self._zones.results.has(call)

    def may_stand_bare_in_new_output(self, name: str) -> bool:
        """Whether a call of `name` may stand in these results as JSON without tags."""
        return self._zones.results.may_have_bare(name)

    def stands_bare_in_new_output(self, name: str, arguments: str) -> bool:
        """Whether the call stands there as JSON without tags. Not one that was made before: errors tell those."""
        if not self.may_stand_bare_in_new_output(name):
            return False
        call = AskedCall.of(name, arguments, self._registry)
        return call is not None and call.folded not in self._past and self._zones.results.has_bare(call)

    @cached_property
    def _past(self) -> set[FoldedCall]:
        past = (entry for entry in self._transcript.entries if isinstance(entry, PastCall))
        made = (AskedCall.of(entry.name, entry.arguments, self._registry) for entry in past)
        return {call.folded for call in made if call is not None}

    def is_suspect(self) -> bool:
        """Whether the tag's word stands anywhere in the request: else nothing was escaped and nothing can be quoted."""
        return self._whole.is_suspect()

    def quotes_text(self, raw: str) -> bool:
        """Whether the text of a block that is no call stands in the request's own text, the same but for its folding.

        Never for a block that holds next to nothing.
        """
        # Here texts are compared after all: a broken block has no value that could be. That it is a quotation is no
        # matter of safety, since no call leaves: it decides whether a second attempt is worth its cost.
        block = fold(raw)
        if len(_TAG.sub("", block)) < _LEAST_QUOTATION or not _TAG.search(block) or not self.is_suspect():
            return False
        try:
            return self._texts.has(block)
        except TooMuchToReadError:
            return True

    def quotes_bare(self, raw: str, *, before: str = "", demanded: bool = False) -> bool:
        """Whether the JSON of a call that was written without tags stands in the request, the same but for its folding.

        Judged by where it stands, as `is_quotation` does.
        """
        # Copied JSON is no call of anybody, so unlike a tagged one it needs no word of ours to be suspect.
        # The object without what the answer put round it, as a fence: that need not stand in the request.
        written = raw[raw.find("{") : raw.rfind("}") + 1]
        call = fold(written)
        if not self._whole.holds(call):
            return False
        name, arguments = _parts_of(written)
        return self._is_quoted(
            lambda zone: zone.holds(call), across=True, name=name, arguments=arguments, before=before, demanded=demanded
        )

    @cached_property
    def _zones(self) -> Zones:
        return Zones(self._transcript, self._registry, self._also, self._whole.length)

    def _is_quoted(
        self,
        stands_in: Callable[[ReadableCalls], bool],
        *,
        across: bool,
        name: str,
        arguments: str,
        before: str,
        demanded: bool,
    ) -> bool:
        """Whether what stands in the request is a quotation, by the zone that it stands in."""
        zones = self._zones
        if stands_in(zones.new):
            # Who demands a call and writes it into the prompt wants that one. What came behind the prompt nobody wrote
            # who may demand anything.
            return not (demanded and stands_in(zones.message) and not stands_in(zones.behind_message))
        is_older = stands_in(zones.older)
        if not (is_older or stands_in(zones.standing)):
            return across
        # A model that shows all of a text shows what stands in front of the call, too. One that was taught by an
        # example, or is told to do now what was spoken of before, writes the call alone.
        if self._has_context(before):
            return True
        # An old note may still be asked for, and then a copy that was cleaned up has no context: so here it is the user
        # who has to mean the call.
        return is_older and not self._is_named(name, arguments)

    def _has_context(self, before: str) -> bool:
        """Whether the end of `before` was copied from the request."""
        context = fold(before[-_CONTEXT_READ:])[-_CONTEXT:]
        if len(context) < _LEAST_CONTEXT:
            return False
        try:
            # Near the beginning of a text what stands in front of it is ours, or the model's.
            return self._texts.has(context) or any(
                self._texts.has(f"\n{context[-length:]}") for length in range(_LEAST_CONTEXT, len(context))
            )
        except TooMuchToReadError:
            return self._whole.mentions(Mention(frozenset({essence(context)}), frozenset()))

    def _is_named(self, name: str, arguments: str) -> bool:
        """Whether the last user message names what the call is about; of a call about nothing, the tool."""
        question = fold(self._zones.question or "")
        values = list(filter(None, map(fold, scalars(arguments))))
        if values:
            return all(value in question for value in values)
        words = _WORD.findall(_CAMEL.sub(" ", name))
        if any(len(word) >= _NAMING for word in words):
            return any(fold(word) in question for word in words if len(word) >= _NAMING)
        # Of nothing but such words all are named, and as they stand in a sentence.
        said = [fold(word) for word in _WORD.findall(self._zones.question or "")]
        return bool(words) and all(any(_says(told, fold(word)) for told in said) for word in words)


def _says(told: str, word: str) -> bool:
    """Whether a word of a sentence is that `word`; where words are written without blanks, whether it holds it."""
    return told == word or (not word.isascii() and word in told)


def _parts_of(written: str) -> tuple[str, str]:
    """The name and the arguments of a call's JSON, empty where they cannot be read."""
    try:
        call = json.loads(written)
    except (ValueError, RecursionError):
        return "", ""
    return str(call.get("name", "")), json.dumps(call.get("arguments", {}))
