"""`input` of the Responses API to a transcript, and the pairing rules of calls and their outputs.

Whatever OpenAI refuses is refused in its words (docs/reference/errors.md). Whatever it is known to accept is accepted,
also without ids, with nulls and with unknown members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

from msgspec import Struct, field

from prompts import AssistantText, Guidance, PastCall, Text, ToolResult, UserTurn, compacted

from ...contracts import PHASES, WireObject
from ...errors import RequestError
from ...ids import shown_id
from ..content import UNSHOWN_IMAGES, hides_images, joined_text, parse_parts
from ..custom_tools import wrap_input
from ..json_body import JsonValue
from ..pairing import Paired, missing_result, paired
from ..parameters import MAX_ITEMS
from ..read_on import ItemReader, ReadOn
from ..reader import Reader, missing, shown, wrong_type, wrong_value
from ..tools import SEARCH, ToolSet
from .compaction_items import read_summary
from .foreign_items import CLIENT_CALLS, CLIENT_OUTPUTS, HOSTED_CALLS, client_call, client_result, foreign_id
from .tool_search import executed_by_client, past_arguments, search_result

# The roles of messages.
INPUT_ROLES = ("assistant", "developer", "system", "user")

# Kinds of calls, with the words for them in OpenAI's errors.
CALL_NOUNS = {
    "function_call": "function call", "custom_tool_call": "custom tool call", "tool_search_call": "tool search call",
}  # fmt: skip

# Kinds of outputs, with the kind of call that each answers.
OUTPUTS = {
    "function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call",
    "tool_search_output": "tool_search_call",
}  # fmt: skip

# Kinds of items that bring tools.
BRINGING = ("additional_tools", "tool_search_output")

# The warning for a client that believes the model knows this summary.
UNREAD_SUMMARY = "A 'compaction' item comes from another server: the model was not shown its summary."

# Kinds that real clients have in their history and that say nothing to a text model.
SILENT_ITEMS = frozenset({
    "additional_tools", "compaction_trigger", "configuration_update", "image_generation_call", "mcp_approval_request",
    "mcp_approval_response", "mcp_list_tools", "program", "program_output", "reasoning",
})  # fmt: skip

# Calls and results of tools that are not offered here, which are shown all the same.
FOREIGN_ITEMS = frozenset({*CLIENT_CALLS, *CLIENT_OUTPUTS, *HOSTED_CALLS})

# All accepted kinds, in the order in which errors name them.
ITEM_KINDS = (
    "message", *CALL_NOUNS, *OUTPUTS, "compaction", "item_reference",
    *sorted(FOREIGN_ITEMS | SILENT_ITEMS),
)  # fmt: skip


class History(Struct, frozen=True):
    """Stored items: those that stand before the request's own, and those that it refers to by id.

    `strict`: outputs that do not pair with their calls are refused, as OpenAI does.
    """

    items: tuple[WireObject, ...] = ()
    referred: Mapping[str, WireObject] = field(default_factory=dict)
    strict: bool = False


# The history of a request that begins a conversation.
NO_HISTORY = History()


class InputItems(ItemReader):
    """Reads items one after the other and applies the rules for pairs. `bringing` are the items that bring tools.
    `heeds_tools`: the meaning of an item depends on the tools of the request.
    """

    def __init__(self, tools: ToolSet, history: History, param: str = "input") -> None:
        """`param` is the member of the request that holds the items."""
        super().__init__()
        self.tools = tools
        self.heeds_tools = False
        self.bringing: list[Reader] = []
        self.warnings: set[str] = set()
        self._param = param
        self._referred = history.referred
        self._strict = history.strict
        self._calls: dict[str, str] = {}
        self._unanswered: dict[str, PastCall] = {}
        self._outputs: dict[str, JsonValue] = {}
        self._uncalled: dict[str, str] = {}
        self._nameless: list[str] = []
        self._ids: set[str] = set()
        self._own_ids: set[str] | None = None  # ids of the request's own items, once these have begun

    def begin_request(self) -> None:
        """The stored items are read. The request's own follow, and may repeat a stored call."""
        self._own_ids = set()

    def add(self, item: Reader) -> None:
        self._note(item)
        if self._referred and (stored := self._referred.get(referred_id(item.raw) or "")) is not None:
            item = Reader(dict(stored), item.path)
        kind = item.string("type") or ("message" if item.get("role") is not None else None)
        call = self._read_call(item, kind)
        repeats = not self._strict and call is not None and self._unanswered.get(call.call_id) == call
        self._check_id(item, repeats=repeats)
        match kind:
            case None:
                raise missing(item.at("type"))
            case "message":
                self._message(item)
            case "tool_search_call" | "tool_search_output" if not executed_by_client(item):
                pass
            case _ if call is not None:
                self._call(call, kind, repeats=repeats)
            case _ if kind in OUTPUTS:
                self._output(item, kind)
            case "item_reference":
                identifier = shown(item.required_string("id"))
                raise RequestError(f"Item with id '{identifier}' not found.", status=404, param=self._param)
            case "compaction":
                self._compaction(item)
            case _ if kind in FOREIGN_ITEMS:
                self._foreign(item, kind)
            case _ if kind in SILENT_ITEMS:
                pass
            case _:
                raise wrong_value(item.at("type"), kind, ITEM_KINDS)

    def _note(self, item: Reader) -> None:
        """Notes what an item means besides its place in the conversation."""
        if item.get("type") in BRINGING:
            self.bringing.append(item)
        if hides_images(item):
            self.warnings.add(UNSHOWN_IMAGES)

    def continues(self, history: History) -> bool:
        """Whether these items may be the beginning of a request that continues `history`."""
        return self._strict == history.strict and not (history.items or history.referred)

    def _check_id(self, item: Reader, *, repeats: bool = False) -> None:
        """`repeats`: the item repeats an open call. A stored call may be repeated with its id."""
        identifier = item.string("id")
        if not identifier:
            return
        own = self._own_ids or ()
        if identifier in self._ids and (identifier in own or not repeats):
            raise RequestError(
                f"Duplicate item found with id {identifier[:64]}. Remove duplicate items from your input and try "
                "again.",
                param=self._param,
            )
        self._ids.add(identifier)
        if self._own_ids is not None:
            self._own_ids.add(identifier)

    def _message(self, item: Reader) -> None:
        role = item.required_string("role")
        # Real clients send null for an assistant's message. For a user's it would be an empty question.
        if "content" not in item.raw or (role == "user" and item.get("content") is None):
            raise missing(item.at("content"))
        parts = parse_parts(item, "content")
        match role:
            case "user":
                self.entries.append(UserTurn(parts))
            case "assistant":
                phase = item.choice("phase", PHASES)
                # An empty message before a call says nothing, and real clients send it.
                if text := joined_text(parts):
                    self.entries.append(AssistantText(text, phase))
            case "system" | "developer":
                if text := joined_text(parts):
                    self.entries.append(Guidance(text))
            case _:
                raise wrong_value(item.at("role"), role, INPUT_ROLES)

    def _compaction(self, item: Reader) -> None:
        if (summary := read_summary(item.string("encrypted_content"))) is not None:
            self.entries = [*compacted(self.entries, summary.text, whole=summary.whole)]
        else:
            self.warnings.add(UNREAD_SUMMARY)

    def _read_call(self, item: Reader, kind: str | None) -> PastCall | None:
        """The call in an item; None if the item is no call that the client executes."""
        if kind not in CALL_NOUNS or (kind == "tool_search_call" and not executed_by_client(item)):
            return None
        arguments = _arguments(item, kind)
        call_id = shown_id(item.required_string("call_id"))
        name = SEARCH if kind == "tool_search_call" else item.required_string("name")
        return PastCall(call_id, self._model_name(name, item.string("namespace")), arguments)

    def _call(self, call: PastCall, kind: str, *, repeats: bool) -> None:
        if repeats:
            return
        if self._strict and call.call_id in self._calls:
            raise RequestError(f"Duplicate {CALL_NOUNS[kind]} found with call_id {call.call_id}.", param=self._param)
        self._calls[call.call_id] = CALL_NOUNS[kind]
        self._unanswered[call.call_id] = call
        self.entries.append(call)

    def _output(self, item: Reader, kind: str) -> None:
        """An output of any kind answers a call of any kind: the id leaves no doubt."""
        given = "tools" if kind == "tool_search_output" else "output"
        item.require(given)
        self.heeds_tools = self.heeds_tools or given == "tools"
        parts, brings = search_result(item, self.tools) if given == "tools" else (parse_parts(item, given), ())
        call_id = self._answered_call(item, kind)
        if call_id is None:
            self.entries.append(ToolResult(shown_id(self._tool_of(item)), parts))
            return
        self._result(ToolResult(call_id, parts, brings), item.get(given), CALL_NOUNS[OUTPUTS[kind]])

    def _answered_call(self, item: Reader, kind: str) -> str | None:
        """The id of the call that an output answers. An output with only the name of its tool answers the newest open
        call of that tool. None: there is no such call, and the output stands for itself.
        """
        named = kind == "function_call_output" and item.get("call_id") is None and item.get("name") is not None
        if not named:
            return shown_id(item.required_string("call_id"))
        tool = self._tool_of(item)
        return next((call.call_id for call in reversed(self._unanswered.values()) if call.name == tool), None)

    def _tool_of(self, item: Reader) -> str:
        return self._model_name(item.required_string("name"), item.string("namespace"))

    def _model_name(self, name: str, namespace: str | None) -> str:
        self.heeds_tools = self.heeds_tools or namespace is not None
        return self.tools.model_name(name, namespace)

    def _result(self, result: ToolResult, output: JsonValue, noun: str) -> None:
        call_id = result.call_id
        self._unanswered.pop(call_id, None)
        if call_id not in self._calls:
            if self._strict:
                raise self._without_call(call_id, noun)
            self._uncalled.setdefault(call_id, noun)
        elif self._strict and call_id in self._outputs:
            if self._outputs[call_id] == output:
                return  # the same output twice
            raise RequestError(f"Duplicate {noun} output found with call_id {call_id}.", param=self._param)
        if self._strict:
            self._outputs[call_id] = output
        self.entries.append(result)

    def _foreign(self, item: Reader, kind: str) -> None:
        noun = kind.removesuffix("_output").replace("_", " ")
        if kind in CLIENT_CALLS:
            call_id = foreign_id(item.raw, kind, self._nameless)
            self._calls[call_id] = noun
            self.entries.append(PastCall(call_id, *client_call(kind, item.raw)))
        elif kind in CLIENT_OUTPUTS:
            result = ToolResult(foreign_id(item.raw, kind, self._nameless), client_result(kind, item.raw))
            self._result(result, item.get("output"), noun)
        else:
            self._hosted(item, kind)

    def _hosted(self, item: Reader, kind: str) -> None:
        """Adds a hosted call with its result, unless it shows neither arguments nor a result."""
        self.heeds_tools = True
        call = HOSTED_CALLS[kind](item.raw, self.tools)
        if call.result or call.arguments != "{}":
            call_id = foreign_id(item.raw, kind, self._nameless)
            result = ToolResult(call_id, call.result) if call.result else missing_result(call_id)
            self.entries += (PastCall(call_id, call.name, call.arguments), result)

    def check_outputs(self) -> None:
        """Raises `RequestError` if an output has no call."""
        for call_id, noun in self._uncalled.items():
            if call_id not in self._calls and noun in CALL_NOUNS.values():
                raise self._without_call(call_id, noun)

    def finish(self) -> Paired:
        """The whole conversation. Raises `RequestError` if calls and outputs do not pair as they must."""
        self.check_outputs()
        if not self._strict:
            return paired(self.entries)
        for call_id, noun in self._calls.items():
            if call_id not in self._outputs:
                raise RequestError(f"No tool output found for {noun} {call_id}.", param=self._param)
        return Paired(tuple(self.entries))

    def _without_call(self, call_id: str, noun: str) -> RequestError:
        return RequestError(f"No tool call found for {noun} output with call_id {call_id}.", param=self._param)


