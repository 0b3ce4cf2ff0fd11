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
"""
