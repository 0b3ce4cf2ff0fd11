"""A search for tools that the client executes: the model's call of it, and what it found.

    tool_search  ->  the model is offered a tool of this name
    tool_search_call {arguments}  <-  its call
    tool_search_output {tools}    ->  the names, as the result of the call; the tools are offered from then on

The arguments are an object on the wire, and text for the model.
"""

from __future__ import annotations

import orjson

from prompts import Text, tools_found

from ..json_body import JsonValue
from ..reader import Reader
from ..tools import found_names


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


def search_result(output: Reader) -> tuple[Text, ...]:
    return (Text(tools_found(found_names(output.objects("tools")))),)
