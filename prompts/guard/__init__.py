"""The quote guard: whether a call is a quotation from the request.

quotes         the guard itself
copies         what a model may write when it copies from a request
quoted_blocks  the calls that can be read from such a text
budget         what that may cost
presence       whether one word stands anywhere in a request
"""

from .copies import untrusted_strings
from .presence import holds_word
from .quotes import QuoteGuard

__all__ = ["QuoteGuard", "holds_word", "untrusted_strings"]
