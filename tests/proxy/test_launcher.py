from __future__ import annotations

import sys
from types import ModuleType

import pytest

from proxy.launcher import run


def test_who_has_second_thoughts_while_it_loads_is_shown_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "proxy.cli", Interrupted("proxy.cli"))
    assert run() == 130
