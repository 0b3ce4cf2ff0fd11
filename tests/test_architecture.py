"""The map of the code shows what is there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
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
