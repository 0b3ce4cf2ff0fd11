"""HTTP: who is let in, where requests go, and how answers leave.

connections how many connections there are, and how long a request's head may take
activity    how many requests are being served
admission   Host, Origin and key: decided from the head alone, before body and work
cors        the headers that let Obsidian's renderer read our answers
replies     errors and JSON as HTTP answers
stream      one event stream: its head, its writes, its signs of life
exchange    a request through one turn to an event stream or a JSON body
responses   POST /v1/responses
dialects    in which dialect it answers
tokligence  the dialect of tokligence-gateway, and POST /v1/responses/{id}/submit_tool_outputs
websocket   clients that keep a connection and talk on it
chat        POST /v1/chat/completions
metrics     what the server does, as numbers
models      the backend's models, and the owner's aliases for them
unserved    what of OpenAI's API is not here, and what to do instead
history     what a request continues, and what becomes of its own answer
drafts      a Response that is being made, and what it is stored as
claims      one request at a time on a conversation
background  Responses that are made without their client
following   an event stream of events that are made elsewhere
stored      /v1/responses/{id}
conversations  /v1/conversations
compaction  POST /v1/responses/compact
input_tokens  POST /v1/responses/input_tokens
routes      which handler serves a path and a method
http        the order in which a request passes through all this
"""

from .http import create_app

__all__ = ["create_app"]
