"""The module `tagcall` of an installation: the command, and what a process of ours imports first.

A wheel has it as `tagcall/__init__.py`, with `proxy`, `prompts` and `parser` beside it in that folder. They go onto the
path of this process alone, before all others, so neither a project's packages of these names nor ours hide the others.
"""

from __future__ import annotations

import sys
from pathlib import Path


def run() -> int:
    """One command; returns the exit status. Not called `main`, which is a module of ours: zip builders take that."""
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        from proxy.cli import main  # noqa: PLC0415 -- it is found from here on
    except KeyboardInterrupt:  # which `main` tells from here on
        return 130
    except ImportError as error:
        if (error.name or "").partition(".")[0] in {"", "parser", "prompts", "proxy"}:
            raise  # a fault of ours
        found = f"{sys.executable} (Python {sys.version_info[0]}.{sys.version_info[1]})"
        print(
            f"tagcall: {error}: its packages are missing here, or were made for another Python than {found}. "
            "Install it for this Python, or run it with the Python that it was installed for.",
            file=sys.stderr,
        )
        return 2
    return main()
