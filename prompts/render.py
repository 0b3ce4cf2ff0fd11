"""One request as the text that a text-only model is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import inf

from msgspec import Struct

from parser import ToolRegistry

from .conversation import PageWriter, harmless, last_visible, text_length, visible, write_conversation
from .deferred import Deferred
from .escape import escape, normalise_newlines
from .items import Item, OwnLine, conversation_items
from .outline import outline_of
from .passages import call_form, line, no_tools
from .profiles import PromptProfile
from .repair import after_named_results, request_told
from .tool_block import front_tools, json_passage, notation, offer, offered_tools
from .transcript import (
    ChoiceMode,
    Entry,
    Guidance,
    JsonAnswer,
    Part,
    PastCall,
    Text,
    ToolChoice,
    ToolResult,
    Transcript,
)


class RenderedTurn(Struct, frozen=True):
    """One turn in two forms: `developer` with `parts`, or `head` with `items`.

    `developer` and `head` are for the backend's developer or system text. `parts` are the conversation as the
    user's input; `items` are the same as messages, for backends that keep roles apart. Neither is made before it is
    looked at. `bare_head` is what `head` would be without tools.
    """

    developer: str | None
    parts: Sequence[Part]
    head: str | None
    items: Sequence[Item]
    lines: Sequence[str]
    bare_head: str | None

    @property
    def length(self) -> int:
        """The characters of text in `parts`; backends have limits on it."""
        return text_length(self.parts)


def render_turn(
    transcript: Transcript,
    registry: ToolRegistry,
    choice: ToolChoice,
    *,
    parallel: bool,
    profile: PromptProfile,
    key: str | None = None,
    fault: str | None = None,
    json_answer: JsonAnswer | None = None,
    alone: bool = False,
) -> RenderedTurn:
    """The text of one turn.

    `developer` is the client's instructions, its guidance in order, then the tool block, then what form the
    answer must have; `head` is the same, but guidance behind the first user message is among the items, so that
    it does not change. The conversation ends in lines of ours, if there are any: what `choice` demands, what
    `profile` adds, and `fault`, a line of `prompts.repair`; which stands `alone` where it says how to answer. With
    `key` every call must carry that key. The same arguments give the same text, and of `head` only what stands behind
    `text_before_key` depends on `key`.
    """
    tools = offered_tools(registry, choice)
    if not len(tools):
        key = None
    front = front_tools(tools, outline_of(transcript.entries).brought)
    calls = notation(front, profile, key) if len(tools) else ""
    answer_form = json_passage(json_answer, beside_calls=bool(calls)) if json_answer else ""
    guidance = _guidance(transcript, transcript.leading_guidance)
    head = _joined(_before_key(guidance, front, profile, parallel=parallel), calls, answer_form)
    developer = head
    if profile.named_results or _guides_later(transcript):
        developer = _joined(_guidance(transcript, transcript.entries), _offer(front, parallel), calls, answer_form)
    # Of a conversation without tools nobody asks how long it is.
    enough = profile.remind_after if len(tools) and profile.remind_after is not None else inf
    closing = partial(_closing_lines, transcript, tools, choice, profile, form=call_form(key), fault=fault, alone=alone)

    def parts() -> Iterable[Part]:
        page = PageWriter()
        write_conversation(page, transcript, key)
        if lines := [text for _, text in closing(is_long=page.length > enough)]:
            page.write(("\n\n" if visible(transcript) else "") + "\n".join(lines))
        return page.parts()

    def items() -> Iterable[Item]:
        said, length = conversation_items(transcript, key, named_results=profile.named_results)
        lines = closing(is_long=length > enough, as_items=True)
        return [*said, *(Item("user", (Text(text),), ours=ours) for ours, text in lines)]

    def lines() -> Sequence[str]:
        # Both forms differ where results are named. Whatever its length: a line that was not shown is not repeated.
        forms = (False, True) if profile.named_results else (False,)
        shown = [text for form in forms for _, text in closing(is_long=True, as_items=form)]
        told = request_told(transcript)
        return [*shown, told] if told and any(text.endswith(told) for text in shown) else shown

    bare = _joined(guidance, answer_form)
    return RenderedTurn(
        developer or None, Deferred(parts), head or None, Deferred(items), Deferred(lines), bare or None
    )


def text_before_key(transcript: Transcript, tools: ToolRegistry, *, parallel: bool, profile: PromptProfile) -> str:
    """The beginning of `head`: what the client told the model in front of the conversation, and the tools on offer."""
    front = front_tools(tools, outline_of(transcript.entries).brought)
    guidance = _guidance(transcript, transcript.leading_guidance)
    return _before_key(guidance, front, profile, parallel=parallel)


def _before_key(guidance: str, front: ToolRegistry, profile: PromptProfile, *, parallel: bool) -> str:
    return _joined(guidance, _offer(front, parallel, named_results=profile.named_results))


def _guides_later(transcript: Transcript) -> bool:
    """Whether guidance stands behind the first user message."""
    return outline_of(transcript.entries).guidance > len(transcript.leading_guidance)


def _joined(*passages: str) -> str:
    return "\n\n".join(filter(None, passages))


def _offer(tools: ToolRegistry, parallel: bool, *, named_results: bool = False) -> str:
    return offer(tools, parallel=parallel, named_results=named_results) if len(tools) else ""


def _guidance(transcript: Transcript, entries: Iterable[Entry]) -> str:
    """Instructions and the guidance in `entries` as one text: they have one author, and no borders that matter."""
    texts = [transcript.instructions or "", *(entry.text for entry in entries if isinstance(entry, Guidance))]
    # Escaped as a whole: no border may complete a tag.
    return harmless(normalise_newlines("\n\n".join(text for text in texts if text.strip())))


def _closing_lines(
    transcript: Transcript,
    tools: ToolRegistry,
    choice: ToolChoice,
    profile: PromptProfile,
    *,
    is_long: bool,
    form: str,
    fault: str | None,
    alone: bool,
    as_items: bool = False,
) -> Iterator[tuple[OwnLine, str]]:
    """The lines of ours at the end of the conversation, in which calls look like `form`.

    `is_long`: it has more characters than `profile` leaves without a reminder.
    """
    if not len(tools):
        if PastCall in outline_of(transcript.entries).kinds and not (alone and fault):
            yield OwnLine.NO_TOOLS, no_tools()
    elif choice.mode is ChoiceMode.REQUIRED:
        names = ", ".join(escape(tool.name) for tool in tools)
        demand = "required" if choice.names is None else "required_name" if len(tools) == 1 else "required_names"
        yield OwnLine.DEMAND, line(demand, form, names=names)
    else:
        if profile.after_results and not (alone and fault) and isinstance(last_visible(transcript), ToolResult):
            named = as_items and profile.named_results
            yield OwnLine.AFTER_RESULTS, after_named_results(transcript) if named else line("after_results")
        if profile.remind_after is not None and is_long:
            yield OwnLine.REMINDER, line("reminder", form)
    if fault:
        yield OwnLine.FAULT, fault
