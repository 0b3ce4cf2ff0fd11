"""Who may see the page's data, and whose: a key, or a session that a key or a link has opened.

A key shows what was asked with that key. The inspect key and the link, which the terminal of `serve` shows, show all.
If the server needs no key, everybody sees all.

A browser sends a cookie to every port of its host, and from every page of it. So the cookie holds a random value that
opens the page's own routes and nothing else. A route that does something also wants the page's exact origin.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Mapping

from msgspec import Struct

from ...api_keys import ApiKey
from ...errors import RequestError
from ..admission import Admission, key_of
from ..key_ring import KeyRing, digest_of

COOKIE = "tagcall_page"
# Sessions at a time; the oldest ends.
SESSIONS = 16


class Viewer(Struct, frozen=True):
    """Who looks: the `owner` of all that is shown, or None who sees all."""

    owner: str | None = None

    def sees(self, owner: str) -> bool:
        return self.owner in (None, owner)


class PageAccess:
    """The rules of one server's page. `keys` open it, and so does the key `sees_all`, which sees what all asked; `link`
    is the value of a link that opens it once.
    """

    def __init__(self, admission: Admission, keys: KeyRing, *, sees_all: str | None, link: str | None) -> None:
        self._admission = admission
        self._keys = keys
        self._sees_all = KeyRing(() if sees_all is None else (ApiKey(sees_all),))
        self._links = [] if link is None else [link]
        self._sessions: dict[str, Viewer] = {}

    def check_origin(self, method: str, headers: Mapping[str, str], origins: list[str]) -> None:
        """Only pages of this very server, and who is no page. Raises `RequestError`."""
        host = headers.get("Host", "")
        own = {f"http://{host}", f"https://{host}"}
        site = headers.get("Sec-Fetch-Site", "none")
        allowed = all(origin in own for origin in origins) and len(origins) <= 1 and site in {"none", "same-origin"}
        if not allowed or (method not in {"GET", "HEAD"} and not origins):
            raise RequestError("Only the page of this server may ask for that.", status=403, code="origin_not_allowed")

    @property
    def keyed(self) -> bool:
        """Whether it wants a key."""
        return bool(self._keys or self._sees_all)

    def viewer(self, headers: Mapping[str, str], cookie: str | None) -> Viewer:
        """Raises `RequestError` for who has neither a session nor a key."""
        if not self.keyed:
            return Viewer()
        if cookie and (session := _among(cookie, self._sessions)) is not None:
            viewer = self._sessions[session]
            if viewer.owner is None or self._keys.of(viewer.owner) is not None:
                return viewer
        given = key_of(headers)
        if self._sees_all and (self._sees_all.accepts(given) or not self._keys):
            Admission(bind_host="", keys=self._sees_all).check_key(headers)
            return Viewer()
        self._admission.check_key(headers)
        return Viewer(digest_of(given))

    def open(self, headers: Mapping[str, str], link: str) -> str | None:
        """A new session for who has a key or a link, None where none is needed. Raises `RequestError`."""
        if not self.keyed:
            return None
        if link and _among(link, self._links) is not None:
            self._links.clear()
            viewer = Viewer()
        elif key_of(headers) or not link:
            viewer = self.viewer(headers, None)
        else:
            raise RequestError("This link was used before: enter the key.", status=401, code="invalid_api_key")
        session = secrets.token_urlsafe(32)
        self._sessions[session] = viewer
        if len(self._sessions) > SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return session


def _among(given: str, known: Iterable[str]) -> str | None:
    data = given.encode("utf-8", "surrogateescape")
    matches = [each for each in known if hmac.compare_digest(data, each.encode())]  # all: the time tells nothing
    return matches[0] if matches else None
