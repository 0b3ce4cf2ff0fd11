"""The map of the code shows what is there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")

# In the text and in the picture.
PATHS = sorted(set(re.findall(r"(?<![\w/:.])((?:proxy|parser|prompts|tests|docs)(?:/[\w.]+)+)", PAGE)))
NAMES = re.findall(r"`(\w+)`(?: and `(\w+)`)? in `([\w/.]+)`", PAGE)


@pytest.mark.parametrize("path", PATHS)
def test_every_path_on_it_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(("first", "second", "path"), NAMES)
def test_every_table_that_it_sends_people_to_is_there(first: str, second: str, path: str) -> None:
    source = (ROOT / path).read_text("utf-8")
    for name in filter(None, (first, second)):
        assert re.search(rf"^(?:class )?{name}\b", source, re.MULTILINE)


def test_every_room_is_on_it() -> None:
    rooms = {f"proxy/{path.parent.name}" for path in (ROOT / "proxy").glob("*/__init__.py")} | {"parser", "prompts"}
    assert {room for room in rooms if not re.search(rf"\b{room}\b", PAGE)} == set()


def test_every_file_is_named_in_the_docstring_of_its_package() -> None:
    unnamed = [
        str(file.relative_to(ROOT))
        for room in ("parser", "prompts", "proxy")
        for package in (ROOT / room).rglob("__init__.py")
        for file in package.parent.iterdir()
        if not file.name.startswith("__") and (file.suffix == ".py" or (file / "__init__.py").exists())
        if not re.search(rf"\b{file.stem}\b", ast.get_docstring(ast.parse(package.read_text("utf-8"))) or "")
    ]
    assert unnamed == []


def test_it_says_what_to_touch_for_what_people_add() -> None:
    assert len(PATHS) > 40
    assert len(NAMES) >= 8


# The dialect is one of the Responses API.
STANDS_ON = {("tokligence", "responses")}


def imported(file: Path) -> Iterator[str]:
    """The rooms of the wire that a file in one of them takes something from."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 2 and node.module:
            yield node.module.split(".")[0]


def test_the_room_of_an_api_knows_no_other() -> None:
    rooms = {path.parent for path in (ROOT / "proxy" / "wire").glob("*/__init__.py")}
    names = {room.name for room in rooms}
    found = {(room.name, name) for room in rooms for file in room.glob("*.py") for name in imported(file)}
    assert {(room, name) for room, name in found if name in names} == STANDS_ON


def test_no_class_has_the_name_of_another() -> None:
    names = Counter(
        node.name
        for room in ("parser", "prompts", "proxy")
        for file in (ROOT / room).rglob("*.py")
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


# The rooms whose tests ask at the front: `run_turn`, `make_store`, a backend, HTTP.
FRONTED = ("backends", "ingress", "stores", "turn")

# The files of their tests that name a function or a class of a module all the same, and why. Let it grow shorter.
INSIDE: Mapping[str, Sequence[str]] = {
    "pure, and what a boundary shows of it is one answer of many": [
        "backends/chat/test_characters.py",
        "backends/chat/test_errors.py",
        "backends/chat/test_grammar.py",
        "backends/chat/test_requests.py",
        "backends/chat/test_stream.py",
        "backends/chat/test_thinking.py",
        "backends/codex/test_backend.py",
        "backends/codex/test_catalog.py",
        "backends/codex/test_config.py",
        "backends/codex/test_deltas.py",
        "backends/codex/test_errors.py",
        "backends/codex/test_expansion.py",
        "backends/codex/test_item_kinds.py",
        "backends/codex/test_lanes.py",
        "backends/codex/test_output_schema.py",
        "backends/codex/test_program.py",
        "backends/codex/test_quota.py",
        "backends/codex/test_reduction.py",
        "backends/codex/test_requests.py",
        "backends/test_event_queue.py",
        "backends/test_restart_policy.py",
        "backends/test_session_life.py",
        "ingress/inspect/test_turn_log.py",
        "ingress/test_codex_usage.py",
        "ingress/test_counts.py",
        "ingress/test_rate_limits.py",
    ],
    "what a file holds, or what goes to a server of another program": [
        "stores/test_keyed.py",
        "stores/test_records.py",
        "stores/test_sqlite_file.py",
    ],
    "needs a package that not everybody has, so the front does not load it": [
        "stores/test_key_value.py",
        "stores/test_redis.py",
    ],
    "a fault or a moment that nobody outside can bring about": [
        "backends/chat/test_patience.py",
        "backends/codex/test_baseline.py",
        "backends/test_supervision.py",
        "ingress/background/test_jobs.py",
        "ingress/background/test_leases.py",
        "ingress/test_connections.py",
        "ingress/test_deadline.py",
        "ingress/test_delivery.py",
        "ingress/test_event_stream.py",
        "ingress/test_following.py",
        "ingress/test_locks.py",
        "ingress/test_loop_lag.py",
        "ingress/test_models.py",
        "ingress/test_request_log.py",
        "ingress/websocket/test_socket.py",
    ],
    "an address that no test may listen at": ["ingress/test_admission.py"],
    "a row of an API, as somebody adds one": ["ingress/test_apis.py"],
}


def names_from_inside(file: Path) -> Iterator[str]:
    """What it takes from modules behind the front of a room. A bound has one place, where anybody may look it up."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and re.match(rf"proxy\.(?:{'|'.join(FRONTED)})\b", node.module or ""):
            place = ROOT / str(node.module).replace(".", "/")
            for alias in node.names:
                if (place / f"{alias.name}.py").exists() or not (place.is_dir() or alias.name.isupper()):
                    yield f"{node.module}.{alias.name}"


def test_tests_ask_the_front_of_a_room_but_for_those_that_say_why() -> None:
    files = [file for room in FRONTED for file in (ROOT / "tests" / "proxy" / room).rglob("*.py")]
    found = {str(file.relative_to(ROOT / "tests" / "proxy")) for file in files if [*names_from_inside(file)]}
    assert found == {file for named in INSIDE.values() for file in named}
