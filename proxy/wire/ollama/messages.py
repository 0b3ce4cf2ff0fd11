"""`messages` of Ollama's API to a transcript.

Ids are rare here: the Python client drops those of calls, Home Assistant sends results that name nothing, and LangChain
makes ids of its own. So a call gets an id by its place, `call_<answers before it>_<calls before it in its answer>`. The
answer itself had this id, and each later request has it again, so that the lane is found. A result belongs to

    the call with its `tool_call_id`                else
    the first unanswered call of its `tool_name`    else
    the next unanswered call of the last answer     else stands alone
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from msgspec import Struct

from prompts import AssistantText, Guidance, Image, Part, PastCall, Text, ToolResult, UserTurn

from ...errors import RequestError
from ...ids import shown_id
from ..content import image_fault
from ..pairing import Paired, paired
from ..parameters import MAX_ITEMS
from ..read_on import ItemReader, ReadOn
from ..reader import Reader, wrong_type, wrong_value

ROLES = ("system", "user", "assistant", "tool")

# How the base64 of an image begins -> its type. What else comes is called a PNG: the model's server looks itself.
_IMAGES = {"/9j/": "jpeg", "R0lGOD": "gif", "UklGR": "webp", "iVBOR": "png"}


def call_id(answers: int, calls: int) -> str:
    """The id of a call behind so many answers, and behind so many calls of its own."""
    return f"call_{answers}_{calls}"


class _Open(Struct):
    """A call that has no result yet."""

    id: str
    name: str


class OllamaMessages(ItemReader):
    """Reads messages one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = 0
        self._open: list[_Open] = []
        self._made: dict[str, str] = {}  # by its client's id for a call

    def add(self, message: Reader) -> None:
        role = message.required_string("role")
        text = message.string("content") or ""
        match role:
            case "system":
                self.entries += [Guidance(text)] if text else []
            case "user":
                self.entries.append(UserTurn((*([Text(text)] if text else []), *images_of(message))))
            case "assistant":
                self._assistant(message, text)
            case "tool":
                self.entries.append(ToolResult(self._answered(message), (Text(text), *images_of(message))))
            case _:
                raise wrong_value(message.at("role"), role, ROLES)

    def _assistant(self, message: Reader, text: str) -> None:
        if text:
            self.entries.append(AssistantText(text))
        self._open = []
        for number, call in enumerate(message.objects("tool_calls")):
            function = call.object("function") or call
            name = function.required_string("name")
            made = call_id(self.answers, number)
            if given := call.string("id"):
                self._made[given] = made
            self._open.append(_Open(made, name))
            self.entries.append(PastCall(made, name, _arguments(function)))
        self.answers += 1

    def _answered(self, message: Reader) -> str:
        """The id of the call that a result belongs to."""
        given, name = message.string("tool_call_id"), message.string("tool_name") or message.string("name")
        if given:
            given = self._made.get(given, given)
            found = next((call for call in self._open if call.id == given), None)
        else:
            named = (call for call in self._open if call.name == name)
            found = next(named, None) or next(iter(self._open), None)
        if found is None:
            return shown_id(given) if given else f"result_{len(self.entries)}"
        self._open.remove(found)
        return found.id


def parse_messages(request: Reader) -> tuple[Paired, int]:
    """`messages` as transcript entries, and how many answers there are among them. Raises `RequestError`."""
    given = ReadOn(OllamaMessages, None, request.array("messages", max_length=MAX_ITEMS) or [], "messages")
    messages = given.begin(OllamaMessages)
    given.read(messages)
    given.keep()
    return paired(messages.entries), messages.answers


def _arguments(function: Reader) -> str:
    """JSON text, as history has it; what a client sends is an object, or the text of one."""
    match function.get("arguments"):
        case None:
            return "{}"
        case str(text):
            return text or "{}"
        case dict(value):
            return orjson.dumps(value).decode()
        case other:
            raise wrong_type(function.at("arguments"), "an object", other)


def images_of(message: Reader) -> Iterator[Part]:
    """The images of a message: base64, as Ollama has it, or a data URL. Raises `RequestError`."""
    for index, value in enumerate(message.array("images") or []):
        path = f"{message.at('images')}[{index}]"
        if not isinstance(value, str):
            raise wrong_type(path, "a string", value)
        if value.startswith(("http://", "https://")):
            raise RequestError("Remote images are not fetched: send the image itself, as base64.", param=path)
        kind = next((kind for beginning, kind in _IMAGES.items() if value.startswith(beginning)), "png")
        url = value if value.startswith("data:") else f"data:image/{kind};base64,{value}"
        if (fault := image_fault(url)) is not None:
            raise RequestError(f"{path} is not an image: it is {fault}.", param=path)
        yield Image(url)
