"""A search for tools that the client executes: the model's call, and the tools that were found.

    tool_search  ->  the model is offered a tool of this name
    tool_search_call {arguments}  <-  its call
    tool_search_output {tools}    ->  the tools, as the result of the call; they are offered from then on

The arguments are an object on the wire, and text for the model.
"""

from __future__ import annotations

import orjson

from prompts import Text, already_offered, show_tools

from ..json_body import JsonValue
from ..reader import Reader
from ..tools import ToolSet, found_names


def search_arguments(text: str) -> JsonValue:
    """`arguments` of a call whose arguments the model wrote as `text`."""
    try:
        value: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value


def executed_by_client(item: Reader) -> bool:
    """Those that ran at OpenAI answer no call of ours."""
    return item.choice("execution", ("server", "client")) != "server" and item.get("call_id") is not None


def past_arguments(call: Reader) -> str:
    """The way back."""
    arguments = call.get("arguments")
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()


def search_result(output: Reader, tools: ToolSet) -> tuple[tuple[Text, ...], tuple[str, ...]]:
    """What was found, as the result of the call, where the model is shown it; and the names of what that brings."""
    names = found_names(output.objects("tools"))
    found = tools.brought(names)
    known = [name for name in names if name not in tools.late and name in tools.registry]
    text = show_tools(found) if found or not known else already_offered(known)
    return (Text(text),), tuple(tool.name for tool in found)
