"""Which items may stand in an answer, and what a program says that it may tell of."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import pytest

from proxy.backends import find_kind
from proxy.backends.codex.item_kinds import ACTING, HARMLESS, READ, allowed_items, unknown_kinds
from proxy.errors import UsageError
from proxy.settings import Settings
from tests.support.codex_programs import TestProgram, installed_programs

WRITES_SCHEMA = """\
#!{python}
import pathlib, sys
if "--version" in sys.argv:
    print("codex-cli 0.999.0")
elif "--out" in sys.argv:
    folder = pathlib.Path(sys.argv[sys.argv.index("--out") + 1], "v2")
    folder.mkdir(parents=True)
    (folder / "ItemStartedNotification.json").write_text({schema!r})
"""


def program_with(tmp_path: Path, *kinds: str) -> Path:
    """A program whose schema has items of these kinds."""
    items = [{"properties": {"type": {"enum": [kind]}}} for kind in kinds]
    schema = orjson.dumps({"definitions": {"ThreadItem": {"oneOf": items}}}).decode()
    path = tmp_path / "codex"
    path.write_text(WRITES_SCHEMA.format(python=sys.executable, schema=schema))
    path.chmod(0o700)
    return path


def test_a_kind_has_one_meaning() -> None:
    assert not READ & HARMLESS
    assert not (READ | HARMLESS) & ACTING


@pytest.mark.parametrize("program", installed_programs(), ids=lambda program: program.version)
def test_every_kind_of_the_supported_programs_is_known(program: TestProgram) -> None:
    assert program.path is not None
    assert unknown_kinds(program.path) == []


def test_a_new_kind_is_unknown_until_it_is_allowed(tmp_path: Path) -> None:
    program = program_with(tmp_path, "agentMessage", "webSearch", "thought", "hookPrompt", "aside")
    assert unknown_kinds(program) == ["aside", "thought"]
    assert unknown_kinds(program, ["aside"]) == ["thought"]


def test_a_program_without_a_schema_says_nothing(tmp_path: Path) -> None:
    assert unknown_kinds(Path(sys.executable)) is None
    assert unknown_kinds(tmp_path / "missing") is None


@pytest.mark.parametrize("kind", ["commandExecution", "agentMessage"])
def test_what_acts_or_answers_cannot_be_allowed(kind: str) -> None:
    assert "aside" in allowed_items(["aside"])
    with pytest.raises(UsageError, match=f"--allow-item {kind} is refused"):
        allowed_items(["aside", kind])


async def test_doctor_foretells_turns_that_would_end(tmp_path: Path) -> None:
    program = program_with(tmp_path, "agentMessage", "aside")
    for allowed, good in (((), None), (("aside",), True)):
        settings = Settings(
            port=0, backend="codex", codex=str(program), codex_home=tmp_path / "home", allow_item=allowed,
            call_key_secret=tmp_path / "key",
        )  # fmt: skip
        kind = [finding for finding in await find_kind("codex").check_after(settings) if finding.name == "items"]
        assert [finding.good for finding in kind] == [good]
        assert ("aside" in kind[0].said) is (good is None)
