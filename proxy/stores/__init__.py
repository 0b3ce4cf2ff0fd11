"""Stores for Responses and conversations.

keyed        a store as keys and values; knows owners, and writes together what belongs together
histories    inputs that share a beginning; it is kept once
records      records as bytes, and back
key_value    the protocol of a place for keys and values, and the places:
  sqlite       a file (`sqlite_file`: whether it is one of ours)
  memory       this process, or nowhere
  redis        a Redis server
journal      Responses that are being made, where processes tell each other nothing of them
  redis_journal, where they follow them and go on with them: streams and a queue
table        the store that a setting names
"""

from .table import make_store

__all__ = ["make_store"]
