"""`messages` of Chat Completions to a transcript, and the pairing rules of tool calls and tool messages.

A tool message belongs to the assistant message before it, so a conversation may use an id twice; OpenAI
allows it too. What it refuses is refused in its words, but for results that do not pair, unless `strict` asks for that.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from prompts import AssistantText, Guidance, PastCall, ToolResult, UserTurn

from ...errors import RequestError
from ...ids import shown_id
from ..content import UNSHOWN_IMAGES, hides_images, joined_text, parse_parts
from ..custom_tools import wrap_input
from ..json_body import JsonValue
from ..pairing import REORDERED, Paired, paired
from ..parameters import MAX_ITEMS
from ..read_on import ItemReader, ReadOn
from ..reader import Reader, missing, shown, wrong_value

# In the order in which errors name them.
MESSAGE_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


class Messages(ItemReader):
    """Reads messages one after the other and holds the pairing rules."""

    def __init__(self, *, strict: bool) -> None:
        super().__init__()
        self.warnings: set[str] = set()
        self._strict = strict
        self._names: set[tuple[JsonValue, str | None]] = set()
        self._misnamed: list[Reader] = []
        self._calls: set[str] = set()  # of the assistant message that tool messages now belong to
        self._outputs: dict[str, JsonValue] = {}
        self._called: set[str] = set()  # by any message so far
        self._displaced = 0
        self._uncalled: dict[str, RequestError] = {}
        self._function_call = ""
        self._functions = 0

    def add(self, message: Reader) -> None:
        role = message.required_string("role")
        self._note(message, role)
        if role != "tool":
            self._end_group(message)
        match role:
            case "user":
                message.require("content")
                self.entries.append(UserTurn(parse_parts(message, "content")))
            case "system" | "developer":
                self._require_content(message)
                if text := joined_text(parse_parts(message, "content")):
                    self.entries.append(Guidance(text))
            case "assistant":
                self._assistant(message)
            case "tool":
                self._tool(message)
            case "function":
                self._function(message)
            case _:
                raise wrong_value(message.at("role"), role, MESSAGE_ROLES)

    def _note(self, message: Reader, role: str) -> None:
        """What is looked at besides the conversation."""
        if hides_images(message):
            self.warnings.add(UNSHOWN_IMAGES)
        if role in ("tool", "function"):
            return
        if isinstance(name := message.get("name"), str | None):
            self._names.add((role, name))
        else:
            self._misnamed.append(message)

    def tells_participants_apart(self) -> bool:
        """Whether messages of one role have several names. One name for all, or that of a tool, tells the model
        nothing.
        """
        for message in self._misnamed:
            message.string("name")
        return len(self._names) > len({role for role, _ in self._names})

    @property
    def function_id(self) -> str:
        """What stands for the id that the next call in the older form does not have: the same in every request."""
        return f"function_{self._functions}"

    def finish(self, messages: Reader) -> Paired:
        self._end_group(messages)
        for call_id, error in self._uncalled.items():
            if call_id not in self._called:
                raise error
        if self._strict:
            return Paired(tuple(self.entries))
        made = paired(self.entries)
        reordered = made.repairs.get(REORDERED, 0) + self._displaced
        return replace(made, repairs={**made.repairs, REORDERED: reordered}) if reordered else made

    @staticmethod
    def _require_content(message: Reader) -> None:
        if "content" not in message.raw:
            raise missing(message.at("content"))

    def _assistant(self, message: Reader) -> None:
        # Without calls too, null and "" are seen: they say nothing.
        text = joined_text(parse_parts(message, "content")) or message.string("refusal")
        if text:
            self.entries.append(AssistantText(text))
        for call in message.objects("tool_calls"):
            self._call(call)
        if (function := message.object("function_call")) is not None:
            self._function_call = self._next_function()
            self.entries.append(self._past_call(self._function_call, function))

    def _call(self, call: Reader) -> None:
        call_id = shown_id(call.required_string("id"))
        if call_id in self._calls:
            raise RequestError(f"Duplicate value for 'id' of '{call_id}' in '{call.path}'.", param=call.at("id"))
        self._calls.add(call_id)
        self._called.add(call_id)
        kind = call.choice("type", ("function", "custom")) or "function"
        call.require(kind)
        body = Reader.of(call.get(kind), call.at(kind))
        self.entries.append(self._past_call(call_id, body, custom=kind == "custom"))

    def _past_call(self, call_id: str, call: Reader, *, custom: bool = False) -> PastCall:
        name = call.required_string("name")
        if custom:
            return PastCall(call_id, name, wrap_input(call.string("input") or ""))
        call.require("arguments")
        return PastCall(call_id, name, call.string("arguments") or "{}")

    def _tool(self, message: Reader) -> None:
        if self._strict and not self._calls:
            raise self._not_a_response(message)
        call_id = shown_id(message.required_string("tool_call_id"))
        if call_id not in self._calls:
            refusal = self._not_called(message, call_id) if self._calls else self._not_a_response(message)
            if self._strict:
                raise refusal
            self._displaced += call_id in self._called
            self._uncalled.setdefault(call_id, refusal)
        self._require_content(message)
        parts, output = parse_parts(message, "content"), message.get("content")
        if self._strict and call_id in self._outputs:
            if self._outputs[call_id] == output:
                return  # said twice in the same words: nothing to choose between
            raise RequestError(
                f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}'.",
                param=message.at("tool_call_id"),
            )
        self._outputs[call_id] = output
        self.entries.append(ToolResult(call_id, parts))

    @staticmethod
    def _not_a_response(message: Reader) -> RequestError:
        return RequestError(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
            "'tool_calls'.",
            param=_role_of(message),
        )

    @staticmethod
    def _not_called(message: Reader, call_id: str) -> RequestError:
        return RequestError(
            f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message.",
            param=message.at("tool_call_id"),
        )

    def _function(self, message: Reader) -> None:
        """The older form, which knows no ids: it answers the last `function_call`, or stands alone."""
        message.required_string("name")
        self._require_content(message)
        call_id, self._function_call = self._function_call or self._next_function(), ""
        self.entries.append(ToolResult(call_id, parse_parts(message, "content")))

    def _next_function(self) -> str:
        call_id = self.function_id
        self._functions += 1
        return call_id

    def _end_group(self, following: Reader) -> None:
        """The tool messages of an assistant message are over."""
        if self._strict and (unanswered := sorted(self._calls - self._outputs.keys())):
            raise RequestError(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: "
                + shown(", ".join(unanswered)),
                param=_role_of(following) if following.path else "messages",
            )
        self._calls.clear()
        self._outputs.clear()


def _role_of(message: Reader) -> str:
    """As OpenAI names it where messages do not fit together."""
    return message.at("role").replace("[", ".[", 1)


def parse_messages(request: Reader, *, strict: bool = False) -> tuple[Paired, Messages]:
    """`messages` of a request as transcript entries, and what has read them.

    `strict`: results that do not pair with their calls are refused. Raises `RequestError`.
    """
    if request.require("messages") == []:
        raise RequestError(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            code="empty_array",
            param="messages",
        )
    given = ReadOn(Messages, strict, request.array("messages", max_length=MAX_ITEMS) or [], "messages")
    messages = given.begin(partial(Messages, strict=strict))
    given.read(messages)
    conversation = messages.finish(request)
    given.keep()
    return conversation, messages
