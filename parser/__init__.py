"""Read tool calls out of a model's text while it is being written.

    text --> SentinelParser.receive_text / receive_eof --> events

shared    grammar        the tags and the one form that prompts teach
          members        which member of a call is which
          events         what the parser reports
          beginnings     what may yet become what a pattern matches
          json_scan, json_text   JSON as text
strict    sentinel       the parser itself: no I/O, append-only, nothing lost, indifferent to how the text is cut
          block          from the open tag of a block to behind its close tag
          live_call      a call in the taught form while it is written
prose     prose          outside of blocks: tags, and white space that is no text
          markdown       what is quoted
repair    body           a block in any other form, collected up to its end
          read_block     such a block as a whole, by the named rules of rules
          relaxed_json   how its JSON may be written
          call_shape     which members its object may have
          foreign        other notations
          placeholders   what stands in the form of a call where a call has something
answers   answer         the parser of an answer that may be nothing but calls, without the tags
          openers        how such an answer begins, as a table
tools     registry       the declared tools, and which of them a name means
"""

from .answer import AnswerParser
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
from .json_scan import BLANKS, ValueScanner, end_of_value
from .json_text import members_of, without_member
from .openers import BARE_ANSWERS, CALL, CALLS, HEADED_ANSWERS, HELD_ANSWERS, Opener
from .registry import Tool, ToolRegistry
from .rules import Rule
from .sentinel import SentinelParser

__all__ = [
    "BARE_ANSWERS",
    "BLANKS",
    "CALL",
    "CALLS",
    "CLOSE_TAG",
    "HEADED_ANSWERS",
    "HELD_ANSWERS",
    "KEY",
    "OPEN_TAG",
    "AnswerParser",
    "CallCompleted",
    "CallMalformed",
    "CallStarted",
    "Opener",
    "ParserEvent",
    "ReadingEnded",
    "Rule",
    "SentinelParser",
    "StrayCloser",
    "Tier",
    "Tool",
    "ToolRegistry",
    "ValueScanner",
    "end_of_value",
    "members_of",
    "without_member",
    "write_call",
]
