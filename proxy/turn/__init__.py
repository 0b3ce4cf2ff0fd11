"""One turn, from a client's request to what the client may see. Pure: it awaits its backend and nothing else.

compaction    `answer_request`: a turn, and the summary that makes a long conversation short before it
run           `run_turn`: prompt, answer, and the one more answer that some faults are worth
prompting     the prompts, and what becomes of one that is refused
reading       one answer of the model, as it comes: backend events in, turn events out
blocks        what is no whole call, and what a client is told of it
call_key      the key that a call carries when it is meant, and which models write it
calls         which calls may leave: declared, meant, fitting if strict, not going round
masking       the key taken out of what leaves
release       what leaves at once and what is held back, as a table of states
verdict       what an answer was, and what follows from that
passed_calls  the calls of one answer: which of them leave
leaving_call  one that leaves while it is written
own_notation  what only we write, taken out of answers
shown_text    the text of one answer: which of it is shown
visible_text  text on its way to the client, up to a stop string
strictness    the schemas of strict tools
held_calls    the schema of calls that a backend holds its model to
given         what of an answer the client was given
json_output   an answer that has to be JSON
json_stream   the same, told while it is written
tokens        how many tokens a text is, estimated
truncation    a conversation without its oldest part
report        what happened, for logs: no text of anybody
observer      who hears of each block as well
"""

from .call_key import CallKeys, Habits, KeyHabit, KeyHabits, KeyMode, NoHabits
from .compaction import answer_request
from .held_calls import HeldCalls, HoldCalls
from .json_stream import HeldFormats, StreamJson
from .observer import TurnObserver
from .release import CallRelease
from .report import Again, TurnReport
from .run import Aside, TurnOptions, run_turn

__all__ = [
    "Again",
    "Aside",
    "CallKeys",
    "CallRelease",
    "Habits",
    "HeldCalls",
    "HeldFormats",
    "HoldCalls",
    "KeyHabit",
    "KeyHabits",
    "KeyMode",
    "NoHabits",
    "StreamJson",
    "TurnObserver",
    "TurnOptions",
    "TurnReport",
    "answer_request",
    "run_turn",
]
