from __future__ import annotations

import sys
from types import ModuleType

import pytest

from proxy.launcher import run


def fails_to_load(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise error

    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "proxy.cli", Failing("proxy.cli"))


def test_who_has_second_thoughts_while_it_loads_is_shown_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    fails_to_load(KeyboardInterrupt(), monkeypatch)
    assert run() == 130


def test_packages_of_another_python_are_told_in_place_of_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fails_to_load(ModuleNotFoundError("No module named 'msgspec._core'", name="msgspec._core"), monkeypatch)
    assert run() == 2
    said = capsys.readouterr().err
    assert said.startswith("tagcall: No module named 'msgspec._core': its packages are missing here, or were made for")
    assert said.count("\n") == 1


def test_a_fault_of_its_own_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    fails_to_load(ImportError("cannot import name 'x'", name="proxy.ids"), monkeypatch)
    with pytest.raises(ImportError, match="cannot import name"):
        run()
