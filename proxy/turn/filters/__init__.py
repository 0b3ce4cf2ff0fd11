"""The text of an answer on its way to the client: each filter takes out one thing, however the text is cut.

own_notation   headers and lines of ours, and results that the model made up, at the beginning of a line
masking        the call key
stop_strings   all text from a stop string on
chain          several filters one behind the other, as one

`prompts.Unescaper`, which restores tags that we escaped, is such a filter as well.
"""

from .chain import Chain, TextFilter
from .masking import Mask, masked, places
from .own_notation import LineRule, OwnNotation, headers, invented_results, own_lines
from .stop_strings import StopStrings

__all__ = [
    "Chain",
    "LineRule",
    "Mask",
    "OwnNotation",
    "StopStrings",
    "TextFilter",
    "headers",
    "invented_results",
    "masked",
    "own_lines",
    "places",
]
