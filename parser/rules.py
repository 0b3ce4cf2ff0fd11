"""The rules that help a block to be read as a call, by stage and in order of use.

A rule applies only where there is one reading. Its name is what `CallCompleted.repairs` reports.
"""

from __future__ import annotations

from enum import StrEnum


class Rule(StrEnum):
    """The value is the name."""

    # What stands round the JSON.
    BARE_ANSWER = "bare-answer"
    FENCED_ANSWER = "fenced-answer"
    HEADED_ANSWER = "headed-answer"
    TAG_SPELLING = "tag-spelling"
    DOUBLED_OPENER = "doubled-opener"
    UNCLOSED = "unclosed"
    FENCE = "fence"
    FOREIGN_NOTATION = "foreign-notation"
    NAME_IN_TAG = "name-in-tag"
    KEY_IN_FRONT = "key-in-front"
    CALL_AS_STRING = "call-as-string"
    ESCAPED_JSON = "escaped-json"
    SEVERAL_OBJECTS = "several-objects"
    EXTRA_CLOSERS = "extra-closers"
    OTHER_CLOSE_TAG = "other-close-tag"
    TRAILING_TEXT = "trailing-text"

    # How the JSON is written.
    DOUBLED_BRACES = "doubled-braces"
    TRAILING_COMMA = "trailing-comma"
    MISSING_COMMA = "missing-comma"
    MISSING_CLOSERS = "missing-closers"
    COMMENTS = "comments"
    OTHER_SPACES = "other-spaces"
    PYTHON_LITERALS = "python-literals"
    SINGLE_QUOTES = "single-quotes"
    CURLY_QUOTES = "curly-quotes"
    TRIPLE_QUOTES = "triple-quotes"
    UNQUOTED_KEYS = "unquoted-keys"
    CONTROL_CHARACTERS = "control-characters"
    ESCAPED_APOSTROPHE = "escaped-apostrophe"
    INVALID_ESCAPES = "invalid-escapes"
    INNER_QUOTES = "inner-quotes"
    UNESCAPED_OBJECT = "unescaped-object"

    # Which members the object has.
    ARRAY_OF_CALLS = "array-of-calls"
    WRAPPER_OBJECT = "wrapper-object"
    NESTED_CALL = "nested-call"
    ALIAS_KEYS = "alias-keys"
    MISSING_ARGUMENTS = "missing-arguments"
    NULL_ARGUMENTS = "null-arguments"
    EMPTY_ARGUMENTS = "empty-arguments"
    DOUBLE_ENCODED = "double-encoded"
