"""What the model is shown, and the way back out of it. No I/O but reading the templates at import.

Transcript + ToolRegistry + ToolChoice --> render_turn --> RenderedTurn(developer, parts; head, items)

transcript    a conversation as plain values
render        one turn: client instructions, guidance and tool block; conversation; closing lines
conversation  messages, past calls and results as one text in which only we write headers
headers       what begins a message in either
items         the same as messages of their own, each with a digest of what it says
deferred      either form, made when somebody looks at it; recent: what was made lately, looked up
beginnings    what was made of the beginning of a conversation; outline: what is known of it without its words
tool_block    the tool block: frame, tools, rules; form, worked example, key
key_mask      what stands in place of the key in all that leaves, and whether the key stands in what was sent
profiles      which optional lines a kind of model is given, and which rules are kept for it
passages      the words, in templates/*.txt
truncation    a conversation without its oldest part, where all of it is too long
summary       a summary: how it is asked for, and what it stands for
repair        the one line that a second attempt is given
escape        tags in untrusted text made harmless, and the way back, streamed too
canonical     when two calls are the same, and which one a conversation goes round in
grounds       what a call right behind results can stand on
quotation     whether a call without the key is one: by where it stands, and by its words
spelling      what a text says, however it is spelled
"""

from .beginnings import Beginnings, Begun
from .canonical import canonical, looping_calls
from .conversation import shows_header
from .deferred import Deferred
from .escape import (
    JsonUnescaper,
    Unescaper,
    escape,
    escape_json,
    indent,
    normalise_newlines,
    unescape,
    unescape_json,
)
from .grounds import Grounds
from .items import Item, OwnLine, as_one_round, meaning_of_answer, meanings_of_answer
from .key_mask import KEY_LENGTH, MASK, holds_word, was_sent
from .outline import Outline, characters_sent, outline_of
from .passages import already_offered, no_longer_offered, no_result, no_tools, nothing_said
from .profiles import FRONTIER, PROFILES, SMALL, ModelRule, PromptProfile
from .quotation import BLOCK, CONTEXT, CallWords, Place, SentWords
from .recent import RecentlyMade
from .render import RenderedTurn, render_turn, text_before_key
from .repair import (
    answer_now,
    answer_unless_open,
    arguments_misfit,
    call_forbidden,
    call_in_output,
    call_missing,
    call_without_key,
    named_call_missing,
    newest_results,
    output_misfit,
    result_repeated,
    tool_unfound,
    unusable_markup,
    write_held,
)
from .spelling import essence
from .summary import compacted, compaction_request, summarised, to_sum_up
from .tool_block import offered_tools, show_tools
from .transcript import (
    DETAILS,
    AssistantText,
    ChoiceMode,
    Entry,
    Guidance,
    Image,
    JsonAnswer,
    Part,
    PastCall,
    Text,
    ToolChoice,
    ToolResult,
    Transcript,
    UserTurn,
    bytes_taken,
    strings_of_tools,
    texts_of,
    untrusted_strings,
)
from .truncation import without_oldest

__all__ = [
    "BLOCK",
    "CONTEXT",
    "DETAILS",
    "FRONTIER",
    "KEY_LENGTH",
    "MASK",
    "PROFILES",
    "SMALL",
    "AssistantText",
    "Beginnings",
    "Begun",
    "CallWords",
    "ChoiceMode",
    "Deferred",
    "Entry",
    "Grounds",
    "Guidance",
    "Image",
    "Item",
    "JsonAnswer",
    "JsonUnescaper",
    "ModelRule",
    "Outline",
    "OwnLine",
    "Part",
    "PastCall",
    "Place",
    "PromptProfile",
    "RecentlyMade",
    "RenderedTurn",
    "SentWords",
    "Text",
    "ToolChoice",
    "ToolResult",
    "Transcript",
    "Unescaper",
    "UserTurn",
    "already_offered",
    "answer_now",
    "answer_unless_open",
    "arguments_misfit",
    "as_one_round",
    "bytes_taken",
    "call_forbidden",
    "call_in_output",
    "call_missing",
    "call_without_key",
    "canonical",
    "characters_sent",
    "compacted",
    "compaction_request",
    "escape",
    "escape_json",
    "essence",
    "holds_word",
    "indent",
    "looping_calls",
    "meaning_of_answer",
    "meanings_of_answer",
    "named_call_missing",
    "newest_results",
    "no_longer_offered",
    "no_result",
    "no_tools",
    "normalise_newlines",
    "nothing_said",
    "offered_tools",
    "outline_of",
    "output_misfit",
    "render_turn",
    "result_repeated",
    "show_tools",
    "shows_header",
    "strings_of_tools",
    "summarised",
    "text_before_key",
    "texts_of",
    "to_sum_up",
    "tool_unfound",
    "unescape",
    "unescape_json",
    "untrusted_strings",
    "unusable_markup",
    "was_sent",
    "without_oldest",
    "write_held",
]
