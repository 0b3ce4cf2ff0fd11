"""The way of a request: Host, Origin, preflight, key, route, log line."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from ..backends import find_kind
from ..contracts import ResponseStore, TextBackend
from ..errors import ApiError, RequestError
from ..ids import mint_id
from ..tracing import CLIENT_REQUEST, CURRENT, trace_of
from ..turn import TurnOptions, sentence_of
from .activity import Activity
from .admission import OWNER, Admission, owner_of
from .apis import Api, api_of
from .balancer import asks, second_try
from .bodies import error_reply, fault, from_aiohttp
from .connections import asks_through, connection_of
from .cors import answer_headers, preflight_headers
from .health import greet
from .inspect import INSPECTION, Inspection, PageOptions, TurnLog
from .inspect.access import PageAccess
from .inspect.page import ROOM, check_page, visits_index
from .key_ring import KeyRing
from .loop_lag import LoopLag
from .metrics import METRICS, Metrics
from .models import MODELS, ModelList
from .rate_limits import RATE_LIMITS, RateLimits
from .readiness import READINESS, Readiness
from .request_log import RequestLog, client_name, log, plain
from .routes import KEYLESS, call_handler, canonical_path
from .spans import add_spans
from .state import (
    ACTIVITY,
    ADMISSION,
    BACKEND,
    BASE_PATH,
    DIALECT,
    JUDGES_COMMANDS,
    KEYS,
    LOOP_GUARD,
    LOST,
    REASONING_CONTENT,
    REQUEST_LOG,
    SAID,
    STOPPING,
    STORE,
    STRICT_HISTORY,
    TURN_OPTIONS,
    WARNING,
    WIRE_FORMAT,
)
from .tokligence import WAITING, WaitingResponses

# Responses that could not be stored, and are remembered.
MOST_LOST = 10_000

# Characters of the sentence on a turn in its header, and of its warnings: clients refuse a line of 8,190, and nginx a
# head of 4,096.
MOST_SAID = 1000
MOST_WARNED = 2000

# The version of the API that OpenAI names in each answer.
OPENAI_VERSION = "2020-10-01"

# Characters of a client's name for its request: OpenAI refuses more, and what is not ASCII.
MAX_CLIENT_REQUEST = 512


def _check_client_id(request: web.Request) -> None:
    given = request.headers.get(CLIENT_REQUEST, "")
    if len(given) > MAX_CLIENT_REQUEST or not given.isascii():
        raise RequestError(
            f"Invalid '{CLIENT_REQUEST}' header: expected at most {MAX_CLIENT_REQUEST} ASCII characters.",
            code="invalid_value",
            param=CLIENT_REQUEST,
        )


async def _admitted(request: web.Request, api: Api, path: str) -> web.StreamResponse:
    """The answer to a request, or the error that keeps it out."""
    app, headers = request.app, request.headers
    admission = app[ADMISSION]
    admission.check_host(headers.get("Host", ""))
    if not request.raw_path.startswith("/"):
        admission.check_host(_authority(request))  # the target may name another one
    if path.startswith(ROOM):
        check_page(request, path)
        return await call_handler(request, api, path)
    if not visits_index(request, path):
        admission.check_origin(headers.getall("Origin", []), headers.get("Sec-Fetch-Site", "none"))
    if request.method == "OPTIONS":
        return web.Response(status=204, headers=preflight_headers(headers))
    if path not in KEYLESS:
        admission.check_key(headers)
        _check_client_id(request)
        request[OWNER] = owner = owner_of(request)
        request[REQUEST_LOG].came_from(app[KEYS].name_of(owner))
    return await call_handler(request, api, path)


async def _answered(request: web.Request, path: str, too_many: ApiError | None) -> web.StreamResponse:
    """The answer to a request, whatever happens, as its API writes it. `too_many`: its client has no room for it."""
    api = api_of(request, path)
    request[WIRE_FORMAT] = api.format
    try:
        if too_many is not None:
            raise too_many  # noqa: TRY301 -- one place tells every error
        return await _admitted(request, api, path)
    except ApiError as error:
        refused = error
    except web.HTTPException as error:
        refused = from_aiohttp(error)
    except Exception:  # noqa: BLE001 -- the last line of defence: logged with its trace, answered without it
        log.exception("request_fault", id=request[REQUEST_LOG].id)
        refused = fault()
    request[REQUEST_LOG].failed_with(refused)
    return error_reply(refused, api.format, request[REQUEST_LOG].id)


def _authority(request: web.Request) -> str:
    """Of the target, as a Host header has it: yarl leaves out the brackets of an IPv6 address."""
    url = request.url
    return f"[{url.host}]" if url.host and ":" in url.host else url.authority


@web.middleware
async def dispatch(request: web.Request, handler: object) -> web.StreamResponse:
    """Every request comes through here, whatever its path; what happens leaves as a body of its API and one log line.

    aiohttp's own router is left out: it answers some targets as plain text before a handler is found.
    """
    app, headers = request.app, request.headers
    path = canonical_path(request.path, app[BASE_PATH])
    origin = plain(headers.get("Origin", ""))[:200]
    request[REQUEST_LOG] = entry = RequestLog(
        mint_id("req"), request.method, path, origin, client_name(origin, plain(headers.get("User-Agent", "")))
    )
    entry.trace = trace_of(headers)
    CURRENT.set(entry.trace)
    connection = connection_of(request)
    if connection is not None:
        connection.head_was_read()
        request.content.on_eof(connection.works)
    app[ACTIVITY].begin()
    status: int | None = None
    try:
        with asks_through(request, connection) as too_many:
            response = await _answered(request, path, None if path in KEYLESS else too_many)
        status = response.status
    finally:
        entry.write(status)
        app[METRICS].request(entry, status)
        app[ACTIVITY].end()
        if connection is not None:
            # What is still to come of a body that nobody waited for is no new head.
            request.content.on_eof(connection.was_answered)
    return response


async def _continue(request: web.Request) -> None:
    """Answers `Expect: 100-continue`; any other expectation is ignored, as it may be (RFC 9110 section 10.1.1)."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """On every answer, event streams and errors included."""
    app, headers = request.app, response.headers
    origin = request.headers.get("Origin")
    allowed = origin is not None and app[ADMISSION].allows_origin(origin)
    headers.update(answer_headers(origin, allowed=allowed))
    headers.update(second_try(headers, asked=asks(request.headers)))
    if (entry := request.get(REQUEST_LOG)) is not None:
        headers["x-request-id"] = entry.id
        if (form := request.get(WIRE_FORMAT)) is not None:
            headers[form.id_header] = entry.id
        if entry.trace.client_request:
            headers[CLIENT_REQUEST] = entry.trace.client_request
        if entry.model is not None:
            quota = app[BACKEND].load().quota
            headers.update(app[RATE_LIMITS].headers(owner_of(request), quota, time.time()))
        headers["openai-version"] = OPENAI_VERSION
        headers["openai-processing-ms"] = str(round(entry.elapsed_ms))
        if entry.turn.warnings:
            headers[WARNING] = "; ".join(entry.turn.warnings)[:MOST_WARNED]
        answered = entry.failed is None
        if entry.turn.tools and entry.stream is False and (said := sentence_of(entry.turn, answered=answered)):
            # Names of tools may have any letters, a header has not.
            headers[SAID] = plain(said[:MOST_SAID])
    headers["Server"] = "tagcall"
    if app[STOPPING].is_set():  # its client should ask on elsewhere, or later
        response.force_close()
        headers["Connection"] = "close"


class IngressSettings(Protocol):
    """What the ingress wants of the server's settings."""

    @property
    def host(self) -> str: ...
    @property
    def backend(self) -> str: ...
    @property
    def allow_host(self) -> Sequence[str]: ...
    @property
    def allow_origin(self) -> Sequence[str]: ...
    @property
    def base_path(self) -> str: ...
    @property
    def max_body(self) -> int: ...
    @property
    def model(self) -> Sequence[str]: ...
    @property
    def alias(self) -> Sequence[tuple[str, str]]: ...
    @property
    def reasoning_content(self) -> bool: ...
    @property
    def dialect(self) -> str: ...
    @property
    def history(self) -> str: ...
    @property
    def judges_commands(self) -> bool: ...
    @property
    def loop_guard(self) -> bool: ...
    @property
    def inspect(self) -> bool: ...
    @property
    def inspect_key(self) -> str | None: ...

    @property
    def inspect_turns(self) -> int: ...
    @property
    def inspect_bytes(self) -> int: ...


