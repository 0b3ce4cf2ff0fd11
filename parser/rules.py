"""The rules that help a block to be read as a call, by stage and in order of use.

A rule applies only where there is one reading. Its name is what `CallCompleted.repairs` reports.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Self


class Stage(Enum):
    FRAME = "What stands round the JSON."
    TOKENS = "How the JSON is written."
    SHAPE = "Which members the object has."


class Rule(StrEnum):
    """The value is the name; `stage` says where it belongs."""

    stage: Stage

    def __new__(cls, name: str, stage: Stage) -> Self:
        rule = str.__new__(cls, name)
        rule._value_ = name
        rule.stage = stage
        return rule

    BARE_ANSWER = "bare-answer", Stage.FRAME
    FENCED_ANSWER = "fenced-answer", Stage.FRAME
    HEADED_ANSWER = "headed-answer", Stage.FRAME
    TAG_SPELLING = "tag-spelling", Stage.FRAME
    DOUBLED_OPENER = "doubled-opener", Stage.FRAME
    UNCLOSED = "unclosed", Stage.FRAME
    FENCE = "fence", Stage.FRAME
    FOREIGN_NOTATION = "foreign-notation", Stage.FRAME
    NAME_IN_TAG = "name-in-tag", Stage.FRAME
    KEY_IN_FRONT = "key-in-front", Stage.FRAME
    CALL_AS_STRING = "call-as-string", Stage.FRAME
    ESCAPED_JSON = "escaped-json", Stage.FRAME
    SEVERAL_OBJECTS = "several-objects", Stage.FRAME
    EXTRA_CLOSERS = "extra-closers", Stage.FRAME
    OTHER_CLOSE_TAG = "other-close-tag", Stage.FRAME
    TRAILING_TEXT = "trailing-text", Stage.FRAME

    DOUBLED_BRACES = "doubled-braces", Stage.TOKENS
    TRAILING_COMMA = "trailing-comma", Stage.TOKENS
    MISSING_COMMA = "missing-comma", Stage.TOKENS
    MISSING_CLOSERS = "missing-closers", Stage.TOKENS
    COMMENTS = "comments", Stage.TOKENS
    OTHER_SPACES = "other-spaces", Stage.TOKENS
    PYTHON_LITERALS = "python-literals", Stage.TOKENS
    SINGLE_QUOTES = "single-quotes", Stage.TOKENS
    CURLY_QUOTES = "curly-quotes", Stage.TOKENS
    TRIPLE_QUOTES = "triple-quotes", Stage.TOKENS
    UNQUOTED_KEYS = "unquoted-keys", Stage.TOKENS
    CONTROL_CHARACTERS = "control-characters", Stage.TOKENS
    ESCAPED_APOSTROPHE = "escaped-apostrophe", Stage.TOKENS
    INVALID_ESCAPES = "invalid-escapes", Stage.TOKENS
    INNER_QUOTES = "inner-quotes", Stage.TOKENS
    UNESCAPED_OBJECT = "unescaped-object", Stage.TOKENS

    ARRAY_OF_CALLS = "array-of-calls", Stage.SHAPE
    WRAPPER_OBJECT = "wrapper-object", Stage.SHAPE
    NESTED_CALL = "nested-call", Stage.SHAPE
    ALIAS_KEYS = "alias-keys", Stage.SHAPE
    MISSING_ARGUMENTS = "missing-arguments", Stage.SHAPE
    NULL_ARGUMENTS = "null-arguments", Stage.SHAPE
    EMPTY_ARGUMENTS = "empty-arguments", Stage.SHAPE
    DOUBLE_ENCODED = "double-encoded", Stage.SHAPE
