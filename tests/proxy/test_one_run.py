from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata
from pathlib import Path

import pytest

from proxy import one_run
from proxy.advice import addition, command
from proxy.cli.service.run import own_command
from proxy.errors import UsageError


class Installed:
    """What the environment says of the tagcall in it."""

    requires = (
        "aiohttp>=3",
        "none-of-this-name>=0.1; extra == 'codex'",
        "pytest>=2; extra == 'demo'",
        "hypothesis>=6; (sys_platform != 'win32') and extra == 'speed'",
    )

    def __init__(self, origin: object) -> None:
        self._origin = origin

    def read_text(self, _: str) -> str | None:
        return None if self._origin is None else json.dumps(self._origin)


WHEEL = {"url": "file:///a%20b/tagcall-0.1.0-py3-none-any.whl", "archive_info": {}}
GIT = {"url": "https://git.example/tagcall", "vcs_info": {"vcs": "git", "commit_id": "1", "requested_revision": "v1"}}


@pytest.mark.parametrize(
    ("environment", "origin", "words"),
    [
        ("/c/uv/archive-v0/x1", WHEEL, ["uvx", "--from", f"tagcall[demo,speed] @ {WHEEL['url']}", "tagcall"]),
        ("/h/.cache/pipx/1ab", GIT, ["pipx", "run", "--spec", f"tagcall[demo,speed] @ git+{GIT['url']}@v1", "tagcall"]),
        ("/c/environments-v2/x1", None, ["uvx", "--from", "tagcall[demo,speed]", "tagcall"]),
    ],
    ids=["uvx", "pipx", "a registry"],
)  # fmt: skip
def test_what_was_made_for_one_run_is_made_again(
    environment: str, origin: object, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = metadata.distribution
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(origin) if name == "tagcall" else real(name))
    monkeypatch.delenv("TAGCALL_BY_MAKE", raising=False)
    monkeypatch.setattr(sys, "prefix", environment)
    monkeypatch.setattr(sys, "argv", [f"{environment}/bin/tagcall", "serve"])
    told = command("setup")
    assert shlex.split(told.strip("`")) == [*words, "setup"]
    assert str(Path(environment)) not in told
    with_codex = shlex.split(addition("none-of-this-name").strip("`"))
    assert with_codex == [word.replace("[demo,", "[codex,demo,") for word in words] + ["serve"]
    with pytest.raises(UsageError, match="install") as caught:
        own_command()
    assert environment not in str(caught.value)


def test_an_environment_that_stays_needs_no_such_line() -> None:
    assert one_run.one_run("serve") is None
    assert one_run.to_keep() is None
