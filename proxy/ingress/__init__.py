"""HTTP: who is let in, where requests go, and how answers leave.

Of every request

    http          the order in which it passes through all this
    connections   how many connections there are, and how long a request's head may take
    admission     Host, Origin and key: decided from the head alone, before body and work
    cors          the headers that let Obsidian's renderer read our answers
    bodies        its body, and JSON and errors as HTTP answers
    routes        which handler serves a path and a method; unserved: what of OpenAI's API is not here
    request_log   its line in the log; metrics: what the server does, as numbers
    activity      how many are being served; state: what handlers find on the application

Of every turn

    exchange      a request through one turn to an event stream or a JSON body
    event_stream  one event stream: its head, its writes, its signs of life; subscriptions to what is made elsewhere
    models        the backend's models, and the owner's aliases for them

By path

    chat          /v1/chat/completions
    responses     /v1/responses
    history       what a request continues, and what becomes of its own answer: a draft, stored
    background    Responses that are made without their client
    stored        /v1/responses/{id}
    compaction    /v1/responses/compact
    input_tokens  /v1/responses/input_tokens
    conversations /v1/conversations; locks: one request at a time on each
    dialects      in which dialect is answered; tokligence: that of tokligence-gateway
    websocket     clients that keep a connection and talk on it
"""

from .http import create_app

__all__ = ["create_app"]