def create_app(
    settings: IngressSettings,
    backend: TextBackend,
    store: ResponseStore,
    options: TurnOptions,
    keys: KeyRing,
    *,
    page: PageOptions | None = None,
) -> web.Application:
    """The application; the lives of backend and store are the caller's business."""
    app = web.Application(client_max_size=settings.max_body, middlewares=[dispatch])
    app[ACTIVITY] = Activity()
    app[STOPPING] = asyncio.Event()
    app[BACKEND] = backend
    app[BASE_PATH] = settings.base_path
    app[METRICS] = metrics = Metrics(backend)
    app.cleanup_ctx.append(LoopLag(metrics.loop_lag).run)
    app[READINESS] = readiness = Readiness(backend)
    app.cleanup_ctx.append(readiness.run)
    metrics.watch(lambda: readiness.trouble is None, lambda: store.up)
    app[MODELS] = models = ModelList(backend, dict(settings.alias), settings.model)
    app.cleanup_ctx.append(models.run)
    add_spans(app, find_kind(settings.backend).provider)
    app[REASONING_CONTENT] = settings.reasoning_content
    app[DIALECT] = settings.dialect
    app[LOOP_GUARD] = settings.loop_guard
    app[STRICT_HISTORY] = settings.history == "strict"
    app[JUDGES_COMMANDS] = settings.judges_commands
    app[WAITING] = WaitingResponses()
    app[STORE] = store
    app[LOST] = deque(maxlen=MOST_LOST)
    app[TURN_OPTIONS] = options
    app[KEYS] = keys
    app[RATE_LIMITS] = RateLimits(keys)
    app[ADMISSION] = admission = Admission(
        bind_host=settings.host, hosts=settings.allow_host, origins=settings.allow_origin, keys=keys
    )
    turns = TurnLog(settings.inspect_turns, settings.inspect_bytes, words=settings.inspect)
    access = PageAccess(admission, keys, sees_all=settings.inspect_key, link=page.link if page else None)
    app[INSPECTION] = Inspection(turns, access, page or PageOptions())
    # Only for its way with `Expect`: `dispatch` serves every request.
    app.router.add_route("*", r"/{path:[\s\S]*}", greet, expect_handler=_continue)
    app.on_response_prepare.append(_add_headers)
    return app
