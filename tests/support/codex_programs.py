"""The codex programs that tests run with.

The one from PyPI is required: without it the tests that want it fail. npm's 0.89.0 and 0.171.0, the oldest
and the newest supported, are those of `make test-codex`: in `.node/<version>/` at the project's root, or in the folder
that TAGCALL_TEST_CODEX names.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from proxy.backends.codex import Support, bundled_program, native_program, release_of, standing_of

ROOT = Path(__file__).resolve().parents[2]
# An authority whose key nobody has. To read those of the system is a seventh of a start, of tagcall's as of codex's.
NOBODY = Path(__file__).with_name("nobody.pem")
NPM_LAUNCHER = "node_modules/@openai/codex/bin/codex.js"


@dataclass(frozen=True, slots=True)
class TestProgram:
    """`path` is None when the required one is not installed."""

    __test__ = False

    version: str
    path: Path | None

    @property
    def release(self) -> tuple[int, ...]:
        return release_of(self.version)

    @property
    def supported(self) -> bool:
        """Whether all its tools can be taken away, and it keeps lanes."""
        return standing_of(self.version) is Support.SUPPORTED


def installed_programs() -> list[TestProgram]:
    try:
        bundled = TestProgram(version("openai-codex-cli-bin"), bundled_program())
    except PackageNotFoundError:
        bundled = TestProgram("from-pypi-is-missing", None)
    folder = Path(os.environ.get("TAGCALL_TEST_CODEX") or ROOT / ".node")
    launchers = sorted(folder.glob(f"*/{NPM_LAUNCHER}"))
    npm = [TestProgram(launcher.relative_to(folder).parts[0], native_program(launcher)) for launcher in launchers]
    return [bundled, *npm]


def child_environment(home: Path | str) -> dict[str, str]:
    """Nothing of the person's own settings, and a closed port for whatever would leave this machine."""
    closed = "http://127.0.0.1:9"
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(home),
        "HTTP_PROXY": closed,
        "HTTPS_PROXY": closed,
        "ALL_PROXY": closed,
        "NO_PROXY": "127.0.0.1,localhost",
        "SSL_CERT_FILE": str(NOBODY),
    }
