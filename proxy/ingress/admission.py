"""Who may use the server, decided from a request's head before its body is read or any work is done.

The server listens on the user's own machine with their paid account behind it, reachable from every
web page they open. Host stops DNS rebinding, Origin and Sec-Fetch-Site stop other sites' pages, the
key stops whoever has no business here at all.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence

from aiohttp import web

from ..errors import RequestError
from ..wire.reader import shown
from .key_ring import KeyRing, digest_of

# Whoever puts something here asks for this owner: that of its key, once a request is let in.
OWNER: web.RequestKey[str] = web.RequestKey("owner", str)

# The names of this machine that need no look at an address.
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})

# Obsidian on the desktop, on iOS and on Android.
OBSIDIAN_ORIGINS = frozenset({"app://obsidian.md", "capacitor://localhost", "http://localhost"})


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    return host in LOOPBACK_HOSTS or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


# A Host header: an address in brackets or a name, and perhaps a port.
HOST = re.compile(r"(?:\[(?P<address>[0-9a-fA-F:.]+)\]|(?P<name>[^\[\]:]+?)\.?)(?::\d*)?")


def _host_name(host: str) -> str:
    """`localhost:8787` and `[::1]:8787` without port and brackets; "" for what is no host."""
    found = HOST.fullmatch(host)
    return (found["address"] or found["name"]).lower() if found else ""


# How a page gives its key with a WebSocket, for which it can set no header.
KEY_PROTOCOL = re.compile(r"(?:^|,)\s*openai-insecure-api-key\.([^\s,]+)")


def key_of(headers: Mapping[str, str]) -> str:
    """The key that a request carries, "" when it carries none."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():  # clients whose field for it was left empty send it all the same
        return token.strip()
    offered = KEY_PROTOCOL.search(headers.get("Sec-WebSocket-Protocol", ""))
    return headers.get("X-Api-Key") or headers.get("Api-Key") or (offered[1] if offered else "")


def owner_of(request: web.Request) -> str:
    """Whose Responses these are: those of one key are not for another."""
    return request.get(OWNER) or digest_of(key_of(request.headers))


class Admission:
    """The rules of one server. Every check raises `RequestError` when the request is not let in."""

    def __init__(
        self, *, bind_host: str, hosts: Iterable[str] = (), origins: Iterable[str] = (), keys: KeyRing | None = None
    ) -> None:
        self._hosts = LOOPBACK_HOSTS | {_host_name(host) for host in hosts} | {bind_host.lower()}
        # An address cannot be rebound by DNS, and on a network bind it is how the server is reached.
        self._any_address = not is_loopback(bind_host)
        self._origins = OBSIDIAN_ORIGINS | {origin if origin == "file://" else origin.rstrip("/") for origin in origins}
        self._keys = KeyRing() if keys is None else keys

    def check_host(self, host: str) -> None:
        """`host` is a Host header, or the authority of a request target that has one."""
        name = _host_name(host)
        if name in self._hosts or (self._any_address and _is_address(name)):
            return
        raise RequestError(
            "This Host is not served here. If you reach tagcall under this name, start it with --allow-host.",
            status=421,
            code="host_not_allowed",
        )

    def allows_origin(self, origin: str) -> bool:
        return origin in self._origins

    def check_origin(self, origins: Sequence[str], fetch_site: str) -> None:
        """`origins` are all Origin headers, `fetch_site` is Sec-Fetch-Site."""
        if not origins and fetch_site in {"cross-site", "same-site"}:
            raise _foreign("pages of another site", "its origin")
        if len(origins) > 1:
            raise _foreign("more than one origin at a time")
        for origin in origins:
            if origin == "null":
                raise _foreign("pages without an origin, such as files and sandboxed frames,")
            if origin not in self._origins:
                raise _foreign(f"the origin {shown(origin)}", shown(origin))

    def check_key(self, headers: Mapping[str, str]) -> None:
        if not self._keys:
            return
        given = key_of(headers)
        if not given:
            raise RequestError(
                "You didn't provide an API key. Send the key that tagcall was started with as 'Authorization: Bearer "
                "KEY'.",
                status=401,
            )
        if not self._keys.accepts(given):
            raise RequestError(
                "Incorrect API key provided. Use the key that tagcall was started with.",
                status=401,
                code="invalid_api_key",
            )


def _foreign(who: str, allowed: str | None = None) -> RequestError:
    remedy = f" If the page is yours, start tagcall with --allow-origin and {allowed}." if allowed else ""
    return RequestError(f"Requests from {who} are not served.{remedy}", status=403, code="origin_not_allowed")
