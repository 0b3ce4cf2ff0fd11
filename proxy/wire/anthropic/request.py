"""POST /v1/messages: a request body to what the turn needs and what the answer depends on.

docs/reference/messages.md says for each parameter what becomes of it. Unknown fields and blocks are ignored: clients
send next week's, and a 400 would cost them the whole conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import orjson
from msgspec import Struct

from prompts import Transcript

from ...contracts import OutputFormat, Sampling, TurnRequest
from ...errors import RequestError
from ..json_body import JsonObject
from ..pairing import MISSING
from ..parameters import EFFORTS, MODEL_NAME, wishes
from ..reader import Reader, wrong_type
from ..tools import ToolSet
from .blocks import brought_tools, parse_conversation, text_of
from .errors import UNTHREADED
from .tools import parse_messages_tools

# How clients say how much a model may read; not a part of its name.
_WINDOW = re.compile(r"\[\w+\]$")

# What accounts for a request, and differs from one to the next: in the prompt no cache would ever match.
_BILLING = "x-anthropic-billing-header:"

# What would change the answer and cannot be served -> what to do instead.
UNSERVED: Mapping[str, str] = {
    "mcp_servers": "No MCP server is called from here: offer its tools in 'tools', and call them yourself.",
    "thread": "No history is kept here: send the whole conversation in 'messages'.",
}

# The effort of a model that is not to think.
_NO_THOUGHT = "low"

# Where the verdict on a command ends, in Claude Code's auto mode.
_VERDICT = "</block>"

UNANSWERED = "A tool_use had no tool_result: the model was shown that."
UNCOMPACTED = "Nothing is compacted here: make the conversation shorter when it is told to be too long."


class MessagesRequest(Struct, frozen=True):
    """`model` is the name that the client knows. `thoughts`: the model's are told, where there are any. `warms`:
    nothing is wanted but that the backend has read the request.
    """

    turn: TurnRequest
    tools: ToolSet
    model: str
    stream: bool
    thoughts: bool
    warms: bool = False

    @property
    def judges_commands(self) -> bool:
        """Whether it asks, as Claude Code's auto mode does, if a command may run unasked."""
        return _VERDICT in self.turn.stop and not len(self.turn.registry)

    @property
    def searches_web(self) -> bool:
        """Whether it asks, as Claude Code's WebSearch does, for what a search of Anthropic's finds: other clients name
        no session, or have tools of their own.
        """
        searches = any(kind.startswith("web_search") for kind in self.tools.hosted)
        return searches and bool(self.turn.names) and not len(self.turn.registry)


def parse_messages_request(body: JsonObject, *, session: str | None = None, counted: bool = False) -> MessagesRequest:
    """The request in `body`, checked as a whole before any backend hears of it. `session` is its client's name for the
    conversation and those beside it. `counted`: it is to be counted alone. Raises `RequestError`.
    """
    request = Reader(body)
    model = request.matching("model", MODEL_NAME)
    for name, why in UNSERVED.items():
        if request.get(name):
            raise RequestError(why, code=UNTHREADED if name == "thread" else "unsupported_parameter", param=name)
    if not counted:
        request.require("max_tokens")
    brought = brought_tools(request)
    chosen = parse_messages_tools(request, brought.names, brought.definitions)
    conversation = parse_conversation(request, chosen.tools)
    thinking = request.object("thinking")
    thought = thinking.string("type") if thinking else None
    config = request.object("output_config") or Reader({}, "output_config")
    thoughts = thought not in (None, "disabled") and thinking is not None and thinking.get("display") != "omitted"
    stream, limit = request.boolean("stream") is True, request.integer("max_tokens", minimum=0)
    return MessagesRequest(
        turn=TurnRequest(
            model=_WINDOW.sub("", model) or model,
            transcript=Transcript(conversation.entries, _system(request)),
            registry=chosen.tools.registry,
            choice=chosen.choice,
            parallel=chosen.parallel,
            effort=_NO_THOUGHT if thought == "disabled" else _effort(config),
            summary="auto" if thoughts else None,
            output_format=_output_format(config) or _output_format(request, "output_format"),
            max_output_tokens=None if limit is None else max(1, limit),  # there are servers that take no 0
            stop=tuple(_stop_sequences(request)),
            sampling=Sampling(
                request.number("temperature", minimum=0, maximum=2), request.number("top_p", minimum=0, maximum=1)
            ),
            repairs=conversation.repairs,
            warnings=(
                *chosen.tools.warnings,
                *((UNANSWERED,) if MISSING in conversation.repairs else ()),
                *((UNCOMPACTED,) if _compacts(request) else ()),
            ),
            wishes=(*wishes(request), *(["top_k"] if request.get("top_k") is not None else [])),
            streamed=stream,
            names=frozenset(filter(None, [session, _session(request)])),
            searchable=chosen.searchable,
        ),
        tools=chosen.tools,
        model=model,
        stream=stream,
        thoughts=thoughts,
        warms=limit == 0,
    )


def _compacts(request: Reader) -> bool:
    """Whether the server is to sum up what is too long."""
    match request.get("context_management"):
        case {"edits": [*edits]}:
            return any(isinstance(edit, dict) and str(edit.get("type")).startswith("compact") for edit in edits)
        case _:
            return False


def _system(request: Reader) -> str | None:
    """`system` without what is no instruction."""
    match request.get("system"):
        case [{"type": "text", "text": str(text)}, *rest] if text.startswith(_BILLING):
            request = Reader({"system": rest})
        case _:
            pass
    return text_of(request, "system") or None


def _effort(config: Reader) -> str | None:
    effort = config.get("effort")
    return effort if isinstance(effort, str) and effort in EFFORTS else None


def _output_format(holder: Reader, key: str = "format") -> OutputFormat | None:
    form = holder.object(key)
    if form is None or form.string("type") != "json_schema":
        return None
    form.require("schema")
    schema = Reader.of(form.get("schema"), form.at("schema"))
    return OutputFormat(orjson.dumps(schema.raw).decode(), strict=True)


def _stop_sequences(request: Reader) -> Iterator[str]:
    for index, value in enumerate(request.array("stop_sequences") or []):
        if not isinstance(value, str):
            raise wrong_type(f"stop_sequences[{index}]", "a string", value)
        if value:
            yield value


def _session(request: Reader) -> str | None:
    """The session that Claude Code names: its `user_id` is JSON text."""
    metadata = request.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    try:
        told = orjson.loads(user) if isinstance(user, str) else None
    except orjson.JSONDecodeError:
        return None
    match told:
        case {"session_id": str(session)}:
            return session
        case _:
            return None
