"""Who may see the page's data: a key, or a session that a key or a link has opened.

A cookie is sent to every port of its host, and by every page of it: it holds a random value that opens the page's own
routes and nothing else, and what does something wants the page's exact origin besides.
"""

from __future__ import annotations

import hmac
import secrets
from collections import deque
from collections.abc import Mapping

from ...errors import RequestError
from ..admission import Admission, key_of

COOKIE = "tagcall_page"
# Sessions at a time; the oldest ends.
SESSIONS = 16


class PageAccess:
    """The rules of one server's page. `link` is the value of a link that opens it once."""

    def __init__(self, admission: Admission, *, keyed: bool, link: str | None = None) -> None:
        self._admission = admission
        self._keyed = keyed
        self._links = [] if link is None else [link]
        self._sessions: deque[str] = deque(maxlen=SESSIONS)

    def check_origin(self, method: str, headers: Mapping[str, str], origins: list[str]) -> None:
        """Only pages of this very server, and who is no page. Raises `RequestError`."""
        host = headers.get("Host", "")
        own = {f"http://{host}", f"https://{host}"}
        site = headers.get("Sec-Fetch-Site", "none")
        allowed = all(origin in own for origin in origins) and len(origins) <= 1 and site in {"none", "same-origin"}
        if not allowed or (method not in {"GET", "HEAD"} and not origins):
            raise RequestError("Only the page of this server may ask for that.", status=403, code="origin_not_allowed")

    def check_session(self, headers: Mapping[str, str], cookie: str | None) -> None:
        """Raises `RequestError` for who has neither a session nor a key."""
        if self._keyed and not (cookie and _among(cookie, self._sessions)):
            self._admission.check_key(headers)

    def open(self, headers: Mapping[str, str], link: str) -> str | None:
        """A new session for who has a key or a link, None where none is needed. Raises `RequestError`."""
        if not self._keyed:
            return None
        if link and _among(link, self._links):
            self._links.clear()
        elif key_of(headers) or not link:
            self._admission.check_key(headers)
        else:
            raise RequestError("This link was used before: enter the key.", status=401, code="invalid_api_key")
        session = secrets.token_urlsafe(32)
        self._sessions.append(session)
        return session


def _among(given: str, known: list[str] | deque[str]) -> bool:
    data = given.encode("utf-8", "surrogateescape")
    matches = [hmac.compare_digest(data, each.encode()) for each in known]  # all of them: the time tells nothing
    return any(matches)
