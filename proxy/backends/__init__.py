"""Text backends: what `--backend` can name.

table            which of them a setting means: one row a kind
kind             what a row says
chat             a server that speaks OpenAI's Chat Completions, and knows no tools
codex            the codex app-server as a child, and the words of app-servers
replay           the app-server that plays fixtures
remote           an app-server that is already running
answers          pure: what clients are answered when a backend fails
event_queue      from the reader, who never waits, to the consumer
named_models     pure: those that --model names, before those that are listed
session_life     when a session takes turns, and when it may go
supervision      start, start again, retire
restart_policy   pure: when to do so
wrapped          in front of any other, for those that listen

The last seven know no word of an app-server's. Nothing that only one kind takes is loaded before it is made.
"""

from .chat.kind import server_key
from .kind import BackendKind, BackendSettings, Finding, as_sentence
from .remote import remote_backend
from .replay import replay_backend
from .table import BACKENDS, backend_forms, backend_help, find_kind, make_backend

__all__ = [
    "BACKENDS",
    "BackendKind",
    "BackendSettings",
    "Finding",
    "as_sentence",
    "backend_forms",
    "backend_help",
    "find_kind",
    "make_backend",
    "remote_backend",
    "replay_backend",
    "server_key",
]
