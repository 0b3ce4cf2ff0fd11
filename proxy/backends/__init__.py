"""Text backends: what `--backend` can name.

table            which of them a setting means: one row a kind
kind             what a row says
chat             a server that speaks OpenAI's Chat Completions, and knows no tools
codex            the codex app-server as a child, and the words of app-servers
replay           the app-server that plays fixtures
remote           an app-server that is already running
answers          pure: the answer to the client when a backend fails
event_queue      from the reader, who never waits, to the consumer
named_models     pure: the models of --model, in front of the listed ones
session_life     when a session takes turns, and when it may go
supervision      start, start again, retire
restart_policy   pure: when to do so
wrapped          in front of any other, for listeners

The last seven know no word of an app-server's. What only one kind needs is loaded when a backend of that kind is made.
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
