"""Where tagcall keeps its files, by the conventions of the system.

On Linux these are the folders of the XDG specification. On macOS and Windows `platformdirs` knows them. A folder that
an earlier version made by the conventions of Linux is used as long as it exists.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

from .setting_values import user_path

_NAME = "tagcall"
# Kind of folder -> its variable on Linux, and where it is without one.
_XDG = {"data": ("XDG_DATA_HOME", "~/.local/share"), "config": ("XDG_CONFIG_HOME", "~/.config")}


def data_folder() -> Path:
    """The login, stored answers and secrets. Raises `UsageError` where the user has no home."""
    return _folder("data")


def config_folder() -> Path:
    """Where `tagcall.toml` is looked for. Raises `UsageError` where the user has no home."""
    return _folder("config")


def moved() -> str | None:
    """A sentence on folders that stand where an earlier version put them, None where there are none."""
    if _on_linux():
        return None
    old = [str(_linux(kind)) for kind in _XDG if _folder(kind) == _linux(kind)]
    return f"Files of an earlier version are used where they are: {', '.join(old)}." if old else None


def _folder(kind: str) -> Path:
    linux = _linux(kind)
    if _on_linux() or linux.is_dir():
        return linux
    # Loading it takes 20 ms, which a start on Linux is ready without.
    from platformdirs import PlatformDirs  # noqa: PLC0415 -- as it says above

    folders = PlatformDirs(_NAME, appauthor=False)
    return folders.user_data_path if kind == "data" else folders.user_config_path


def _on_linux() -> bool:
    return platform.system() == "Linux"


def _linux(kind: str) -> Path:
    variable, usual = _XDG[kind]
    return user_path(os.environ.get(variable) or usual) / _NAME
