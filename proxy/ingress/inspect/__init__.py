"""What happens, for people to look at: the page at `/`, and who follows the turns from a terminal.

turn_log         the last turns, bounded; pure
record           one turn: names and numbers, and its words where they are kept; pure
turn_transcript  what its backend was shown and said, and what left of it
detail           one turn with its words, as JSON in which the call key is masked; pure
heard            a backend that is listened to
feed             who follows the turns, each at a pace of its own
access           who may see it: a key, a link that holds once, a session
inspection       all of this on the application, and one turn's way through it
asking           what the page itself asks: a turn again, a question that wants a tool
page             the routes: the page, its files, the turns as JSON and as an event stream
static           the page itself, as browsers read it
"""

from .inspection import INSPECTION, Inspection, PageOptions, SaveTurn
from .record import TurnRecord, TurnState
from .turn_log import TurnLog
from .turn_transcript import HeardTurn, KeptWords, LeftEvents

__all__ = [
    "INSPECTION",
    "HeardTurn",
    "Inspection",
    "KeptWords",
    "LeftEvents",
    "PageOptions",
    "SaveTurn",
    "TurnLog",
    "TurnRecord",
    "TurnState",
]
