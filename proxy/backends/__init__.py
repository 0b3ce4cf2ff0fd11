"""Text backends: what `--backend` can name.

table            which of them a setting means: one row a kind
codex            the codex app-server: as a child, as the replay one, or one that runs elsewhere
event_queue      from the reader, who never waits, to the consumer
session_life     when a session takes turns, and when it may go
supervision      start, start again, retire
restart_policy   pure: when to do so

All but `codex` know no word of an app-server's.
"""

from .codex import (
    CodexBackend,
    codex_backend,
    locate_program,
    read_version,
    remote_backend,
    replay_backend,
    tools_that_reach_the_model,
)
from .table import BACKENDS, make_backend

__all__ = [
    "BACKENDS",
    "CodexBackend",
    "codex_backend",
    "locate_program",
    "make_backend",
    "read_version",
    "remote_backend",
    "replay_backend",
    "tools_that_reach_the_model",
]
