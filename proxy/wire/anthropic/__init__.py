"""Anthropic's Messages.

request            POST /v1/messages and its count_tokens -> `MessagesRequest`
blocks             `messages` -> transcript: blocks of every kind
tools              `tools` and `tool_choice`
anthropic_builder  turn events -> events and the message
errors             its error bodies
models             its form of the model list
"""
