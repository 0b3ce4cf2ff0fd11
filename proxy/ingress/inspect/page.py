"""The page at `/` and its routes: its files, the state of the server, the turns, and an event stream of them.

Only this server's own files run in the page. Everything from elsewhere is data, which it shows as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from aiohttp import web

from ...contracts import Model
from ...errors import BackendError, RequestError
from ...plugins import PLUGINS, what_it_lacks
from ...turn import Reason, reason_in_words
from ...version import own_version
from ..admission import OWNER
from ..apis import turns_asked_again
from ..bodies import json_reply
from ..event_stream import stream_subscription
from ..health import greet
from ..models import MODELS
from ..readiness import READINESS
from ..state import BACKEND, BASE_PATH
from .access import COOKIE, Viewer
from .detail import detail, holds, lines
from .inspection import INSPECTION
from .record import TurnRecord

# What the page may load and ask for, and who may show it: itself, and nobody.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
PAGE_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
STATIC = Path(__file__).with_name("static")
FILES = {
    "compare.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "page.css": "text/css",
    "page.html": "text/html",
    "page.js": "text/javascript",
    "view.js": "text/javascript",
}
# How each reason is said to people.
REASONS = {reason.value: reason_in_words(reason) for reason in Reason}

# Whoever asks for something of the page.
VIEWER: web.RequestKey[Viewer] = web.RequestKey("viewer", Viewer)

# Where the page's own routes are, and those of them that hold nothing of anybody.
ROOM = "/inspect/"
OPEN = frozenset({f"{ROOM}{name}" for name in FILES} | {f"{ROOM}session"})


def is_browser(request: web.Request) -> bool:
    """Whether somebody opens an address in a browser."""
    return request.method == "GET" and "text/html" in request.headers.get("Accept", "")


async def index(request: web.Request) -> web.StreamResponse:
    """The page, or a greeting for who is no browser."""
    if not is_browser(request):
        return await greet(request)
    base = request.app[BASE_PATH]
    if base and request.path.endswith(base):
        # The page names its files beside itself, whatever stands before them: its own address ends with a slash.
        return web.Response(status=308, headers={"Location": f"{base.rpartition('/')[2]}/"})
    return _file("page.html")


async def page_file(_: web.Request, name: str) -> web.StreamResponse:
    if name not in FILES:
        raise RequestError("The page has no such file.", status=404)
    return _file(name)


def _file(name: str) -> web.Response:
    body = (STATIC / name).read_bytes()
    return web.Response(body=body, content_type=FILES[name], charset="utf-8", headers=PAGE_HEADERS)


def visits_index(request: web.Request, path: str) -> bool:
    """Whether a browser goes to the page itself, from wherever: it holds nothing, and lies in no frame."""
    return path == "/" and is_browser(request) and request.headers.get("Sec-Fetch-Mode") == "navigate"


def check_page(request: web.Request, path: str) -> None:
    """Whether a request to one of the page's routes may be answered. Raises `RequestError`."""
    access = request.app[INSPECTION].access
    access.check_origin(request.method, request.headers, request.headers.getall("Origin", []))
    if path not in OPEN:
        request[VIEWER] = viewer = access.viewer(request.headers, request.cookies.get(COOKIE))
        if viewer.owner is not None:
            request[OWNER] = viewer.owner


def _quiet(reply: web.Response) -> web.Response:
    reply.headers.update(PAGE_HEADERS)
    return reply


def quiet_reply(body: Mapping[str, object]) -> web.Response:
    """JSON for the page alone."""
    return _quiet(json_reply(body))


async def open_session(request: web.Request) -> web.StreamResponse:
    """A session for who has the key, or the link that `serve` has printed."""
    session = request.app[INSPECTION].access.open(request.headers, request.headers.get("X-Tagcall-Link", ""))
    reply = _quiet(json_reply({"status": "open"}))
    if session is not None:
        # Without a path it is for the folder that was asked, as the browser names it: a proxy may have that elsewhere.
        secure = request.headers.get("X-Forwarded-Proto") == "https"
        reply.set_cookie(COOKIE, session, httponly=True, samesite="Strict", secure=secure, path="")
    return reply


