"""The wire, pure: requests in, events and bodies out. A room an API, and what they share.

json_body     bytes of a request -> JSON value, with the limits that keep it harmless
reader        typed reads from a JSON object, with OpenAI's error for each kind of fault
tools         `tools` and `tool_choice` -> registry and choice
custom_tools  tools of free text, as functions of one string
content       a string or parts -> text and images; files as text
pdf           the text of a PDF
pairing       results that do not pair with their calls, made to
shape         what a member of a request may be, as data
parameters    the parameters of both of OpenAI's APIs, in one table
models        the model list
builder       what makes an API's own events of a turn's
output        items that open, grow and close: what the builders with items share
sse           events -> bytes of an event stream
wire_format   how an API writes its streams and its errors

Each room has `request` (bodies -> what is wanted of the turn) and `builder` (turn events -> its events and its body):

responses     POST /v1/responses, what is kept of it, and its events over SSE and WebSocket
chat          POST /v1/chat/completions
anthropic     POST /v1/messages
ollama        POST /api/chat and /api/generate
realtime      GET /v1/realtime, in text
tokligence    the dialect of tokligence-gateway
"""
