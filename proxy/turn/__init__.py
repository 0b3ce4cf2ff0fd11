"""One turn, from a client's request to what the client may see. Pure: it awaits its backend and nothing else.

summary_turn   `answer_request`: a turn, and the summary that makes a long conversation short before it
run            `run_turn`: prompt, answer, and the one more answer that some faults are worth
prompting      the prompts, what their answers are held to, and what becomes of one that is refused
reading        one answer of the model, as it comes: backend events in, turn events out
passed_calls   the calls of one answer: which of them leave
lane_end       whether the conversation can go on at the backend from the answer
plan           all that is decided before the first word, and what each attempt is for
shown_text     the text of one answer: which of it is shown, and its end, which says where a block stands
verdict        what an answer was, and what follows from that
calls          which calls may leave: declared, meant, fitting if strict, not going round
json_output    an answer that has to be JSON, and what of it may stand beside calls
json_stream    the same, while it is written
outlet         what leaves at once and what is kept back, and why; what of the text has left, and the reasoning
reason         why something is kept back, taken out or asked for once more, and what becomes of a block
blocks         what is no whole call, and calls that are text; what a client is told of them
offload        what of all this is done where it holds up nobody else
held_calls     which calls a backend is asked to hold its model to
key_rule       what a call is worth by the key that it carries
turn_key       the key itself, and what a call carries in its place
key_habits     which models write it
read_call      a whole call, where it stands, and whether it is shown
filters        what of a text is taken out on its way to the client, and restored
spent          how much of a turn's answers is read, and what they cost
sentence       what came of a turn, in one sentence for people
block_note     what became of a block, by names, and who hears of it
report         what happened, for logs: no text of anybody
"""

from .block_note import BlockNote, TurnObserver
from .held_calls import HeldCalls, HoldCalls
from .json_stream import HeldFormats, StreamJson
from .key_habits import FixedHabit, Habits, KeyHabit, KeyHabits, Known, Speaker
from .offload import Offload
from .outlet import CallRelease
from .plan import EmptyAnswers, TurnOptions
from .reason import Fate, Reason, Ruling
from .report import Count, TurnReport
from .run import run_turn
from .sentence import calls_left, fault_of, in_words, reason_in_words, sentence_of
from .summary_turn import answer_request
from .turn_key import CallKeys, KeyMode

__all__ = [
    "BlockNote",
    "CallKeys",
    "CallRelease",
    "Count",
    "EmptyAnswers",
    "Fate",
    "FixedHabit",
    "Habits",
    "HeldCalls",
    "HeldFormats",
    "HoldCalls",
    "KeyHabit",
    "KeyHabits",
    "KeyMode",
    "Known",
    "Offload",
    "Reason",
    "Ruling",
    "Speaker",
    "StreamJson",
    "TurnObserver",
    "TurnOptions",
    "TurnReport",
    "answer_request",
    "calls_left",
    "fault_of",
    "in_words",
    "reason_in_words",
    "run_turn",
    "sentence_of",
]
