"""The proxy: an OpenAI endpoint in front of a text-only backend.

    http request -> ingress -> wire.parse_* -> turn.run_turn -> backends -> rpc -> app-server
                                                    |
    http answer  <- ingress <- wire builder <-------'

contracts   what the layers tell each other: events and protocols
ids         the ids we mint, and what the id of a call may be
api_keys    the keys that clients send, as their owner writes them down
tracing     by what a request is known in the traces of who sent it
quota       what is left of an account's quota
errors      every error and the answer it gives
settings    one table for flags, environment, help and docs
sources     where settings come from
setting_values  what their texts stand for
schema      pure: whether a value fits a JSON schema, told in bounds
wire        pure: requests in, events and bodies out
turn        pure: one turn, from request to answer; what the client may see and when
rpc         JSON-RPC lines, over stdio or WebSocket
backends    codex, chat servers, replay, remote: one row a kind
stores      where Responses are kept
replay      the small app-server that plays fixtures
ingress     HTTP: who is let in, routes, streams
offload_threads  work that takes long, beside the event loop
advice      how a person starts our commands
one_run     environments that last one run, as those of `uvx`
port_owner  who has a port that is taken
plugins     what to enter in a plugin
trial       a question that wants one tool call
version     which tagcall this is
folders     where files are kept
home        the secret of the call keys, and which models write them
server      settings to a running server
logs        one harmless line an event
cli         the commands
launcher    the command of an installed wheel; as_module: `python -m tagcall` there
pytest_plugin  recorded answers for the tests of others
"""
