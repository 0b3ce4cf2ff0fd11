"""Files lie where a user of the system looks for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from platformdirs.macos import MacOS

from proxy.folders import config_folder, data_folder, moved


@pytest.fixture(autouse=True)
def _at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_on_linux_they_are_those_of_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    assert (data_folder(), config_folder()) == (tmp_path / ".local/share/tagcall", tmp_path / ".config/tagcall")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert data_folder() == tmp_path / "data" / "tagcall"
    assert moved() is None


def test_elsewhere_they_are_the_systems_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platformdirs.PlatformDirs", MacOS)
    assert data_folder() == config_folder() == tmp_path / "Library" / "Application Support" / "tagcall"
    assert moved() is None


def test_what_an_earlier_version_made_is_found_and_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platformdirs.PlatformDirs", MacOS)
    old = tmp_path / ".local" / "share" / "tagcall"
    old.mkdir(parents=True)
    assert data_folder() == old
    assert config_folder() != tmp_path / ".config" / "tagcall"
    assert moved() == f"Files of an earlier version are used where they are: {old}."
