"""`input` of the Responses API to a transcript, and the pairing rules of calls and their outputs.

What OpenAI refuses is refused in its words (docs/reference/errors.md); what it is known to accept is
accepted, also without ids, with nulls and with members we do not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from prompts import AssistantText, Entry, Guidance, PastCall, Text, ToolResult, UserTurn, compacted

from ...contracts import PHASES, WireObject
from ...errors import RequestError
from ...ids import shown_id
from ..content import joined_text, parse_parts
from ..custom_tools import wrap_input
from ..json_body import JsonValue
from ..pairing import Paired, missing_result, paired
from ..parameters import MAX_ITEMS
from ..reader import Reader, missing, shown, wrong_type, wrong_value
from ..tools import SEARCH, ToolSet
from .compaction_items import read_summary
from .foreign_items import CLIENT_CALLS, CLIENT_OUTPUTS, HOSTED_CALLS, ForeignIds, client_call, client_result
from .seen_items import STRETCH, SeenItems, seen_items
from .tool_search import executed_by_client, past_arguments, search_result

# Of messages.
INPUT_ROLES = ("assistant", "developer", "system", "user")

# Calls, and what OpenAI calls them in its errors.
CALL_NOUNS = {
    "function_call": "function call", "custom_tool_call": "custom tool call", "tool_search_call": "tool search call",
}  # fmt: skip

# What gives back what such a call gave.
OUTPUTS = {
    "function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call",
    "tool_search_output": "tool_search_call",
}  # fmt: skip

# What has the id of a call.
_CALLED = frozenset({*CALL_NOUNS, *OUTPUTS})

# Told to a client whose model goes on without what it thinks it knows.
UNREAD_SUMMARY = "A 'compaction' item comes from another server: the model was not shown its summary."

# Kinds that are part of a real client's history but say nothing to a text model.
SILENT_ITEMS = frozenset({
    "additional_tools", "compaction_trigger", "configuration_update", "image_generation_call", "mcp_approval_request",
    "mcp_approval_response", "mcp_list_tools", "program", "program_output", "reasoning",
})  # fmt: skip

# Calls and results of tools that are not offered here, which are shown all the same.
FOREIGN_ITEMS = frozenset({*CLIENT_CALLS, *CLIENT_OUTPUTS, *HOSTED_CALLS})

# All that is accepted, in the order in which errors name it.
ITEM_KINDS = (
    "message", *CALL_NOUNS, *OUTPUTS, "compaction", "item_reference",
    *sorted(FOREIGN_ITEMS | SILENT_ITEMS),
)  # fmt: skip


class History(Struct, frozen=True):
    """What was stored before: the items that stand before the request's own, and those it refers to by id.

    `strict`: outputs that do not pair with their calls are refused, as OpenAI does.
    """

    items: tuple[WireObject, ...] = ()
    referred: Mapping[str, WireObject] = field(default_factory=dict)
    strict: bool = False


# Of a request that begins a conversation.
NO_HISTORY = History()


class _Items:
    """Reads items one after the other and holds the pairing rules."""

    def __init__(self, tools: ToolSet, history: History, param: str = "input") -> None:
        """`param` is the member of the request that has them."""
        self.entries: list[Entry] = []
        self._param = param
        self._tools = tools
        self._referred = history.referred
        self._strict = history.strict
        self._calls: dict[str, str] = {}
        self._unanswered: dict[str, PastCall] = {}
        self._outputs: dict[str, JsonValue] = {}
        self._uncalled: dict[str, str] = {}
        self._foreign_ids = ForeignIds()
        self._ids: set[str] = set()
        self._own_ids: set[str] | None = None  # of the request's own items, once these have begun

    def begin_request(self) -> None:
        """What was added is stored: what follows are the request's own items, which may repeat a call of it."""
        self._own_ids = set()

    def add(self, item: Reader) -> None:
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
                if (summary := read_summary(item.string("encrypted_content"))) is not None:
                    self.entries = [*compacted(self.entries, summary.text, whole=summary.whole)]
            case _ if kind in FOREIGN_ITEMS:
                self._foreign(item, kind)
            case _ if kind in SILENT_ITEMS:
                pass
            case _:
                raise wrong_value(item.at("type"), kind, ITEM_KINDS)

    def add_seen(self, seen: SeenItems) -> bool:
        """Adds what a stretch says, if none of its ids stood in front of it but those of calls that it answers."""
        if not (
            self._ids.isdisjoint(seen.ids)
            and self._calls.keys().isdisjoint(seen.calls)
            and seen.uncalled <= self._unanswered.keys()
        ):
            return False
        for call_id in seen.uncalled:
            del self._unanswered[call_id]
        self._ids |= seen.ids
        if self._own_ids is not None:
            self._own_ids |= seen.ids
        self._calls |= seen.calls
        self._unanswered |= seen.unanswered
        self._outputs |= seen.outputs
        self.entries += seen.entries
        return True

    def seen(self, called: int) -> SeenItems | None:
        """What was added, for other requests. None where it was not of so many calls and outputs: an id came twice."""
        if len(self._calls) + len(self._outputs) != called:
            return None
        return SeenItems(
            tuple(self.entries), frozenset(self._ids), self._calls, self._unanswered, self._outputs,
            frozenset(self._uncalled),
        )  # fmt: skip

    def _check_id(self, item: Reader, *, repeats: bool = False) -> None:
        """`repeats`: it is a call that waits for its output already, which may stand in what is stored as well."""
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
        # Of the assistant real clients send null; of the user it would be an empty question.
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

    def _read_call(self, item: Reader, kind: str | None) -> PastCall | None:
        """The call that an item is, if it is one that the client executes."""
        if kind not in CALL_NOUNS or (kind == "tool_search_call" and not executed_by_client(item)):
            return None
        arguments = _arguments(item, kind)
        call_id = shown_id(item.required_string("call_id"))
        name = SEARCH if kind == "tool_search_call" else item.required_string("name")
        return PastCall(call_id, self._tools.model_name(name, item.string("namespace")), arguments)

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
        parts, brings = search_result(item, self._tools) if given == "tools" else (parse_parts(item, given), ())
        call_id = self._answered_call(item, kind)
        if call_id is None:
            self.entries.append(ToolResult(shown_id(self._tool_of(item)), parts))
            return
        self._result(ToolResult(call_id, parts, brings), item.get(given), CALL_NOUNS[OUTPUTS[kind]])

    def _answered_call(self, item: Reader, kind: str) -> str | None:
        """The id of the call that an output answers. One that has none but the name of its tool answers the newest open
        call of that tool, or None: then it stands for itself.
        """
        named = kind == "function_call_output" and item.get("call_id") is None and item.get("name") is not None
        if not named:
            return shown_id(item.required_string("call_id"))
        tool = self._tool_of(item)
        return next((call.call_id for call in reversed(self._unanswered.values()) if call.name == tool), None)

    def _tool_of(self, item: Reader) -> str:
        return self._tools.model_name(item.required_string("name"), item.string("namespace"))

    def _result(self, result: ToolResult, output: JsonValue, noun: str) -> None:
        call_id = result.call_id
        self._unanswered.pop(call_id, None)
        if call_id not in self._calls:
            if self._strict:
                raise self._without_call(call_id, noun)
            self._uncalled.setdefault(call_id, noun)
        elif self._strict and call_id in self._outputs:
            if self._outputs[call_id] == output:
                return  # said twice in the same words: nothing to choose between
            raise RequestError(f"Duplicate {noun} output found with call_id {call_id}.", param=self._param)
        self._outputs[call_id] = output
        self.entries.append(result)

    def _foreign(self, item: Reader, kind: str) -> None:
        noun = kind.removesuffix("_output").replace("_", " ")
        if kind in CLIENT_CALLS:
            call_id = self._foreign_ids.of(item.raw, kind)
            self._calls[call_id] = noun
            self.entries.append(PastCall(call_id, *client_call(kind, item.raw)))
        elif kind in CLIENT_OUTPUTS:
            result = ToolResult(self._foreign_ids.of(item.raw, kind), client_result(kind, item.raw))
            self._result(result, item.get("output"), noun)
        else:
            self._hosted(item, kind)

    def _hosted(self, item: Reader, kind: str) -> None:
        """A call with its result, if there is anything to see of it."""
        call = HOSTED_CALLS[kind](item.raw, self._tools)
        if call.result or call.arguments != "{}":
            call_id = self._foreign_ids.of(item.raw, kind)
            result = ToolResult(call_id, call.result) if call.result else missing_result(call_id)
            self.entries += (PastCall(call_id, call.name, call.arguments), result)

    def check_outputs(self) -> None:
        """Whether each output has a call. Raises `RequestError`."""
        for call_id, noun in self._uncalled.items():
            if call_id not in self._calls and noun in CALL_NOUNS.values():
                raise self._without_call(call_id, noun)

    def finish(self) -> Paired:
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
    """What the model is shown of a call that has it in this member."""
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
    """The ids of all references among the items in `value`; nothing else of it is looked at."""
    items = value if isinstance(value, list) else []
    # Most items say what they are, by a type or at least a role, and no more need be looked at.
    kinds = ((item, item.get("type", item.get("role"))) for item in items if isinstance(item, dict))
    unclear = (item for item, kind in kinds if kind in (None, "item_reference"))
    return tuple(identifier for item in unclear if (identifier := referred_id(item)) is not None)


