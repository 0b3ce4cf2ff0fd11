"""The backends that end-to-end tests run with: each codex program that is installed, and a Chat Completions server.

Behind both stands a scripted model, so a test says what the model writes and looks at what it was shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .codex_homes import informed_home
from .codex_programs import TestProgram, installed_programs
from .scripted_chat import ScriptedChat
from .scripted_model import ScriptedModel


@dataclass(frozen=True, slots=True)
class TestBackend:
    """`codex` is None for the Chat Completions server."""

    __test__ = False

    codex: TestProgram | None

    @property
    def name(self) -> str:
        return self.codex.version if self.codex else "chat"

    @property
    def text_only(self) -> bool:
        return self.codex is None or self.codex.supported

    @property
    def tells_why(self) -> bool:
        """Whether it passes on what the model's side says of a failure."""
        return self.codex is None or self.codex.release >= (0, 100)

    def model(self) -> ScriptedModel:
        return ScriptedChat() if self.codex is None else ScriptedModel()

    def settings(self, model: ScriptedModel, home: Path) -> dict[str, Any]:
        """Those that lead to `model`, whose address is known."""
        if self.codex is None:
            # The lines of the other profile are for small models, not for scripts.
            return {"backend": model.url, "profile": "frontier"}
        assert self.codex.path is not None, "openai-codex-cli-bin is not installed"
        home = informed_home(home, self.codex.path)
        return {"codex": str(self.codex.path), "codex_home": home, "upstream": model.url}


BACKENDS_UNDER_TEST = [*map(TestBackend, installed_programs()), TestBackend(None)]
# What clients see does not depend on the codex program.
ONE_OF_EACH_KIND = [BACKENDS_UNDER_TEST[0], BACKENDS_UNDER_TEST[-1]]
