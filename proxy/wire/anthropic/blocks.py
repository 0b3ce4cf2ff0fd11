"""`messages` of Anthropic's API to a transcript: blocks of every kind, those that other servers wrote included.

    user       results first, in the order of their calls, and then what the user says
    assistant  texts and calls; thoughts and what Anthropic's own tools did are left out
    system     guidance, where it stands: moved to the front it would change the beginning of each prompt; so do
               tools that it brings, or takes back

Unknown blocks are left out, because a client whose history has one cannot repair it.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import TypeGuard

import orjson
from msgspec import Struct

from prompts import (
    AssistantText,
    Entry,
    Guidance,
    Image,
    Part,
    PastCall,
    Text,
    ToolResult,
    UserTurn,
    already_offered,
    no_longer_offered,
    show_tools,
)

from ...errors import RequestError
from ...ids import shown_id
from ..content import image_fault, joined_text
from ..json_body import JsonObject, JsonValue
from ..pairing import Paired, paired
from ..parameters import MAX_ITEMS
from ..pdf import MAGIC, PdfError, pdf_text
from ..reader import Reader, wrong_type, wrong_value
from ..tools import ToolSet

ROLES = ("user", "assistant", "system")

# The block by which a client's search for tools tells what it has found.
REFERENCE = "tool_reference"

NO_TOOLS = ToolSet()


class BroughtTools(Struct, frozen=True):
    """What `messages` say of tools: the `names` of those that come there, and the `definitions` that come with some."""

    names: frozenset[str] = frozenset()
    definitions: tuple[JsonObject, ...] = ()


def brought_tools(request: Reader) -> BroughtTools:
    """The tools that come with results, and with messages of the system; nothing else of `messages` is looked at."""
    messages = request.get("messages")
    names: set[str] = set()
    definitions: list[JsonObject] = []
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            match block:
                case {"type": "tool_result", "content": [*found]}:
                    names |= {each["tool_name"] for each in found if _refers(each)}
                case {"type": "tool_addition", "tool": {"definition": dict(definition)}} if _is_named(definition):
                    names.add(str(definition["name"]))
                    definitions.append(definition)
                case {"type": "tool_addition", "tool": {"name": str(name)}}:
                    names.add(name)
                case _:
                    pass
    return BroughtTools(frozenset(names), tuple(definitions))


def _is_named(definition: JsonObject) -> bool:
    return isinstance(definition.get("name"), str)


def _refers(block: JsonValue) -> TypeGuard[dict[str, str]]:
    return isinstance(block, dict) and block.get("type") == REFERENCE and isinstance(block.get("tool_name"), str)


def parse_conversation(request: Reader, tools: ToolSet = NO_TOOLS) -> Paired:
    """`messages` of a request as transcript entries; `tools` are those on offer. Raises `RequestError`."""
    if request.require("messages") == []:
        raise RequestError("messages: at least one message is required.", param="messages")
    entries: list[Entry] = []
    role = ""
    for message in request.objects("messages", max_length=MAX_ITEMS):
        blocks = list(_blocks(message, "content"))
        match role := message.required_string("role"):
            case "user":
                entries += _user(blocks, tools)
            case "assistant":
                entries += _assistant(blocks)
            case "system":
                entries += _guidance(blocks, tools)
            case _:
                raise wrong_value(message.at("role"), role, ROLES)
    if role == "assistant" and entries and isinstance(entries[-1], AssistantText):
        raise RequestError(
            "This model does not support assistant message prefill: the conversation must end with a user message.",
            param="messages",
        )
    return paired(entries)


def text_of(request: Reader, key: str) -> str:
    """Text that is a string or text blocks, as one."""
    return "\n\n".join(_texts(_blocks(request, key)))


def _blocks(holder: Reader, key: str) -> Iterator[Reader]:
    """The blocks of some content; a string is one of text."""
    match value := holder.get(key):
        case None:
            return
        case str():
            yield Reader({"type": "text", "text": value}, holder.at(key))
        case list():
            yield from holder.objects(key)
        case _:
            raise wrong_type(holder.at(key), "a string or an array of content blocks", value)


def _texts(blocks: Iterable[Reader]) -> Iterator[str]:
    for block in blocks:
        if block.get("type") == "text" and (text := block.string("text") or "").strip():
            yield text


def _guidance(blocks: Iterable[Reader], tools: ToolSet) -> Iterator[Guidance]:
    said: list[str] = []
    brings: list[str] = []
    for block in blocks:
        match block.raw:
            case {"type": "text"}:
                said += _texts([block])
            case {"type": "tool_addition", "tool": {"definition": {"name": str(name)}} | {"name": str(name)}}:
                if found := tools.brought([name]):
                    said.append(show_tools(found))
                    brings.append(name)
                elif name in tools.registry:
                    said.append(already_offered([name]))
            case {"type": "tool_removal", "tool": {"name": str(name)}} if name in tools.registry:
                said.append(no_longer_offered([name]))
            case _:
                pass
    if said:
        yield Guidance("\n\n".join(said), tuple(brings))


def _user(blocks: Iterable[Reader], tools: ToolSet) -> Iterator[Entry]:
    said: list[Part] = []
    for block in blocks:
        if block.get("type") == "tool_result":
            yield _result(block, tools)
        else:
            said += _parts(block)
    if said:
        yield UserTurn(tuple(said))


def _assistant(blocks: Iterable[Reader]) -> Iterator[Entry]:
    for block in blocks:
        match block.get("type"):
            case "text":
                if (text := block.string("text") or "").strip():
                    yield AssistantText(text)
            case "compaction":
                if text := text_of(block, "content"):
                    yield AssistantText(text)
            case "tool_use":
                yield PastCall(
                    shown_id(block.required_string("id")), block.required_string("name"), _input(block.get("input"))
                )
            case _:
                pass


def _input(value: JsonValue) -> str:
    """A call's arguments, which some clients send back as the text that they were streamed as."""
    return value if isinstance(value, str) and value else orjson.dumps(value or {}).decode()


