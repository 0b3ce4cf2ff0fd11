"""One request as the text that a text-only model is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from parser import ToolRegistry

from .block import json_passage, notation, offer, offered_tools
from .conversation import PageWriter, move_headers, visible, write_conversation
from .escape import escape, normalise_newlines
from .profiles import PromptProfile
from .prose import call_form, line
from .transcript import ChoiceMode, Guidance, JsonAnswer, Part, PastCall, Text, ToolChoice, ToolResult, Transcript


@dataclass(frozen=True, slots=True)
class RenderedTurn:
    """`developer` is for the backend's developer or system text, `parts` are the user's input."""

    developer: str | None
    parts: tuple[Part, ...]

    @property
    def length(self) -> int:
        """The characters of text in `parts`; backends have limits on it."""
        return sum(len(part.text) for part in self.parts if isinstance(part, Text))


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
) -> RenderedTurn:
    """The text of one turn.

    `developer` is the client's instructions, its guidance in order, then the tool block, then what form the
    answer must have; the conversation is in `parts`, and its end may hold lines of ours: what `choice` demands, what
    `profile` adds, and `fault`, a line of `prompts.repair`. With `key` every call must carry that key.
    The same arguments give the same text, and of `developer` only what stands behind `text_before_key` depends on
    `key`.
    """
    tools = offered_tools(registry, choice)
    if not len(tools):
        key = None
    before = text_before_key(transcript, tools, parallel=parallel)
    calls = notation(tools, profile, key) if len(tools) else ""
    answer_form = json_passage(json_answer, beside_calls=bool(calls)) if json_answer else ""

    page = PageWriter()
    write_conversation(page, transcript, key)
    closing = list(_closing_lines(transcript, tools, choice, profile, length=page.length, form=call_form(key)))
    if fault:
        closing.append(fault)
    if closing:
        page.write(("\n\n" if visible(transcript) else "") + "\n".join(closing))
    return RenderedTurn("\n\n".join(filter(None, (before, calls, answer_form))) or None, page.parts())


def text_before_key(transcript: Transcript, tools: ToolRegistry, *, parallel: bool) -> str:
    """The beginning of the developer text: what the client told the model, and the tools that this turn may call."""
    offered = offer(tools, parallel=parallel) if len(tools) else ""
    return "\n\n".join(filter(None, (_guidance(transcript), offered)))


def _guidance(transcript: Transcript) -> str:
    """Instructions and guidance as one text: they have one author, the client, and no borders that matter."""
    texts = [transcript.instructions or ""]
    texts += [entry.text for entry in transcript.entries if isinstance(entry, Guidance)]
    # Escaped as a whole: no border may complete a tag.
    return move_headers(escape(normalise_newlines("\n\n".join(text for text in texts if text.strip()))))


def _closing_lines(
    transcript: Transcript,
    tools: ToolRegistry,
    choice: ToolChoice,
    profile: PromptProfile,
    *,
    length: int,
    form: str,
) -> Iterator[str]:
    """The lines of ours at the end of the conversation, `length` characters long, in which calls look like `form`."""
    entries = visible(transcript)
    if not len(tools):
        if any(isinstance(entry, PastCall) for entry in entries):
            yield line("no_tools")
    elif choice.mode is ChoiceMode.REQUIRED:
        names = ", ".join(escape(tool.name) for tool in tools)
        demand = "required" if choice.names is None else "required_name" if len(tools) == 1 else "required_names"
        yield line(demand, form, names=names)
    else:
        if profile.after_results and entries and isinstance(entries[-1], ToolResult):
            yield line("after_results")
        if profile.remind_after is not None and length > profile.remind_after:
            yield line("reminder", form)
