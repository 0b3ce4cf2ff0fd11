"""Docs that cannot lie: pages are held against the code they describe."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from proxy.cli.commands import build_parser
from proxy.cli.eval.cases import CATEGORIES, load_cases
from proxy.errors import RequestError
from proxy.settings import SETTINGS
from proxy.wire.parameters import MOVED_FROM_CHAT
from proxy.wire.responses.input_items import ITEM_KINDS, SILENT_ITEMS
from proxy.wire.responses.request import Echo, parse_responses_request
from proxy.wire.tools import CALLABLE_TOOLS
from tests.settings_page import settings_page
from tests.support.responses_grammar import MEMBERS

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / name).read_text("utf-8")


def test_the_settings_page_is_made_from_the_table() -> None:
    assert page("settings.md") == settings_page(), "run `make docs`"


def test_every_flag_of_the_commands_is_a_setting_or_on_the_page_of_its_command() -> None:
    parser = build_parser()
    known = {setting.flag for setting in SETTINGS} | {"--help", "-h", "--version"}
    known |= set(re.findall(r"`(--config) FILE`", page("settings.md")))
    for name in ("fixtures.md", "prompts.md", "../howto/inspect.md"):
        known |= set(re.findall(r"^\| `(--[a-z]+)", page(name), re.MULTILINE))
    known |= set(re.findall(r"^\| `(--[a-z-]+)", page("../howto/doctor.md") + page("../howto/setup.md"), re.MULTILINE))
    known |= set(re.findall(r"tagcall service install (--\w+)", page("../howto/service/README.md")))
    (commands,) = (action for action in parser._actions if action.dest == "command")
    assert isinstance(commands.choices, dict)
    for command in commands.choices.values():
        for action in command._actions:
            assert set(action.option_strings) <= known


def test_doctor_takes_every_flag_of_the_server() -> None:
    assert [row.flag for row in SETTINGS if "serve" in row.commands and "doctor" not in row.commands] == []


def test_the_set_that_is_documented_is_the_one_that_is_asked() -> None:
    rows = re.findall(r"^\| ([a-z ]+) \| (\d+) \| ", page("prompts.md"), re.MULTILINE)
    asked = Counter(CATEGORIES[case.category] for case in load_cases())
    assert {name: int(count) for name, count in rows} == asked
    assert f"{asked.total()} cases" in page("prompts.md")
    assert ", ".join(f"`{name}`" for name in CATEGORIES) in page("prompts.md")


# The groups of the parameters -> what may become of one there.
FATES = {
    "Does what OpenAI does": {"honoured"},
    "Refused": {"refused"},
    "Accepted without effect": {"echoed", "ignored"},
}
SECTIONS = dict(part.split("\n", 1) for part in page("parameters.md").split("\n## ")[1:])
ROWS = [
    (name, fates, chat)
    for group, fates in FATES.items()
    for name, chat in re.findall(r"^\| `(\w+)` \|.* \| (\w+)[^|]* \|$", SECTIONS[group], re.MULTILINE)
]
# What may become of each parameter, by kind of backend.
PARAMETERS = {name: fates for name, fates, _ in ROWS}
AT_CHAT_SERVERS = {name: fates if chat == "the" else {chat} for name, fates, chat in ROWS}
# What reaches the turn and not the model, by kind of backend; and what is there only to be told.
TOLD = {"wishes", "warnings"}
NOT_FOR_CODEX, NOT_FOR_CHAT_SERVERS = {"sampling", *TOLD}, {"names", "tier", "verbosity", *TOLD}

# One value of each parameter that is not its default. What these do shows in answers and stores, not in the request.
SEEN_ELSEWHERE = {"background", "conversation", "previous_response_id", "store"}
VALUES: dict[str, Any] = {
    "access_programs": {"cyber": "standard"},
    "background_options": {"completion_window": "soonest"},
    "context_management": [{"type": "compaction", "compact_threshold": 1000}],
    "image": {"context_compression": "auto"},
    "include": ["reasoning.encrypted_content"],
    "input": "something else",
    "instructions": "Be kind.",
    "max_output_tokens": 100,
    "max_tool_calls": 2,
    "metadata": {"a": "b"},
    "model": "another",
    "moderation": {"model": "omni-moderation-latest"},
    "parallel_tool_calls": False,
    "prompt": {"id": "pmpt_1"},
    "prompt_cache_key": "k",
    "prompt_cache_options": {"mode": "explicit"},
    "prompt_cache_retention": "24h",
    "reasoning": {"effort": "low"},
    "safety_identifier": "s",
    "service_tier": "flex",
    "stream": True,
    "stream_options": {"include_obfuscation": True},
    "temperature": 0.5,
    "text": {"format": {"type": "json_object"}},
    "tool_choice": "none",
    "tools": [{"type": "function", "name": "f"}],
    "top_logprobs": 3,
    "top_p": 0.5,
    "truncation": "auto",
    "user": "u",
}


def effect_and_echo(ignored: set[str], **members: Any) -> tuple[object, object]:
    """What a request asks of the turn and of the answer, and what the answer repeats of it."""
    request = parse_responses_request({"model": "m", "input": "hi", **members})
    turn = {name: value for name, value in asdict(request.turn).items() if name not in ignored}
    effect = {**turn, "registry": list(request.turn.registry)}, request.stream, request.include
    return effect, (request.echo, request.service_tier)


def test_the_parameters_that_are_documented_are_the_official_clients() -> None:
    assert set(PARAMETERS) == {*ResponseCreateParamsBase.__annotations__, "stream"}
    assert set(Echo.__annotations__) <= set(PARAMETERS)
    for name in MOVED_FROM_CHAT:
        assert f"`{name}`" in SECTIONS["Refused"]


def fate_of(name: str, ignored: set[str]) -> str:
    effect, echo = effect_and_echo(ignored)
    try:
        seen_effect, seen_echo = effect_and_echo(ignored, **{name: VALUES[name]})
    except RequestError as error:
        return "refused" if error.param == name else error.message
    return "honoured" if seen_effect != effect else "echoed" if seen_echo != echo else "ignored"


@pytest.mark.parametrize("name", sorted(set(PARAMETERS) - SEEN_ELSEWHERE))
def test_what_is_documented_of_a_parameter_is_what_happens(name: str) -> None:
    assert fate_of(name, NOT_FOR_CODEX) in PARAMETERS[name]
    assert fate_of(name, NOT_FOR_CHAT_SERVERS) in AT_CHAT_SERVERS[name]


def test_every_kind_of_input_item_and_tool_is_documented() -> None:
    text = page("parameters.md")
    for kind in {*ITEM_KINDS, *CALLABLE_TOOLS, "namespace"} - SILENT_ITEMS:
        assert f"`{kind}`" in text


def error_codes() -> Iterator[tuple[str, str]]:
    """Each literal `code=` of an error in the proxy, and the file it stands in."""
    for path in (ROOT / "proxy").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Error")):
                continue
            for keyword in node.keywords:
                if keyword.arg == "code" and isinstance(keyword.value, ast.Constant) and keyword.value.value:
                    yield str(keyword.value.value), path.name


def test_every_error_code_is_documented() -> None:
    documented = page("errors.md") + page("app-server.md")
    missing = {code for code, _ in error_codes() if f"`{code}`" not in documented}
    assert not missing


def test_every_event_that_is_sent_is_documented() -> None:
    source = (ROOT / "proxy" / "wire" / "responses" / "responses_builder.py").read_text("utf-8")
    sent = set(re.findall(r'"(response\.[a-z_.]+)"', source))
    assert sent == set(documented_events())


def documented_events() -> dict[str, frozenset[str]]:
    """The members of each event: the names before what is said of them in brackets."""
    rows = re.findall(r"^\| `(response\.[a-z_.]+)` \| (.+) \|$", page("events.md"), re.MULTILINE)
    return {name: frozenset(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", members))) for name, members in rows}


def test_the_events_members_are_those_of_the_grammar() -> None:
    assert documented_events() == {name: MEMBERS[name] for name in documented_events()}


def test_the_readme_shows_the_commands_of_a_first_day_and_is_short() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for command in (
        "make demo", "make setup", "make serve", "make test", "tagcall serve", "tagcall doctor", "tagcall record",
        "tagcall replay", "tagcall eval",
    ):  # fmt: skip
        assert command in readme
    assert len(readme.split()) <= 900


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Pages that each reader of their subject finds from the page of that subject.
UNDER_ANOTHER = {"howto/obsidian"}
# Words.
LONGEST_SENTENCE = 35


def test_the_index_names_every_page() -> None:
    docs = ROOT / "docs"
    index = (docs / "README.md").read_text("utf-8")
    for path in sorted(docs.rglob("*.md")):
        name = path.relative_to(docs).as_posix()
        if name != "README.md" and str(path.relative_to(docs).parent) not in UNDER_ANOTHER:
            assert f"]({name})" in index


def test_every_picture_is_on_a_page() -> None:
    pages = "".join(path.read_text("utf-8") for path in PAGES)
    assert [picture.name for picture in (ROOT / "docs" / "images").iterdir() if f"/{picture.name})" not in pages] == []


def test_the_first_page_leads_to_each_plugins_page_in_two_clicks() -> None:
    plugins = ROOT / "docs" / "howto" / "obsidian"
    assert "](docs/howto/obsidian/README.md)" in (ROOT / "README.md").read_text("utf-8")
    index = (plugins / "README.md").read_text("utf-8")
    assert [
        path.name for path in plugins.glob("*.md") if path.name != "README.md" and f"]({path.name})" not in index
    ] == []


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page's running text: without code, tables and headings."""
    prose = re.sub(r"```.*?```|^ {4}[^\n]*$|^\|[^\n]*$|^#[^\n]*$", "\n\n", text, flags=re.DOTALL | re.MULTILINE)
    return iter(re.split(r"(?<=[.!?:])\s+|\n\n+|\n *[-*] |\n *\d+\. ", prose))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sentence_is_too_long_to_be_read_once(path: Path) -> None:
    assert [said for said in sentences(path.read_text("utf-8")) if len(said.split()) > LONGEST_SENTENCE] == []


def headings(path: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    titles = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"(?m)^#+ (.+)$", text))
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target, heading in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]+))?\)", path.read_text("utf-8")):
        page = path.parent / target if target else path
        assert page.exists(), target
        assert not heading or heading in headings(page), f"{target}#{heading}"
