"""The wire, pure: requests in, events and bodies out. A room an API, and what they share.

json_body     bytes of a request -> JSON value, with the limits that keep it harmless
reader        typed reads from a JSON object, with OpenAI's error for each kind of fault
read_on       items of a conversation behind those that came before
tools         `tools` and `tool_choice` -> registry and choice
custom_tools  tools of free text, as functions of one string
content       a string or parts -> text and images; files as text
pdf           the text of a PDF
pairing       pairs each result with its call
shape         the form of a request's members, as data
parameters    the parameters of both of OpenAI's APIs, in one table
models        the model list
builder       makes an API's events from the events of a turn
passage       text that leaves in pieces, its paragraphs apart
output        items that open, grow and close, for all builders with items
sse           events -> bytes of an event stream
wire_format   how an API writes its streams and its errors

Each room has `request` (bodies -> the request of a turn) and `builder` (turn events -> its events and its body):

responses     POST /v1/responses, what is kept of it, and its events over SSE and WebSocket
chat          POST /v1/chat/completions
anthropic     POST /v1/messages
ollama        POST /api/chat and /api/generate
realtime      GET /v1/realtime, in text
tokligence    the dialect of tokligence-gateway
"""
