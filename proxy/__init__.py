"""The proxy: an OpenAI endpoint in front of a text-only backend.

    http request -> ingress -> wire.parse_* -> turn.run_turn -> backends -> rpc -> app-server
                                                    |
    http answer  <- ingress <- wire builder <-------'

contracts   what the layers tell each other: events and protocols
ids         new ids, and the form that the id of a call may have
api_keys    the keys that clients send, as their owner writes them down
tracing     the trace context that a request brings along
quota       the rest of an account's quota
errors      every error and the answer it gives
settings    one table for flags, environment, help and docs
sources     where settings come from
setting_values  the text of a setting as a value
tokens      how many tokens a text is, estimated
schema      pure: checks a value against a JSON schema, in bounded steps; makes arguments fit where that loses nothing
wire        pure: reads requests, and makes events and bodies
turn        pure: one turn, from request to answer; decides what the client sees, and when
rpc         JSON-RPC lines, over stdio or WebSocket
backends    codex, chat servers, replay, remote: one row a kind
stores      where Responses are kept
replay      the small app-server that plays fixtures
ingress     HTTP: access, routes, streams
offload_threads  long work in threads, beside the event loop
advice      commands as the user can type them
near_names  the name that somebody meant who wrote another one
one_run     environments for one run, such as those of `uvx`
port_owner  the program that listens on a port
plugins     the values to enter in a plugin
trial       a question that wants one tool call
version     the version of this tagcall
folders     where files are kept
home        the secret of the call keys, and which models write them
server      makes a running server from settings
logs        one harmless line an event
cli         the commands
launcher    the command of an installed wheel; as_module: `python -m tagcall` there
pytest_plugin  recorded answers for the tests of others
"""
