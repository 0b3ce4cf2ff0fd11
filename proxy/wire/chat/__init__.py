"""Chat Completions.

request       POST /v1/chat/completions -> `ChatRequest`
messages      `messages` -> transcript, with the pairing rules of calls and tool messages
tools         `tools` and `tool_choice`, and the older `functions`
chat_builder  turn events -> chunks and the completion
"""