class Stretch(Struct, frozen=True):
    """Neighbouring items that were seen before, and how they are read one by one."""

    seen: SeenItems
    items: Iterator[Reader]


def all_items(request: Reader, history: History) -> Iterator[Reader | Stretch]:
    """The items of `history` and then those of `input`, some of them by stretches."""
    for index, stored in enumerate(history.items):
        yield Reader(dict(stored), f"previous_response.items[{index}]")
    if not isinstance(request.get("input"), list):
        return
    values = request.array("input", max_length=MAX_ITEMS) or []
    for start in range(0, len(values), STRETCH):
        stretch = values[start : start + STRETCH]
        items = (Reader.of(value, f"input[{index}]") for index, value in enumerate(stretch, start))
        seen = seen_items(stretch, _read) if len(stretch) == STRETCH else None
        if seen is None:
            yield from items
        else:
            yield Stretch(seen, items)


def _read(stretch: Sequence[JsonValue]) -> SeenItems | None:
    """What it says wherever it stands. None where an id comes twice, or something is wrong with it."""
    readers = [Reader.of(value, "") for value in stretch]
    items = _Items(ToolSet(), NO_HISTORY)
    try:
        for reader in readers:
            items.add(reader)
    except RequestError:
        return None  # it is raised where the item is read in its place
    return items.seen(sum(reader.get("type") in _CALLED for reader in readers))


