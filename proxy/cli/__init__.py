"""The commands, a module each; `main` runs one of the table in `commands` and turns a `UsageError` into one sentence.

serve    the server
login    log the private CODEX_HOME in, by codex's own login
doctor   what works and what to do about what does not
setup    login, doctor, a first answer, and what to enter in a plugin
settings what is in force, and where it came from
log      the turns of a running server, a line each
record   the server, which writes each turn as a fixture
replay   fixtures through the whole proxy, held against what they promise
service  the server after each login, by the system itself
eval     whether a model calls tools rightly, as a table
demo     one whole tool loop on recorded answers

command_line is what was typed and what is wrong with it, event_loop what a server runs on,
progress is what a terminal shows meanwhile, obsidian what there is to enter in a client,
shaping the settings that a recording depends on.
"""

from .main import main

__all__ = ["main"]
