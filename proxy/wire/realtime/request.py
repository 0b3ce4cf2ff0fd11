"""The settings of a Realtime session, and those of one response.

Both are changed by objects that hold only what changes. Settings of audio are accepted without effect, because clients
always send them. An answer in audio is refused.
"""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from prompts import ChoiceMode, ToolChoice, Transcript

from ...contracts import TurnRequest
from ...errors import RequestError
from ..builder import WireEvent
from ..json_body import JsonObject, JsonValue
from ..parameters import EFFORTS, MODEL_NAME
from ..reader import Reader, wrong_type
from ..tools import ToolSet, parse_tool_choice, parse_tools
from .items import Items
from .versions import Words

# Values of `tool_choice` that are no object.
CHOICES = tuple(mode.value for mode in ChoiceMode)

# The default of clients that do not say how many tokens an answer may have.
NO_LIMIT = "inf"


class SessionSettings(Struct, frozen=True):
    """`tools` are offered, `tools_echo` is what the client said of them; None of the rest means the default."""

    instructions: str = ""
    tools: ToolSet = field(default_factory=ToolSet)
    tools_echo: tuple[JsonValue, ...] = ()
    tool_choice: JsonValue = "auto"
    max_output_tokens: int | None = None
    parallel: bool = True
    effort: str | None = None
    truncation: JsonValue = "auto"
    tracing: JsonValue = None

    def changed(self, change: Reader, words: Words) -> SessionSettings:
        """These with what `change` holds. Raises `RequestError`; nothing has changed then."""
        if change.get("prompt") is not None:
            raise RequestError(
                "Stored prompt templates are not available here: send 'instructions'.",
                code="unsupported_parameter",
                param=change.at("prompt"),
            )
        _check_modalities(change, words)
        _check_choice(change)
        settings = self
        if change.get("tools") is not None:
            echo = tuple(change.array("tools") or ())
            settings = replace(settings, tools=parse_tools(change), tools_echo=echo)
        if (choice := change.get("tool_choice")) is not None:
            settings = replace(settings, tool_choice=choice)
        settings.choice()
        if (instructions := change.string("instructions")) is not None:
            settings = replace(settings, instructions=instructions)
        if (parallel := change.boolean("parallel_tool_calls")) is not None:
            settings = replace(settings, parallel=parallel)
        if (reasoning := change.object("reasoning")) is not None:
            settings = replace(settings, effort=reasoning.choice("effort", EFFORTS))
        for name in {"max_output_tokens", words.max_output_tokens}:
            if change.get(name) is not None:
                settings = replace(settings, max_output_tokens=_limit(change, name))
        if (truncation := change.get("truncation")) is not None:
            _check_truncation(change)
            settings = replace(settings, truncation=truncation)
        return replace(settings, tracing=change.get("tracing") or self.tracing)

    def choice(self) -> ToolChoice:
        """Raises `RequestError` when it names a tool that is not there."""
        return (
            parse_tool_choice(Reader({"tool_choice": self.tool_choice}), self.tools)
            if self.tools.echo
            else ToolChoice()
        )

    @property
    def shown_limit(self) -> int | str:
        return NO_LIMIT if self.max_output_tokens is None else self.max_output_tokens


def _check_modalities(change: Reader, words: Words) -> None:
    modalities = change.array(words.modalities)
    if modalities is not None and "text" not in modalities:
        raise RequestError(
            f"This server does not speak: set '{words.modalities}' to ['text'].",
            code="unsupported_value",
            param=change.at(words.modalities),
        )


def _check_choice(change: Reader) -> None:
    """The form alone: the tools that it names may come with the next change."""
    match value := change.get("tool_choice"):
        case None:
            pass
        case str():
            change.choice("tool_choice", CHOICES)
        case dict():
            Reader.of(value, change.at("tool_choice")).required_string("type")
        case _:
            raise wrong_type(change.at("tool_choice"), "one of 'none', 'auto', 'required' or an object", value)


def _check_truncation(change: Reader) -> None:
    match value := change.get("truncation"):
        case str():
            change.choice("truncation", ("auto", "disabled"))
        case dict():
            ratio = Reader.of(value, change.at("truncation"))
            ratio.required_string("type")
            ratio.choice("type", ("retention_ratio",))
            ratio.require("retention_ratio")
            ratio.number("retention_ratio", minimum=0, maximum=1)
        case _:
            raise wrong_type(change.at("truncation"), "one of 'auto', 'disabled' or an object", value)


def _limit(change: Reader, name: str) -> int | None:
    value = change.get(name)
    if value == NO_LIMIT:
        return None
    if isinstance(value, str):
        raise wrong_type(change.at(name), f"an integer or '{NO_LIMIT}'", value)
    return change.integer(name, minimum=1)


def parse_model(query: JsonObject) -> str:
    """`model` of the URL. Raises `RequestError`."""
    return Reader(query).matching("model", MODEL_NAME)


def changed_session(settings: SessionSettings, change: Reader, words: Words) -> SessionSettings:
    """The settings after `session.update`. The model stays what the URL says, as at OpenAI."""
    if change.choice("type", ("realtime", "transcription")) == "transcription":
        raise RequestError(
            "This server does not hear: sessions are of type 'realtime'.",
            code="unsupported_value",
            param=change.at("type"),
        )
    return settings.changed(change, words)


def session_object(session_id: str, model: str, settings: SessionSettings, words: Words) -> WireEvent:
    head = dict(words.session)
    if "truncation" in head:
        head["truncation"] = settings.truncation
    return {
        "id": session_id,
        "object": "realtime.session",
        **head,
        "model": model,
        words.modalities: ["text"],
        "instructions": settings.instructions,
        "tools": list(settings.tools_echo),
        "tool_choice": settings.tool_choice,
        words.max_output_tokens: settings.shown_limit,
        "tracing": settings.tracing,
    }


def turn_of(model: str, settings: SessionSettings, items: Items, *, insists: bool) -> TurnRequest:
    """The turn that answers `items`.

    A demand for a call is met once its results are there, or the conversation would never come to an answer:
    it counts as auto then, unless the client `insists`, which is to say it with this very response.
    """
    choice = settings.choice()
    if choice.mode is ChoiceMode.REQUIRED and items.end_with_results and not insists:
        choice = ToolChoice()
    return TurnRequest(
        model=model,
        transcript=Transcript(items.entries(), settings.instructions or None),
        registry=settings.tools.registry,
        choice=choice,
        parallel=settings.parallel,
        effort=settings.effort,
        max_output_tokens=settings.max_output_tokens,
        truncate=settings.truncation != "disabled",
    )
