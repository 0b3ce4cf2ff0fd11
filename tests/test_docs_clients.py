"""Docs that cannot lie: what is told to those who connect a client."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import asdict
from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from proxy.cli.commands import build_parser
from proxy.cli.obsidian import client_settings, copilot_api
from proxy.errors import RequestError
from proxy.ingress.admission import LOOPBACK_HOSTS, OBSIDIAN_ORIGINS
from proxy.ingress.routes import KEYLESS, ROUTES, UNSERVED, canonical_path
from proxy.server import base_url
from proxy.settings import SETTINGS, Settings
from proxy.wire.chat.request import parse_chat_request
from proxy.wire.json_body import JsonObject, parse_json_object
from proxy.wire.parameters import MOVED_FROM_RESPONSES

DOCS = Path(__file__).parent.parent / "docs"
OBSIDIAN = DOCS / "howto" / "obsidian"
PAGES = sorted(OBSIDIAN.glob("*.md"))
URL = base_url(Settings().host, Settings().port)

# Parameters of Chat Completions

TABLE = (DOCS / "reference" / "chat-parameters.md").read_text("utf-8").split("\n## ")[0]
# As codex has them.
PARAMETERS = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", TABLE, re.MULTILINE))

FUNCTION = {"name": "read_note"}
TOOLS = [{"type": "function", "function": FUNCTION}]

# One value of each parameter that is not its default; what has an effect together with others only brings them along.
VALUES: dict[str, Any] = {
    "audio": {"voice": "alloy", "format": "wav"},
    "frequency_penalty": 1,
    "function_call": "none",
    "functions": [FUNCTION],
    "logit_bias": {"1": 2},
    "logprobs": True,
    "max_completion_tokens": 30,
    "max_tokens": 30,
    "messages": [{"role": "user", "content": "something else"}],
    "metadata": {"a": "b"},
    "modalities": ["text", "audio"],
    "model": "another",
    "moderation": {"model": "omni-moderation-latest"},
    "n": 2,
    "parallel_tool_calls": False,
    "prediction": {"type": "content", "content": "x"},
    "presence_penalty": 1,
    "prompt_cache_key": "k",
    "prompt_cache_options": {"mode": "explicit"},
    "prompt_cache_retention": "24h",
    "reasoning_effort": "low",
    "response_format": {"type": "json_object"},
    "safety_identifier": "s",
    "seed": 1,
    "service_tier": "flex",
    "stop": "END",
    "store": True,
    "stream": True,
    "stream_options": {"include_usage": True},
    "temperature": 0.5,
    "tool_choice": "none",
    "tools": TOOLS,
    "top_logprobs": 3,
    "top_p": 0.5,
    "user": "u",
    "verbosity": "low",
    "web_search_options": {},
}
BESIDE: dict[str, dict[str, Any]] = {
    "function_call": {"functions": [FUNCTION]},
    "tool_choice": {"tools": TOOLS},
    "stream_options": {"stream": True},
    "top_logprobs": {"logprobs": True},
}


def read(members: dict[str, Any]) -> dict[str, object]:
    """All that the server makes of a request, comparable."""
    body: JsonObject = parse_json_object(
        orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **members})
    )
    request = parse_chat_request(body)
    # As codex has it: what is there only to be told does nothing.
    told = {"sampling", "wishes", "warnings"}
    turn = {name: value for name, value in asdict(request.turn).items() if name not in told}
    chat = asdict(request)
    return {**chat, "turn": {**turn, "registry": [tool.name for tool in request.turn.registry]}, "tools": None}


def test_every_parameter_of_openais_is_documented() -> None:
    assert set(CompletionCreateParamsBase.__annotations__) | {"stream"} == set(PARAMETERS) == set(VALUES)
    assert all(f"`{name}`" in TABLE for name in MOVED_FROM_RESPONSES)


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_parameter_does_what_its_row_says(name: str) -> None:
    told = PARAMETERS["max_completion_tokens" if PARAMETERS[name].startswith("the same") else name]
    beside = BESIDE.get(name, {})
    if "refused" in told:
        with pytest.raises(RequestError):
            read({name: VALUES[name]})
    else:
        assert told.startswith(("honoured", "ignored"))
        assert (read({**beside, name: VALUES[name]}) != read(beside)) is told.startswith("honoured")


# HTTP

HTTP = (DOCS / "reference" / "http.md").read_text("utf-8")


def test_every_path_is_documented_with_its_methods() -> None:
    rows = re.findall(r"^\| `(/\S*)` \| ([A-Z, ]+) \| (.*) \|$", HTTP, re.MULTILINE)
    assert {path: set(methods.split(", ")) for path, methods, _ in rows} == {
        path: set(methods) for path, methods in ROUTES.items()
    }
    assert {path for path, _, said in rows if "no key" in said} == set(KEYLESS)


def test_what_is_not_served_and_who_is_are_documented() -> None:
    for word in (*UNSERVED, *OBSIDIAN_ORIGINS, *(LOOPBACK_HOSTS - {"::1"}), "[::1]"):
        assert f"`{word}`" in HTTP


def test_the_chunks_that_are_sent_are_documented() -> None:
    events = (DOCS / "reference" / "events.md").read_text("utf-8").partition("## Chunks of Chat Completions")[2]
    source = (Path(__file__).parent.parent / "proxy" / "wire" / "chat" / "chat_builder.py").read_text("utf-8")
    for member in re.findall(r'_chunk\(\{"(\w+)"', source):
        assert f"`{member}`" in events


# Pages about plugins


def flags(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
class TestPagesAboutPlugins:
    def test_urls_are_the_servers(self, path: Path) -> None:
        urls = re.findall(r"http://127\.0\.0\.1[^\s`)>|]*", path.read_text("utf-8"))
        pages = {URL, URL.removesuffix("/v1"), URL.removesuffix("v1")}
        assert all(url in pages or url.removeprefix(URL) in ROUTES for url in urls)

    def test_flags_and_commands_exist(self, path: Path) -> None:
        text = path.read_text("utf-8")
        (commands,) = (action for action in build_parser()._actions if action.dest == "command")
        choices = dict(commands.choices or {})
        assert flags(text) <= {setting.flag for setting in SETTINGS} | flags(choices["service"].format_help())
        assert set(re.findall(r"(?:`|    )tagcall ([a-z]+)", text)) <= set(choices)

    def test_the_index_names_the_page(self, path: Path) -> None:
        index = (OBSIDIAN / "README.md").read_text("utf-8")
        assert path.name == "README.md" or f"]({path.name})" in index


def test_the_names_that_choose_copilots_api_do() -> None:
    text = (OBSIDIAN / "copilot.md").read_text("utf-8")
    rows = re.findall(r"^\| `tagcall serve[^`]*` \| `([^`]+)` \| ([\w ]+) \|$", text, re.MULTILINE)
    assert rows
    assert all(copilot_api(name) == api for name, api in rows)


def test_the_path_that_is_typed_by_hand_is_served() -> None:
    text = (OBSIDIAN / "smart-connections.md").read_text("utf-8")
    values = dict(re.findall(r"^\| \*([\w ]+)\* \| `([^`]+)` \|$", text, re.MULTILINE))
    assert f"{values['Protocol']}://{values['Hostname']}:{values['Port']}" == URL.removesuffix("/v1")
    assert "POST" in ROUTES[canonical_path(values["Path"])]


def test_what_serve_prints_is_what_the_pages_say() -> None:
    printed = client_settings(URL, Settings())
    page = (OBSIDIAN / "copilot.md").read_text("utf-8")
    for field in ("Base URL", "API key", "Enable CORS"):
        (value,) = re.findall(rf"^ +{field} +(.+)$", printed, re.MULTILINE)
        assert re.search(rf"^\| \*{field}\* \| `?{re.escape(value)}`? \|$", page, re.MULTILINE)
