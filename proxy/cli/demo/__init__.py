"""`tagcall demo`: one whole tool loop, shown hop by hop.

The server runs in this process on a free loopback port, in front of the replay backend. The official
`openai` client talks to it over HTTP and executes the tools on a small vault of notes.

vault      the client's tools, and where the notes are that they read
recording  a backend that remembers what the model was shown and what it wrote
loop       the client
view       what the terminal shows
"""

from __future__ import annotations

import sys

from ...advice import addition

# The packages of the extra `demo`.
_OPTIONAL = frozenset({"openai"})


async def run_demo() -> int:
    """Run and show the loop on stdout. 0: it finished as expected; 1: it did not; 2: packages are missing."""
    try:
        from .loop import show_loop  # noqa: PLC0415 -- the command line must work without the extra
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _OPTIONAL:
            raise
        print(f"The demo needs the package {package}: {addition(package)}.", file=sys.stderr)
        return 2
    return await show_loop()
