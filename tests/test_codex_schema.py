"""What an upgrade of codex is judged by: the difference between the schemas of two programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.codex_schema import protocol_of, read_protocol, told
from tests.support.codex_programs import TestProgram, installed_programs


def written(folder: Path, kinds: list[str], errors: list[str], **members: Any) -> Path:
    """A schema with these kinds of items and of errors, and these members of a thread."""
    items = [{"properties": {"type": {"enum": [kind]}, "id": {"type": "string"}}} for kind in kinds]
    definitions = {
        "ThreadItem": {"oneOf": items},
        "CodexErrorInfo": {"anyOf": [{"enum": errors}, {"properties": {"httpConnectionFailed": {}}}]},
        "Thread": {"properties": members},
    }
    folder.mkdir()
    (folder / "Any.json").write_bytes(orjson.dumps({"title": "Any", "definitions": definitions}))
    return folder


def test_what_was_gained_and_lost_is_told_under_what_it_is(tmp_path: Path) -> None:
    old = read_protocol(written(tmp_path / "old", ["agentMessage", "plan"], ["other"], id={}, path={}))
    new = read_protocol(
        written(tmp_path / "new", ["agentMessage", "aside"], ["other", "tired"], id={"properties": {"raw": {}}})
    )
    assert list(told(old, new)) == [
        "kinds of items:",
        "  + aside",
        "  - plan",
        "kinds of errors:",
        "  + tired",
        "members and values:",
        "  + CodexErrorInfo = tired",
        "  + Thread.id.raw",
        "  + ThreadItem.type = aside",
        "  - Thread.path",
        "  - ThreadItem.type = plan",
    ]
    assert list(told(new, new)) == ["Nothing was gained and nothing lost."]


@pytest.mark.parametrize("program", installed_programs(), ids=lambda program: program.version)
def test_a_real_programs_schema_has_what_is_spoken_here(program: TestProgram) -> None:
    assert program.path is not None
    names = protocol_of(program.path).names
    assert {"initialize", "thread/start", "turn/start", "turn/interrupt"} <= names["requests"]
    assert {"turn/completed", "item/agentMessage/delta", "error"} <= names["notifications"]
    assert {"agentMessage", "reasoning", "userMessage"} <= names["kinds of items"]
    assert {"contextWindowExceeded", "other"} <= names["kinds of errors"]
    assert ("thread/inject_items" in names["requests"]) is program.supported
