"""The quote guard: whether a call is a quotation from the request.

quotes         the guard itself
zones          where in the request a call stands, by which it is judged
readable       the calls that can be read from one part of the request
copies         in what order a model may copy its strings
suspicion      whether a text may hold a tag at all
decodings      how a copy may spell a text, and what that may be an encoding of
lines          what programs put round each line
characters     which characters a copy takes for others, or loses
quoted_blocks  the calls that can be read from such a text
bare_calls     those that stand in it as JSON, without tags
mentions       whether a text that is too much to read may hold a call
budget         what that may cost
presence       whether one word stands anywhere in a request
"""

from .copies import untrusted_strings
from .presence import holds_word
from .quotes import QuoteGuard

__all__ = ["QuoteGuard", "holds_word", "untrusted_strings"]
