"""HTTP: who is let in, where requests go, and how answers leave.

Of every request

    http          the order in which it passes through all this
    connections   how many connections there are, and how long a request's head may take; deadline: its clock
    admission     Host, Origin and key: decided from the head alone, before body and work
    key_ring      the keys, and whose they are; rate_limits: what each may use in a minute
    balancer      what a balancer in front is told: whom to ask instead
    cors          the headers that let Obsidian's renderer read our answers
    bodies        its body, and JSON and errors as HTTP answers
    apis          a row an API: its paths, how a turn begins there, how it writes; claims: whose a request is
    routes        which handler serves a path and a method, and what is not served
    request_log   its line in the log; metrics: what the server does, in counts; exposition: as text for Prometheus
    spans         a span a turn for OpenTelemetry, where the environment asks for it
    loop_lag      how late the event loop is
    activity      how many are being served; state: what handlers find on the application

Of every turn

    delivery      an exchange through one turn to a sink: an event stream, a JSON body, a socket, a background job
    event_stream  one event stream: its head, its writes, its signs of life; subscriptions to what is made elsewhere

By path

    health        what those who watch over the process ask; readiness: whether a turn would be taken
    codex_usage   /api/codex/usage: what is left of the quota, as codex asks for it
    models        /v1/models: the backend's, and the owner's aliases for them
    chat          /v1/chat/completions
    messages      /v1/messages, and what else Anthropic's clients ask for
    ollama        /api, Ollama's own
    responses     /v1/responses; dialects: how another one is chosen there
    history       what a request continues, and what becomes of its own answer: a draft, stored
    background    Responses that are made without their client: jobs, and who takes them over
    following     their events, wherever they are made
    stored        /v1/responses/{id}
    compact       /v1/responses/compact
    input_tokens  /v1/responses/input_tokens
    conversations /v1/conversations; locks: one request at a time on each
    tokligence    /v1/responses in the dialect of tokligence-gateway, and its submit_tool_outputs
    inspect       /: the page that shows what happens, and what it asks for
    websocket     clients that keep a connection and talk on it
"""

from .http import create_app

__all__ = ["create_app"]
