"""Nobody needs a compiler: each package that tagcall needs has a wheel for the systems that the README names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.installation import ROOT, TOOLS, run

pytestmark = pytest.mark.install

SYSTEMS = (
    "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin", "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc", "aarch64-pc-windows-msvc",
)  # fmt: skip


@pytest.mark.parametrize("version", ["3.11", "3.14"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_all_of_it_installs_without_a_compiler(system: str, version: str, wheel: Path, tmp_path: Path) -> None:
    said = run(
        [
            TOOLS / "uv", "pip", "install", "--dry-run", "--only-binary", ":all:", "--python-platform", system,
            "--python-version", version, "--target", tmp_path, "--constraints", ROOT / "constraints.txt",
            f"tagcall[codex,demo] @ {wheel.as_uri()}",
        ],
        tmp_path,
    )  # fmt: skip
    assert "openai-codex-cli-bin" in said
