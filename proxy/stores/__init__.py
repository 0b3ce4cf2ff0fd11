"""Where Responses are kept for `previous_response_id`, `item_reference` and GET.

memory   in this process, the newest only
sqlite   in a file
none     nowhere
table    which of them a setting means
"""

from .table import make_store

__all__ = ["make_store"]
