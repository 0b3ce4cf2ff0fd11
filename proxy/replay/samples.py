"""Where the fixtures and the vault of the demo are: `fixtures/` of a checkout, or its copy in a wheel."""

from __future__ import annotations

from pathlib import Path

from ..errors import UsageError

_PACKAGE = Path(__file__).resolve().parent.parent
_PLACES = (_PACKAGE / "_fixtures", _PACKAGE.parent / "fixtures")


def samples_folder() -> Path:
    """The folder that holds `vault/` and the `demo-*` fixtures."""
    for place in _PLACES:
        if (place / "vault").is_dir():
            return place
    raise UsageError("The sample fixtures are missing from this installation; install tagcall anew.")
