"""WebSockets: clients that keep a connection and talk on it.

socket      a connection: its messages, its writes, its signs of life, its end
responses   GET /v1/responses with Upgrade: the events of POST /v1/responses, request after request,
            and what was said on a connection in front of the store
realtime    GET /v1/realtime: a conversation that the server keeps for as long as the connection is open
"""
