"""Docs that cannot lie: pages are held against the code they describe."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.cli.main import build_parser
from proxy.ingress.routes import ROUTES
from proxy.settings import SETTINGS, reference
from proxy.wire.responses_request import Echo

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / name).read_text("utf-8")


def test_the_settings_page_is_made_from_the_table() -> None:
    assert page("settings.md") == reference(), "run `make docs`"


def test_every_flag_of_the_commands_is_a_setting() -> None:
    parser = build_parser()
    known = {setting.flag for setting in SETTINGS} | {"--help", "-h", "--version"}
    (commands,) = (action for action in parser._actions if action.dest == "command")
    assert isinstance(commands.choices, dict)
    for command in commands.choices.values():
        for action in command._actions:
            assert set(action.option_strings) <= known


def test_every_echoed_parameter_is_documented() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", page("parameters.md"), re.MULTILINE))
    assert set(Echo.__annotations__) <= rows


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
    source = (ROOT / "proxy" / "wire" / "responses.py").read_text("utf-8")
    sent = set(re.findall(r'"(response\.[a-z_.]+)"', source))
    assert sent == set(re.findall(r"^\| `(response\.[a-z_.]+)` \|", page("events.md"), re.MULTILINE))


def test_the_readme_names_every_command_and_reference_page() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for command in ("make demo", "make serve", "make test", "tagcall login", "tagcall serve", "tagcall doctor"):
        assert command in readme
    for name in sorted(path.name for path in REFERENCE.glob("*.md")):
        assert f"docs/reference/{name}" in readme


def test_an_unknown_path_is_told_what_is_served() -> None:
    assert {"/responses", "/models", "/healthz", "/readyz"} <= set(ROUTES)


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)", (ROOT / "README.md").read_text("utf-8")))
def test_the_readmes_links_lead_somewhere(target: str) -> None:
    assert (ROOT / target).exists()
