"""The Responses API.

request            POST /v1/responses -> `ResponsesRequest`
input_items        `input` -> transcript, with the pairing rules of calls and outputs
foreign_items      calls and results of tools that ran elsewhere
responses_builder  turn events -> Response events and the Response object
left_output        the output of a Response whose process did not end it
stored_items       `input` as it is kept: ids, types, parts
compaction_items   summaries in place of items
tool_search        a client's search for tools: its call and its output
conversations      bodies of /v1/conversations
pages              lists that are asked for page by page
frames             what Responses over WebSocket have besides events
"""
