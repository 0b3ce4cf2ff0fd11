"""The app-server's words: `turn/start` and its like are known here and nowhere else.

    codex_backend(...)   the codex program as a child         \\
    ..replay             the fixtures' app-server as a child    > one class, CodexBackend, over three transports
    ..remote             an app-server that listens elsewhere  /

kind             its row in the table: how it is made, what `doctor` checks
backend          the `TextBackend`: streams, models, health; and codex as one
session          one connection: greeting, login, quota, models, watch
threads          the turns that run on it, and their ends
lanes            those that hold a conversation, so that only what is new goes out
spare_threads    those that are started before they are asked for
running_turn     a turn as its reader, its owner and its consumer share it
reduction        pure: one turn's notifications to backend events
item_kinds       which items may stand in an answer; what a program says of its own
expansion        pure: the same backwards, for those who write down what a backend said
deltas           pure: text that was read together, as one delta
tool_outputs     for which models results go out as outputs of tools
requests         pure: what codex is asked, and what it is answered when it asks
output_schema    pure: the schema that codex passes on to hold the model to
quota            pure: what is left of the account's quota
errors           pure: every failure and the client's answer to it
options          a session's limits and deadlines
program          find the program, also behind npm's launcher
versions         pure: which version is good for what
home             the private CODEX_HOME; config its settings, catalog its model table,
                 baseline the base instructions that codex sends on its own
text_only        whether a program gives the model tools of its own
examination      what `doctor` finds out about a program

A name below is loaded when it is first asked for: most backends do without.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..restart_policy import RestartPolicy as RestartPolicy
    from .backend import CodexBackend as CodexBackend
    from .backend import codex_backend as codex_backend
    from .config import Provider as Provider
    from .errors import not_logged_in as not_logged_in
    from .errors import turn_failure as turn_failure
    from .expansion import TurnExpansion as TurnExpansion
    from .home import prepare_home as prepare_home
    from .item_kinds import allowed_items as allowed_items
    from .options import Deadlines as Deadlines
    from .options import LaneBounds as LaneBounds
    from .options import SessionOptions as SessionOptions
    from .options import lane_bounds as lane_bounds
    from .options import read_base_instructions as read_base_instructions
    from .program import bundled_program as bundled_program
    from .program import locate_program as locate_program
    from .program import native_program as native_program
    from .versions import Support as Support
    from .versions import release_of as release_of
    from .versions import standing_of as standing_of

# The module of each name.
_WHERE: Mapping[str, str] = {
    "RestartPolicy": ".restart_policy",
    "CodexBackend": "backend",
    "codex_backend": "backend",
    "Provider": "config",
    "not_logged_in": "errors",
    "turn_failure": "errors",
    "TurnExpansion": "expansion",
    "prepare_home": "home",
    "allowed_items": "item_kinds",
    "Deadlines": "options",
    "LaneBounds": "options",
    "SessionOptions": "options",
    "lane_bounds": "options",
    "read_base_instructions": "options",
    "bundled_program": "program",
    "locate_program": "program",
    "native_program": "program",
    "Support": "versions",
    "release_of": "versions",
    "standing_of": "versions",
}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_WHERE[name]}", __name__), name)
