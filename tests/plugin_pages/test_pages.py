"""The pages of the plugins say what their sources say, as they were read; `make plugin-pages` reads them anew."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.cli.obsidian import RESPONSES_MODELS
from proxy.plugins import GIVEN_TOOLS, HIDDEN, LISTED

from .plugins import PLUGINS, Names, Plugin
from .reading import Extract, drift, extract, kept

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "howto" / "obsidian"


def page(name: str) -> str:
    return (PAGES / PLUGINS[name].page).read_text("utf-8")


def labels(read: Extract) -> set[str]:
    return {label for found in read["labels"].values() for label in found}


@pytest.mark.parametrize("name", PLUGINS)
def test_what_was_read_is_what_the_table_asks_for(name: str) -> None:
    read = kept(name)
    assert read["repository"] == PLUGINS[name].repository
    assert read["labels"] == PLUGINS[name].labels
    assert read["names"].keys() == PLUGINS[name].names.keys()
    assert all(read["names"].values())


@pytest.mark.parametrize("name", PLUGINS)
def test_a_page_names_the_version_that_it_was_read_from(name: str) -> None:
    first = re.search(r"Read from versions? .*", page(name).replace("\n", " "))
    assert first is not None
    assert kept(name)["version"] in first[0]


@pytest.mark.parametrize("file", sorted({plugin.page for plugin in PLUGINS.values()}))
def test_whatever_a_page_calls_by_name_is_in_the_plugin(file: str) -> None:
    text = (PAGES / file).read_text("utf-8")
    known = set().union(*(labels(kept(name)) for name, plugin in PLUGINS.items() if plugin.page == file))
    assert set(re.findall(r"(?<![*\w])\*([^*\n]+)\*(?![*\w])", text)) <= known


@pytest.mark.parametrize("name", PLUGINS)
def test_each_label_that_was_read_is_on_its_page(name: str) -> None:
    assert {label for label in labels(kept(name)) if f"*{label}*" not in page(name)} == set()


def test_names_are_told_from_the_lists_that_the_plugins_have() -> None:
    chatgpt_md = kept("chatgpt-md")["names"]
    assert chatgpt_md["listed"] == list(LISTED)
    assert chatgpt_md["hidden all the same"] == list(HIDDEN)
    assert set(chatgpt_md["given tools"]) == GIVEN_TOOLS
    for name in ("copilot", "copilot-3"):
        assert set(kept(name)["names"]["asked by Responses"]) == {RESPONSES_MODELS}


MADE_UP = Plugin(
    "someone/notes",
    "notes.md",
    {"src/tab.tsx": ["Base URL", "Add provider", "Save"], "src/gone.ts": ["Old"]},
    {"models": Names("src/tab.tsx", r"const KNOWN = \[", r"\]")},
)
TAB = """
const KNOWN = ['small', "large"]
<Field label="Base URL" hint="The Save button"/>
<button>
  Add provider
</button>
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "tab.tsx").write_text(TAB, "utf-8")
    (tmp_path / "manifest.json").write_text(json.dumps({"version": "2.0"}), "utf-8")
    return tmp_path


def test_labels_and_lists_are_read_from_a_checkout(checkout: Path) -> None:
    assert extract(MADE_UP, checkout) == {
        "repository": "someone/notes",
        "version": "2.0",
        "labels": {"src/tab.tsx": ["Base URL", "Add provider"], "src/gone.ts": []},
        "names": {"models": ["small", "large"]},
    }


def test_what_has_moved_on_is_told(checkout: Path) -> None:
    before = extract(MADE_UP, checkout)
    assert list(drift(before, before)) == []
    tab = TAB.replace("Base URL", "API URL").replace("small", "tiny")
    (checkout / "src" / "tab.tsx").write_text(tab, "utf-8")
    assert list(drift(before, extract(MADE_UP, checkout))) == [
        "'Base URL' is no longer in src/tab.tsx",
        "models: without 'small' now",
        "models: 'tiny' is new",
    ]


def test_a_checkout_in_which_nothing_is_left_has_drifted(checkout: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.plugin_pages", f"bmo={checkout}"],
        cwd=ROOT, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "'REST API URL' is no longer in" in done.stdout
