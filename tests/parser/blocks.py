"""Calls for answers, and what the parser makes of an answer however it is cut."""

from __future__ import annotations

from tests.parser.reading import Answer, answer_of, cut, read

BODY = '{"name": "r", "arguments": {"p": "a.md"}}'
CALL = f"<tool_call>{BODY}</tool_call>"
R = ("r", '{"p": "a.md"}')


def block(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


def arguments(text: str) -> str:
    return block(f'{{"name": "r", "arguments": {text}}}')


def every_size(text: str) -> list[Answer]:
    return [answer_of(read(cut(text, size))) for size in (1, 2, 3, 7, 16, 0)]
