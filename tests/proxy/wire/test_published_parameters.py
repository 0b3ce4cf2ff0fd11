"""The tables of parameters, held against the types of the official client: a new one says itself what moved.

tests/test_docs.py and tests/test_docs_clients.py hold the same types against the pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase
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


def test_nested_enumerations_are_found() -> None:
    assert len(ROWS) >= 20
    assert ("responses", ("reasoning", "effort")) in {row[:2] for row in ROWS}
