"""The OpenAI wire, pure: requests in, events and bodies out.

json_body           bytes of a request -> JSON value, with the limits that keep it harmless
reader              typed reads from a JSON object, with OpenAI's error for each kind of fault
tools               `tools` and `tool_choice` -> registry and choice
custom_tools        tools of free text, as functions of one string
content             a string or parts -> text and images
files               files inside a request -> text
input_items         `input` -> transcript, with the pairing rules of calls and outputs
metadata            `metadata` of responses and conversations
responses_request   POST /v1/responses -> `ResponsesRequest`
stored_items        `input` as it is kept: ids, types, parts
compaction          summaries in place of items
conversations       bodies of /v1/conversations
pages               lists that are asked for page by page
chat_tools          `tools` and `tool_choice` of Chat Completions, and the older `functions`
chat_messages       `messages` -> transcript, with the pairing rules of calls and tool messages
chat_request        POST /v1/chat/completions -> `ChatRequest`
models              the model list
builder             what makes an API's own events of a turn's
response_items      the output items of a Response, while they are being built
responses           turn events -> Response events and the Response object, by one builder
chat                turn events -> chunks and the completion, by one builder
socket_frames       what Responses over WebSocket have besides events
realtime_words      how the two versions of Realtime name things
realtime_items      the items of a Realtime conversation
realtime_session    what a session is set to, and the turn that answers it
realtime            turn events -> Realtime events
tokligence_request  requests in the dialect of tokligence-gateway -> of the Responses API
tokligence          turn events -> events of that dialect
loop_guard          identical results in a row
sse                 events -> bytes of an event stream
ids                 the ids we mint
"""