def has_unread_summary(items: Iterable[Reader]) -> bool:
    """Whether one stands for a conversation that only another server can read."""
    summaries = [item for item in items if item.get("type") == "compaction"]
    return any(read_summary(item.string("encrypted_content")) is None for item in summaries)


def is_trigger(item: JsonValue) -> bool:
    """Whether it asks for a summary of what stands in front of it, and is no item of a conversation."""
    return isinstance(item, dict) and item.get("type") == "compaction_trigger"


def ends_with_trigger(value: JsonValue) -> bool:
    """Whether `input` asks for nothing but a summary of the conversation."""
    return isinstance(value, list) and bool(value) and is_trigger(value[-1])


def brought_tools(items: Iterable[Reader]) -> Iterator[Reader]:
    """The tools that they bring, a search's output among them; they are offered besides the request's `tools`."""
    for item in items:
        match item.get("type"):
            case "additional_tools" | "tool_search_output":
                item.require("tools")
                yield from item.objects("tools")
            case _:
                pass


def _check_triggers(items: Iterable[JsonValue], path: str) -> None:
    """`items` are those of `path` that ask for no summary."""
    for index, item in enumerate(items):
        if is_trigger(item):
            raise RequestError(
                "A 'compaction_trigger' must be the last item of 'input'.",
                code="invalid_value",
                param=f"{path}[{index}]",
            )


def parse_input(request: Reader, given: Iterable[Reader | Stretch], tools: ToolSet, history: History) -> Paired:
    """What stands in `history` and then in `input`, a string or an array of items, as transcript entries.

    `given` are `all_items`. `input` may be missing or empty where the request continues something.
    """
    items = _Items(tools, history)
    for index, item in enumerate(given):
        if index == len(history.items):
            items.begin_request()
        if isinstance(item, Stretch) and items.add_seen(item.seen):
            continue
        for each in item.items if isinstance(item, Stretch) else [item]:
            items.add(each)
    value = request.get("input")
    _check_triggers(value[:-1] if isinstance(value, list) else (), "input")
    if value is None and not _goes_on(request):
        raise missing("input")
    if value in ("", []) and not _goes_on(request):
        raise RequestError(
            "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.",
            code="missing_required_parameter",
            param="input",
        )
    match value:
        case "":
            pass
        case str():
            items.entries.append(UserTurn((Text(value),)))
        case list():
            pass
        case None:
            pass
        case _:
            raise wrong_type("input", "a string or an array of input items", value)
    return items.finish()


def _goes_on(request: Reader) -> bool:
    """Whether it continues something, or only prepares what will be asked."""
    continued = ("previous_response_id", "conversation")
    return any(request.get(name) is not None for name in continued) or request.get("generate") is False


def check_added(request: Reader, history: History, *, max_length: int) -> None:
    """Checks that `items` may stand behind those of `history`. A call may still wait for its output."""
    items = _Items(ToolSet(), history, "items")
    for index, stored in enumerate(history.items):
        items.add(Reader(dict(stored), f"conversation.items[{index}]"))
    items.begin_request()
    for item in request.objects("items", max_length=max_length):
        items.add(item)
    _check_triggers(request.array("items") or (), "items")
    items.check_outputs()
