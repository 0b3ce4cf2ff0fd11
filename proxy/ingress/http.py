"""Routes, and the way of a request: Host, Origin, preflight, key, route, body, turn, log line.

Paths are served with and without `/v1`, with doubled and trailing slashes: people paste base URLs in
all of these forms.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from ..contracts import ResponseStore, TextBackend
from ..errors import ApiError, RequestError
from ..settings import Settings
from ..turn import TurnOptions
from ..wire.ids import mint_id
from ..wire.models import model_list
from .activity import Activity
from .admission import Admission
from .cors import answer_headers, preflight_headers
from .history import delete_response, get_response
from .replies import error_reply, from_aiohttp, json_reply
from .request_log import RequestLog, log
from .responses import create_response
from .state import ACTIVITY, ADMISSION, BACKEND, REQUEST_LOG, STORE, TURN_OPTIONS

# A handler takes the request and what stands in the path for each `{...}` of its route.
Handler = Callable[..., Awaitable[web.StreamResponse]]


async def list_models(request: web.Request) -> web.StreamResponse:
    return json_reply(model_list(await request.app[BACKEND].models()))


async def healthz(_: web.Request) -> web.StreamResponse:
    """The process answers."""
    return json_reply({"status": "ok"})


async def readyz(request: web.Request) -> web.StreamResponse:
    """A turn would be taken: 200, else 503 with the reason."""
    health = await request.app[BACKEND].health()
    if health.problem is None:
        return json_reply({"status": "ready", "backend": health.version})
    return json_reply({"status": "not ready", "backend": health.version, "problem": health.problem}, status=503)


async def greet(_: web.Request) -> web.StreamResponse:
    return web.Response(text="tagcall is running. Point an OpenAI client at /v1 of this address.\n")


# Path without `/v1` -> method -> handler.
ROUTES: dict[str, dict[str, Handler]] = {
    "/": {"GET": greet},
    "/healthz": {"GET": healthz},
    "/readyz": {"GET": readyz},
    "/models": {"GET": list_models},
    "/responses": {"POST": create_response},
    "/responses/{id}": {"GET": get_response, "DELETE": delete_response},
}


# What those who watch over a process ask, without a key of their own.
KEYLESS = frozenset({"/", "/healthz", "/readyz"})


def canonical_path(path: str) -> str:
    """`//v1//responses/` and `/responses` are one path: `/responses`."""
    names = [name for name in path.split("/") if name]
    if names and names[0] == "v1":
        del names[0]
    return "/" + "/".join(names)


def _match(route: str, path: str) -> list[str] | None:
    """What stands in `path` for each `{...}` of `route`, or None when it is another path."""
    wanted, given = route.split("/"), path.split("/")
    pairs = list(zip(wanted, given, strict=False))
    if len(wanted) != len(given) or any(name != part for name, part in pairs if not name.startswith("{")):
        return None
    return [part for name, part in pairs if name.startswith("{")]


def _handler(request: web.Request) -> Awaitable[web.StreamResponse]:
    """The handler of a request's path and method, called. Raises `RequestError`."""
    path = canonical_path(request.path)
    for route, methods in ROUTES.items():
        if (parts := _match(route, path)) is None:
            continue
        handler = methods.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            raise RequestError(
                f"Not allowed to {request.method} on {request.path[:200]}.", status=405, code="method_not_supported"
            )
        return handler(request, *parts)
    raise RequestError(
        f"Unknown request URL: {request.method} {request.path[:200]}. tagcall serves "
        f"{', '.join('/v1' + path for path in ROUTES if path != '/')}.",
        status=404,
        code="unknown_url",
    )


async def _admitted(request: web.Request) -> web.StreamResponse:
    """The answer to a request, or the error that keeps it out."""
    admission = request.app[ADMISSION]
    admission.check_host(request.headers.get("Host", ""))
    admission.check_host(request.url.authority)  # the target may name another one
    admission.check_origin(request.headers.getall("Origin", []), request.headers.get("Sec-Fetch-Site", "none"))
    if request.method == "OPTIONS":
        return web.Response(status=204, headers=preflight_headers(request.headers))
    if canonical_path(request.path) not in KEYLESS:
        admission.check_key(request.headers)
    return await _handler(request)


@web.middleware
async def dispatch(request: web.Request, handler: object) -> web.StreamResponse:
    """Every request comes through here, whatever its path; what happens leaves as an OpenAI body and one log line.

    aiohttp's own router is left out: it answers some targets as plain text before a handler is found.
    """
    request.app[ACTIVITY].begin()
    entry = RequestLog(mint_id("req"), request.method, canonical_path(request.path))
    request[REQUEST_LOG] = entry
    status: int | None = None
    try:
        response = await _admitted(request)
        status = response.status
    except ApiError as error:
        entry.failed = error
        response = error_reply(error)
        status = response.status
    except web.HTTPException as error:
        entry.failed = from_aiohttp(error)
        response = error_reply(entry.failed)
        status = response.status
    except Exception:  # noqa: BLE001  # the last line of defence: logged with its trace, answered without it
        log.exception("fault", id=entry.id)
        response = error_reply(ApiError("The server had an error while processing your request."))
        status = response.status
    finally:
        entry.write(status)
        request.app[ACTIVITY].end()
    return response


async def _continue(request: web.Request) -> None:
    """Answers `Expect: 100-continue`; any other expectation is ignored, as it may be (RFC 9110 section 10.1.1)."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """On every answer, event streams and errors included."""
    origin = request.headers.get("Origin")
    allowed = origin is not None and request.app[ADMISSION].allows_origin(origin)
    response.headers.update(answer_headers(origin, allowed=allowed))
    if (entry := request.get(REQUEST_LOG)) is not None:
        response.headers["x-request-id"] = entry.id
    response.headers["Server"] = "tagcall"


def create_app(
    settings: Settings, backend: TextBackend, store: ResponseStore, options: TurnOptions, keys: tuple[str, ...]
) -> web.Application:
    """The application; the lives of backend and store are the caller's business."""
    app = web.Application(client_max_size=settings.max_body, middlewares=[dispatch])
    app[ACTIVITY] = Activity()
    app[BACKEND] = backend
    app[STORE] = store
    app[TURN_OPTIONS] = options
    app[ADMISSION] = Admission(
        bind_host=settings.host, hosts=settings.allow_host, origins=settings.allow_origin, keys=keys
    )
    # Only for its way with `Expect`: `dispatch` serves every request.
    app.router.add_route("*", r"/{path:[\s\S]*}", greet, expect_handler=_continue)
    app.on_response_prepare.append(_add_headers)
    return app