def _arguments(call: Reader, kind: str) -> str:
    """The arguments with which the model is shown a call of this kind."""
    match kind:
        case "custom_tool_call":
            call.require("input")
            return wrap_input(call.string("input") or "")
        case "tool_search_call":
            return past_arguments(call)
        case _:
            call.require("arguments")
            return call.string("arguments") or "{}"


def referred_id(item: JsonValue) -> str | None:
    """The id of an `item_reference`, whose `type` clients may leave out."""
    match item:
        case {"type": "item_reference", "id": str(identifier)}:
            return identifier
        case {"id": str(identifier), **rest} if not any(value is not None for value in rest.values()):
            return identifier
        case _:
            return None


def referred_ids(value: JsonValue) -> tuple[str, ...]:
    """The ids of all references among the items in `value`. Nothing else is checked."""
    # Most items have a type or a role, and need no further look.
    return tuple(
        identifier
        for item in (value if isinstance(value, list) else ())
        if isinstance(item, dict)
        and item.get("type", item.get("role")) in (None, "item_reference")
        and (identifier := referred_id(item)) is not None
    )


class Input:
    """`input` of a request: a string or an array of items.

    It may be missing or empty if the request continues something. The methods raise `RequestError` for bad input.
    """

    def __init__(self, request: Reader) -> None:
        self._request = request
        self._value = request.get("input")
        self._values = self._value if isinstance(self._value, list) else []
        self._items = ReadOn(InputItems, None, self._values, "input")

    def referred(self) -> tuple[str, ...]:
        """The ids of stored items that it refers to. A beginning that was read before refers to none."""
        return referred_ids(self._values[self._items.known :])

    def brought(self, history: History) -> Iterator[Reader]:
        """The tools that the items bring, behind those of `history`; they are offered besides the request's `tools`."""
        if self._values:
            self._request.array("input", max_length=MAX_ITEMS)
        if (begun := self._items.begun) and not begun.continues(history):
            self._items.read_all()
        begun = self._items.begun
        for item in begun.bringing if begun else _stored(history):
            yield from _brought_by(item)
        for index, value in self._items.new:
            if not isinstance(value, dict) or value.get("type") in BRINGING:
                yield from _brought_by(self._items.reader(index, value))

    def read(self, tools: ToolSet, history: History) -> tuple[Paired, Collection[str]]:
        """The conversation of `history` and these items, with these `tools`, and the warnings for the client."""
        if (begun := self._items.begun) and begun.heeds_tools and begun.tools is not tools:
            self._items.read_all()
        items = self._items.begin(partial(_behind, history, tools))
        items.tools = tools
        self._items.read(items)
        _check_triggers([*self._items.new][:-1], "input")
        if self._value is None and not _goes_on(self._request):
            raise missing("input")
        if self._value in ("", []) and not _goes_on(self._request):
            raise RequestError(
                "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.",
                code="missing_required_parameter",
                param="input",
            )
        match self._value:
            case str(text):
                items.entries += [UserTurn((Text(text),))] if text else []
            case list() | None:
                pass
            case other:
                raise wrong_type("input", "a string or an array of input items", other)
        conversation = items.finish()
        # Not kept with a history: stored items stand in front of it, and items that it refers to may be gone next time.
        if not (history.items or history.referred):
            self._items.keep()
        return conversation, sorted(items.warnings)


