"""The commands, a module each; `main` runs one of the table in `commands` and turns a `UsageError` into one sentence.

serve    the server
login    codex's own login, into the private CODEX_HOME
doctor   checks, each with a next step
setup    login, doctor, a first answer, and what to enter in a plugin
settings the settings in force, and their sources
log      the turns of a running server, a line each
record   the server; it writes each turn as a fixture
replay   fixtures through the whole proxy, compared with their recorded answers
service  starts the server after each login
eval     measures how well a model calls tools
demo     one whole tool loop on recorded answers

command_line reads and checks what was typed, event_loop chooses the loop of a server,
progress shows a line on a terminal meanwhile, obsidian lists the values to enter in a client,
shaping names the settings that a recording depends on.
"""

from .main import main

__all__ = ["main"]
