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

from .key_value import Append, Change, Drop, KeyValue, Put, Take
from .keyed import KeyedStore
from .memory import MemoryKeyValue
from .sqlite import SqliteKeyValue
from .table import STORES, make_store

__all__ = [
    "STORES",
    "Append",
    "Change",
    "Drop",
    "KeyValue",
    "KeyedStore",
    "MemoryKeyValue",
    "Put",
    "SqliteKeyValue",
    "Take",
    "make_store",
]
