"""HTTP: who is let in, where requests go, and how answers leave.

activity    how many requests are being served
admission   Host, Origin and key: decided from the head alone, before body and work
cors        the headers that let Obsidian's renderer read our answers
replies     errors and JSON as HTTP answers
stream      one event stream: its head, its writes, its signs of life
exchange    a request through one turn to an event stream or a JSON body
responses   POST /v1/responses
history     stored Responses: what a request continues, and what becomes of its own
routes      which handler serves a path and a method
http        the order in which a request passes through all this
"""

from .http import create_app

__all__ = ["create_app"]