async def state(request: web.Request) -> web.StreamResponse:
    """How the server is."""
    inspection = request.app[INSPECTION]
    health = await request.app[READINESS].now()
    models = await _models(request)
    log = inspection.log
    return _quiet(json_reply({
        "problem": health.problem or request.app[READINESS].trouble,
        "version": own_version(),
        "backend": health.version,
        "keyed": inspection.access.keyed,
        "quota": [quota.as_json() for quota in request.app[BACKEND].load().quota],
        "models": [model.id for model in models],
        "contexts": {model.id: model.context for model in models if model.context is not None},
        "reasons": REASONS,
        "plugins": [
            {
                "name": plugin.name,
                "where": plugin.where,
                "fields": plugin.fields,
                "lacks": what_it_lacks(plugin, models[0].id if models else None),
            }
            for plugin in PLUGINS
        ],
        "asked_again": list(turns_asked_again()),
        "inspect": log.keeps_words,
        "turns": log.limit,
        "bytes": log.size,
        "used": log.used,
    }))  # fmt: skip


async def _models(request: web.Request) -> list[Model]:
    try:
        return await request.app[MODELS].current()
    except BackendError:  # what the page says of the backend tells why
        return []


def record_of(request: web.Request, id: str) -> TurnRecord:
    """Raises `RequestError`, also where it is somebody else's."""
    record = request.app[INSPECTION].log.get(id)
    if record is None or not request[VIEWER].sees(record.owner):
        raise RequestError("This turn is not kept any more.", status=404, code="turn_not_kept")
    return record


async def list_turns(request: web.Request) -> web.StreamResponse:
    """The turns that are kept, newest first; with `words` those in which they stand."""
    viewer, words = request[VIEWER], request.query.get("words", "")
    seen = (record for record in request.app[INSPECTION].log.records if viewer.sees(record.owner))
    turns = [record.summary for record in seen if holds(record, words)]
    return _quiet(json_reply({"turns": turns[::-1]}))


async def get_turn(request: web.Request, id: str) -> web.StreamResponse:
    return _quiet(json_reply(detail(record_of(request, id))))


async def get_lines(request: web.Request, id: str) -> web.StreamResponse:
    """What tagcall and the app-server said to each other for it, a JSON object a line."""
    record = record_of(request, id)
    told = () if record.words is None else lines(record.words, record.began)
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in told)
    if not text:
        raise RequestError("No lines of this turn are kept.", status=409, code="turn_not_usable")
    return _quiet(web.Response(text=text, content_type="text/plain"))


async def save_turn(request: web.Request, id: str) -> web.StreamResponse:
    """The turn as a fixture, packed: a folder with its files."""
    inspection, record = request.app[INSPECTION], record_of(request, id)
    if inspection.save is None or record.words is None:
        raise RequestError("Its words are not kept.", status=409, code="turn_not_usable")
    request[OWNER] = record.words.owner
    name, files = await inspection.save(request, record)
    from zipfile import ZIP_DEFLATED, ZipFile  # noqa: PLC0415 -- 0.2 MB that a server does without that saves no turn

    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for file, data in files.items():
            archive.writestr(f"{name}/{file}", data)
    headers = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return _quiet(web.Response(body=packed.getvalue(), content_type="application/zip", headers=headers))


async def follow_turns(request: web.Request) -> web.StreamResponse:
    """An event for each turn that is kept, and for each that changes."""
    feed = request.app[INSPECTION].feed
    if feed.full:
        raise RequestError("Too many pages are open.", status=429, code="rate_limit_exceeded")
    return await stream_subscription(request, feed.follow(request[VIEWER]))
