"""One turn, from a client's request to what the client may see. Pure: it awaits its backend and nothing else.

options     what the owner of the proxy chose
report      what happened, for logs: no text of anybody
calls       which calls may leave: declared, not quoted, fitting if strict, not asked and answered before
prompting   the prompts, and what becomes of one that is refused
text        text on its way to the client
strictness  the schemas of strict tools
json_output an answer that has to be JSON
stops       stop strings
tokens      how many tokens a text is, estimated
truncation  a conversation without its oldest part
answer      one answer of the model, read into turn events
run         `run_turn`: prompt, answer, and the one more answer that some faults are worth
"""

from .options import CallRelease, TurnOptions
from .report import TurnReport
from .run import run_turn

__all__ = ["CallRelease", "TurnOptions", "TurnReport", "run_turn"]