def _brought_by(item: Reader) -> Iterator[Reader]:
    """The tools that an item brings, if any."""
    if item.get("type") in BRINGING:
        item.require("tools")
        yield from item.objects("tools")


def _behind(history: History, tools: ToolSet) -> InputItems:
    """A reader that has read the stored items, and reads the request's own next."""
    items = InputItems(tools, history)
    for stored in _stored(history):
        items.add(stored)
    items.begin_request()
    return items


def _stored(history: History) -> list[Reader]:
    items = enumerate(history.items)
    return [Reader(dict(item), f"previous_response.items[{index}]") for index, item in items]


def is_trigger(item: JsonValue) -> bool:
    """Whether `item` is no item of a conversation, but asks for a summary of the items in front."""
    return isinstance(item, dict) and item.get("type") == "compaction_trigger"


def ends_with_trigger(value: JsonValue) -> bool:
    """Whether `input` asks for nothing but a summary of the conversation."""
    return isinstance(value, list) and bool(value) and is_trigger(value[-1])


def _check_triggers(items: Iterable[tuple[int, JsonValue]], param: str) -> None:
    """Raises `RequestError` if one of `items`, given with their places in `param`, asks for a summary."""
    for index, item in items:
        if is_trigger(item):
            raise RequestError(
                "A 'compaction_trigger' must be the last item of 'input'.",
                code="invalid_value",
                param=f"{param}[{index}]",
            )


def _goes_on(request: Reader) -> bool:
    """Whether `request` continues something, or only prepares a later request."""
    continued = ("previous_response_id", "conversation")
    return any(request.get(name) is not None for name in continued) or request.get("generate") is False


def check_added(request: Reader, history: History, *, max_length: int) -> None:
    """Checks that `items` may stand behind those of `history`. A call may still wait for its output."""
    items = InputItems(ToolSet(), history, "items")
    for index, stored in enumerate(history.items):
        items.add(Reader(dict(stored), f"conversation.items[{index}]"))
    items.begin_request()
    added = [*request.objects("items", max_length=max_length)]
    for item in added:
        items.add(item)
    _check_triggers(enumerate(item.raw for item in added), "items")
    items.check_outputs()
