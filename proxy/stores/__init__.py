"""Where Responses and conversations are kept, and what that stands on.

keyed        a store as keys and values: what is written together, and whose it is
histories    inputs that begin alike, of which the beginning is kept once
records      records as bytes, and back
key_value    what such a store needs of a place, and the places:
  sqlite       a file (`sqlite_file`: whether it is one of ours)
  memory       this process, or nowhere
  redis        a Redis server
journal      Responses that are being made, where processes tell each other nothing of them
  redis_journal, where they follow them and go on with them: streams and a queue
table        which of them a setting means
"""

from .table import make_store

__all__ = ["make_store"]
