"""Read tool calls out of a model's text while it is being written.

    text --> SentinelParser.receive_text / receive_eof --> events

grammar         the tags and the one form that prompts teach
events          what the parser reports
sentinel        the parser itself: no I/O, append-only, nothing lost, indifferent to how the text is cut
prose           outside of blocks: markdown (what is quoted), tags, segment (white space)
opening         whether a block begins
live_call       a well-formed call while it is written: json_scan, encoded_object, json_text
block_end       where any other block ends
read_block      such a block as a whole, by the named rules: relaxed_json, call_shape, members
report          a repaired call goes on from what was told
registry        the declared tools, and which of them a name means
"""

from .events import (
    ArgumentsDelta,
    CallCompleted,
    CallMalformed,
    CallStarted,
    ParserEvent,
    ReadingEnded,
    StrayCloser,
    TextDelta,
    Tier,
)
from .grammar import CLOSE_TAG, OPEN_TAG, write_call
from .registry import Tool, ToolRegistry
from .sentinel import SentinelParser

__all__ = [
    "CLOSE_TAG",
    "OPEN_TAG",
    "ArgumentsDelta",
    "CallCompleted",
    "CallMalformed",
    "CallStarted",
    "ParserEvent",
    "ReadingEnded",
    "SentinelParser",
    "StrayCloser",
    "TextDelta",
    "Tier",
    "Tool",
    "ToolRegistry",
    "write_call",
]
