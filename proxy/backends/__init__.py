"""Text backends. Only the files here know the app-server's words.

    codex_backend(...)    the codex program as a child         \\
    replay_backend(...)   the fixtures' app-server as a child    > one class, CodexBackend, over three transports
    remote_backend(...)   an app-server that listens elsewhere  /

codex            the `TextBackend`: streams, models, health, and the three constructors
codex_session    one connection: greeting, login, models, watch
codex_threads    the turns that run on it, and their ends
spare_threads    those that are started before they are asked for
codex_deltas     pure: text that was read together, as one delta
codex_turn       pure: one turn's notifications to backend events
codex_errors     pure: every failure and the client's answer to it
running_turn     a turn as its reader, its owner and its consumer share it
codex_requests   pure: what codex is asked, and what it is answered when it asks
codex_program    find the program, also behind npm's launcher
codex_home       the private CODEX_HOME; codex_config its settings, codex_catalog its model table,
                 codex_baseline the base instructions that codex sends on its own
codex_check      whether a program gives the model tools of its own
inbox            from the reader, who never waits, to the consumer
session_life     when a session takes turns, and when it may go
session_options  its limits and deadlines
supervision      start, start again, retire; restart_policy says when (pure)
table            which of them a setting means
"""

from .codex import CodexBackend, codex_backend, remote_backend, replay_backend
from .codex_check import tools_that_reach_the_model
from .codex_program import locate_program, read_version
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
