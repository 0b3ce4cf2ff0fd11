"""What handlers find on the application and on a request."""

from __future__ import annotations

from aiohttp import web

from ..contracts import ResponseStore, TextBackend
from ..turn import TurnOptions
from .activity import Activity
from .admission import Admission
from .request_log import RequestLog

ACTIVITY = web.AppKey("activity", Activity)
ADMISSION = web.AppKey("admission", Admission)
BACKEND: web.AppKey[TextBackend] = web.AppKey("backend", TextBackend)
STORE: web.AppKey[ResponseStore] = web.AppKey("store", ResponseStore)
TURN_OPTIONS = web.AppKey("turn_options", TurnOptions)
REQUEST_LOG = web.RequestKey("request_log", RequestLog)