def _result(block: Reader, tools: ToolSet) -> ToolResult:
    content = list(_blocks(block, "content"))
    parts = [part for inner in content for part in _parts(inner)]
    names = [inner.required_string("tool_name") for inner in content if inner.get("type") == REFERENCE]
    found = tools.brought(names)
    if found:
        parts.append(Text(show_tools(found)))
    if offered := [name for name in names if name in tools.registry and name not in tools.late]:
        parts.append(Text(already_offered(offered)))
    if block.boolean("is_error"):
        match parts:
            case [Text(text), *rest]:
                parts = [Text(f"error: {text}"), *rest]
            case _:
                parts = [Text("error"), *parts]
    return ToolResult(shown_id(block.required_string("tool_use_id")), tuple(parts), tuple(tool.name for tool in found))


def _parts(block: Reader) -> Iterator[Part]:
    """What is to be seen of a block of the user's, or in a result."""
    match block.get("type"):
        case "text":
            if text := block.string("text"):
                yield Text(text)
        case "image":
            yield _image(_source(block))
        case "document":
            yield _document(block)
        case "search_result":
            head = f"Search result '{block.string('title')}' ({block.string('source')}):"
            yield Text(f"{head}\n{text_of(block, 'content')}")
        case _:
            pass


def _source(block: Reader) -> Reader:
    block.require("source")
    return Reader.of(block.get("source"), block.at("source"))


def _image(source: Reader) -> Image:
    match source.get("type"):
        case "base64":
            url = f"data:{source.required_string('media_type')};base64,{source.required_string('data')}"
        case "url" if (url := source.required_string("url")).startswith("data:"):
            pass
        case _:
            raise _not_fetched(source, "images", "with a source of type 'base64'")
    if (fault := image_fault(url)) is not None:
        raise RequestError(
            f"Invalid '{source.path}': expected an image in base64 with its media type, but got {fault}.",
            param=source.path,
        )
    return Image(url)


def _document(block: Reader) -> Text:
    source = _source(block)
    match source.get("type"):
        case "text":
            text = source.string("data") or ""
        case "content":
            text = joined_text(part for inner in _blocks(source, "content") for part in _parts(inner))
        case "base64":
            text = _file(source)
        case _:
            raise _not_fetched(source, "documents", "with a source of type 'base64' or 'text'")
    title, context = block.string("title"), block.string("context")
    head = f"Document '{title}':" if title else None
    return Text("\n".join(filter(None, [head, context, text])))


def _file(source: Reader) -> str:
    try:
        content = b64decode(source.required_string("data"), validate=True)
        return pdf_text(content) if content.startswith(MAGIC) else content.decode()
    except PdfError as error:
        why = str(error)
    except ValueError:
        why = "This backend can only be shown PDFs and files of UTF-8 text"
    raise RequestError(f"{why}: send the text of the document.", param=source.path)


def _not_fetched(source: Reader, what: str, how: str) -> RequestError:
    return RequestError(f"Remote and uploaded {what} are not fetched: send them {how}.", param=source.at("type"))
