"""What handlers find on the application and on a request."""

from __future__ import annotations

import asyncio
from collections import deque

from aiohttp import web

from ..contracts import ResponseStore, TextBackend
from ..turn import TurnOptions
from ..wire.json_body import JsonObject
from ..wire.wire_format import WireFormat
from .activity import Activity
from .admission import Admission
from .key_ring import KeyRing
from .locks import ConversationLocks
from .request_log import RequestLog

ACTIVITY = web.AppKey("activity", Activity)
ADMISSION = web.AppKey("admission", Admission)
CONVERSATION_LOCKS = web.AppKey("conversation_locks", ConversationLocks)
KEYS = web.AppKey("keys", KeyRing)
# The last Responses that could not be stored here, by id: who continues one is told so.
LOST: web.AppKey[deque[str]] = web.AppKey("lost", deque)
# What stands before every path at the address that clients have; "" for nothing.
BASE_PATH = web.AppKey("base_path", str)
BACKEND: web.AppKey[TextBackend] = web.AppKey("backend", TextBackend)
# The dialect that requests are answered in when they ask for none, and whether it watches for loops.
DIALECT = web.AppKey("dialect", str)
LOOP_GUARD = web.AppKey("loop_guard", bool)
# Set when the server is to stop: what waits for its client ends then.
STOPPING = web.AppKey("stopping", asyncio.Event)
# Whether Chat Completions tell the model's reasoning.
REASONING_CONTENT = web.AppKey("reasoning_content", bool)
# Whether the model judges for Claude Code which commands are dangerous.
JUDGES_COMMANDS = web.AppKey("judges_commands", bool)
# Whether results that do not pair with their calls are refused.
STRICT_HISTORY = web.AppKey("strict_history", bool)
STORE: web.AppKey[ResponseStore] = web.AppKey("store", ResponseStore)
TURN_OPTIONS = web.AppKey("turn_options", TurnOptions)
# The header, or the beginning of a comment line, that tells a client what it would not notice.
WARNING = "x-tagcall-warning"
# And one that says in a sentence what came of a turn with tools.
SAID = "x-tagcall-turn"
# How the API writes whose path was asked.
WIRE_FORMAT = web.RequestKey("wire_format", WireFormat)
REQUEST_LOG = web.RequestKey("request_log", RequestLog)
# The newest JSON that came with it, if that is read soon.
SHORT: web.RequestKey[JsonObject] = web.RequestKey("short", dict)
# Whoever puts a list here finds in it what was written to the event stream.
WRITTEN: web.RequestKey[list[bytes]] = web.RequestKey("written", list[bytes])
