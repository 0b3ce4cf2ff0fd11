"""The tables of parameters, held against the types of the official client: a new one says itself what moved.

So do the pages, in what they name of these types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.custom_tool_param import CustomToolParam
from openai.types.responses.function_tool_param import FunctionToolParam
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from openai.types.responses.response_custom_tool_call_output_param import ResponseCustomToolCallOutputParam
from openai.types.responses.response_custom_tool_call_param import ResponseCustomToolCallParam
from openai.types.responses.response_function_tool_call_param import ResponseFunctionToolCallParam
from openai.types.responses.response_input_item_param import FunctionCallOutput, Message, ResponseInputItemParam
from openai.types.responses.response_output_message_param import ResponseOutputMessageParam
from openai.types.responses.tool_param import ToolParam
from typing_extensions import is_typeddict

from proxy.errors import RequestError
from proxy.wire.parameters import (
    CHAT,
    MOVED_FROM_CHAT,
    MOVED_FROM_RESPONSES,
    RESPONSES,
    check_parameters,
)
from proxy.wire.reader import Reader
from proxy.wire.responses.input_items import SILENT_ITEMS
from proxy.wire.tools import HOSTED_TOOLS
from tests.support.published_types import type_names

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"

APIS = {
    "responses": (ResponseCreateParamsBase, RESPONSES, MOVED_FROM_CHAT),
    "chat": (CompletionCreateParamsBase, CHAT, MOVED_FROM_RESPONSES),
}
# What has a form of its own, and is read and tested where that is.
ELSEWHERE = {
    "responses": {
        "context_management", "conversation", "input", "model", "moderation", "previous_response_id", "prompt",
        "tool_choice", "tools",
    },
    "chat": {
        "audio", "function_call", "functions", "messages", "model", "moderation", "response_format", "stop",
        "tool_choice", "tools",
    },
}  # fmt: skip


def alternatives(hint: Any) -> list[Any]:
    return [hint] if get_origin(hint) not in (Union, UnionType) else list(get_args(hint))


def enumerations(hint: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The paths of members that may be some strings alone, and these."""
    inner = [one for one in alternatives(hint) if one is not type(None)]
    values = tuple(value for one in inner if get_origin(one) is Literal for value in get_args(one))
    if values and all(isinstance(value, str) for value in values) and str not in inner:
        yield path, values
    for one in inner:
        if get_origin(one) is list:
            yield from enumerations(get_args(one)[0], (*path, "[0]"))
        if is_typeddict(one):
            for name, member in get_type_hints(one).items():
                yield from enumerations(member, (*path, name))


ROWS = [
    (api, path, values)
    for api, (params, _, _) in APIS.items()
    for name, hint in get_type_hints(params).items()
    if name not in ELSEWHERE[api] and (api, name) != ("responses", "text")
    for path, values in enumerations(hint, (name,))
]


def fault(api: str, path: tuple[str, ...], value: str) -> RequestError | None:
    body: Any = value
    for step in reversed(path):
        body = [body] if step == "[0]" else {step: body}
    try:
        check_parameters(Reader(body), *APIS[api][1:])
    except RequestError as error:
        return error
    return None


@pytest.mark.parametrize("api", APIS)
def test_every_parameter_of_the_official_client_has_a_shape_here(api: str) -> None:
    params, shapes, _ = APIS[api]
    assert {*get_type_hints(params), "stream"} == {*shapes, *ELSEWHERE[api]}


@pytest.mark.parametrize(("api", "path", "values"), ROWS, ids=[f"{api} {'.'.join(path)}" for api, path, _ in ROWS])
def test_an_enumeration_has_the_official_clients_values_and_no_others(
    api: str, path: tuple[str, ...], values: tuple[str, ...]
) -> None:
    assert [fault(api, path, value) for value in values] == [None] * len(values)
    refused = fault(api, path, "no such value")
    assert refused is not None
    assert refused.param == ".".join(path).replace(".[0]", "[0]")


def nested(hint: Any) -> Iterator[str]:
    """The names of all members of objects in it."""
    for one in alternatives(hint):
        if is_typeddict(one):
            for name, member in get_type_hints(one).items():
                yield name
                yield from nested(member)
        elif get_origin(one) in (list, Iterable):
            yield from nested(get_args(one)[0])


# What has a table of its own, and what is refused as a whole.
TOLD_ELSEWHERE = {
    "audio",
    "conversation",
    "functions",
    "input",
    "messages",
    "moderation",
    "prompt",
    "tool_choice",
    "tools",
}
PAGES = {"responses": "parameters.md", "chat": "chat-parameters.md"}
# What is shown to the model, or comes back from it.
SHOWN = (
    FunctionToolParam, CustomToolParam, ResponseFunctionToolCallParam, ResponseCustomToolCallParam, FunctionCallOutput,
    ResponseCustomToolCallOutputParam, Message, ResponseOutputMessageParam,
)  # fmt: skip


def untold(names: Iterable[str], page: str) -> set[str]:
    text = (REFERENCE / page).read_text("utf-8")
    return {name for name in names if f"`{name}`" not in text and f".{name}`" not in text}


@pytest.mark.parametrize("api", APIS)
def test_every_member_of_a_parameter_is_on_its_page(api: str) -> None:
    hints = get_type_hints(APIS[api][0])
    assert not untold((name for key in hints.keys() - TOLD_ELSEWHERE for name in nested(hints[key])), PAGES[api])


def test_every_kind_of_item_and_of_tool_is_on_the_page_and_so_are_the_members_of_what_is_shown() -> None:
    kinds = type_names(ResponseInputItemParam) | type_names(ToolParam)
    assert not untold(kinds - SILENT_ITEMS - HOSTED_TOOLS, "parameters.md")
    assert not untold((name for shown in SHOWN for name in get_type_hints(shown)), "parameters.md")


def test_nested_enumerations_are_found() -> None:
    assert len(ROWS) >= 20
    assert ("responses", ("reasoning", "effort")) in {row[:2] for row in ROWS}
