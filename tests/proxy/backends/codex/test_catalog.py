from __future__ import annotations

from typing import Any

from proxy.backends.codex.catalog import UNKNOWN, text_only_catalog

PLAIN: dict[str, Any] = {
    "slug": "plain",
    "shell_type": "unified_exec",
    "apply_patch_tool_type": "freeform",
    "base_instructions": "long",
    "model_messages": {"instructions_template": "long"},
    "use_responses_lite": False,
    "visibility": "list",
    "context_window": 272_000,
    "kept": "as it is",
}
LITE = {**PLAIN, "slug": "lite", "use_responses_lite": True, "tool_mode": "code_mode_only"}


def entries(*models: dict[str, Any], **measured: str) -> dict[str, dict[str, Any]]:
    return {entry["slug"]: entry for entry in text_only_catalog(models, measured)["models"]}


def test_every_model_loses_its_tools_and_keeps_the_rest() -> None:
    for entry in entries(LITE, PLAIN, **{UNKNOWN: "text"}).values():
        assert entry["shell_type"] == "disabled"
        assert entry["apply_patch_tool_type"] is None
        assert entry["tool_mode"] is None
        assert entry["context_window"] == 10_000_000
        assert entry["kept"] == "as it is"


def test_measured_instructions_take_the_place_of_the_tables() -> None:
    catalog = entries(PLAIN, LITE, plain="short")
    assert (catalog["plain"]["base_instructions"], catalog["plain"]["model_messages"]) == ("short", None)
    assert (catalog["lite"]["base_instructions"], catalog["lite"]["model_messages"]) == ("long", LITE["model_messages"])


def test_every_other_name_has_the_entry_of_an_unknown_one() -> None:
    entry = entries(LITE, PLAIN, **{UNKNOWN: "text"})[""]
    assert entry["base_instructions"] == "text"
    assert entry["visibility"] == "hide"
    assert entry["use_responses_lite"] is False
    assert "display_name" not in entry, "a version's table only gets what it knows"


def test_without_a_measurement_other_names_are_left_to_codex() -> None:
    assert set(entries(PLAIN, LITE)) == {"plain", "lite"}
