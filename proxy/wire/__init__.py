"""The OpenAI wire, pure: requests in, events and bodies out.

json_body           bytes of a request -> JSON value, with the limits that keep it harmless
reader              typed reads from a JSON object, with OpenAI's error for each kind of fault
tools               `tools` and `tool_choice` -> registry and choice
input_items         `input` -> transcript, with the pairing rules of calls and outputs
responses_request   POST /v1/responses -> `ResponsesRequest`
models              the model list
builder             what makes an API's own events of a turn's
responses           turn events -> Response events and the Response object, by one builder
sse                 events -> bytes of an event stream
ids                 the ids we mint
"""
