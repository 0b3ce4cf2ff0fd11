"""Read tool calls out of a model's text while it is being written.

    text --> SentinelParser.receive_text / receive_eof --> events

grammar         the tags and the one form that prompts teach
events          what the parser reports
sentinel        the parser itself: no I/O, append-only, nothing lost, indifferent to how the text is cut
prose           outside of blocks: markdown (what is quoted), tags, segment (white space)
block           from the open tag of a block to behind its close tag
opening         whether a block begins
live_call       a well-formed call while it is written: json_scan, encoded_object, json_text
body            any other block, collected up to its end: block_end
read_block      such a block as a whole, by the named rules: tag_attributes; foreign; relaxed_json with relaxed_scalar
                and string_ends; call_shape, members
reconcile       a repaired call goes on from what was told
bare_answer     another parser, for answers that are nothing but a call without its tags
registry        the declared tools, and which of them a name means
coercion        arguments as a tool's schema wants them
"""

from .bare_answer import BareAnswerParser
from .coercion import Coerced, Coercion, Doubtful, coerce, fit, read_parameter_types
from .events import (
    CallCompleted,
    CallMalformed,
    CallStarted,
    ParserEvent,
    ReadingEnded,
    StrayCloser,
    Tier,
)
from .grammar import CLOSE_TAG, KEY, OPEN_TAG, write_call
from .registry import Tool, ToolRegistry
from .rules import Rule
from .sentinel import SentinelParser

__all__ = [
    "CLOSE_TAG",
    "KEY",
    "OPEN_TAG",
    "BareAnswerParser",
    "CallCompleted",
    "CallMalformed",
    "CallStarted",
    "Coerced",
    "Coercion",
    "Doubtful",
    "ParserEvent",
    "ReadingEnded",
    "Rule",
    "SentinelParser",
    "StrayCloser",
    "Tier",
    "Tool",
    "ToolRegistry",
    "coerce",
    "fit",
    "read_parameter_types",
    "write_call",
]
