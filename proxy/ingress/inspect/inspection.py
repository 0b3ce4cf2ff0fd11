"""The page's state on the application: the turns, their followers, the access rules; and one turn's way through it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from aiohttp import web
from msgspec import Struct

from ...contracts import TextBackend, TurnRequest
from ...wire.builder import AnswerBuilder
from ..request_log import RequestLog
from .access import PageAccess
from .feed import Feed
from .heard import OverheardBackend, OverheardBuilder
from .record import TurnRecord
from .turn_log import TurnLog

# Makes a fixture of a turn that is kept: the name of its folder, and its files. Raises `RequestError`.
SaveTurn = Callable[[web.Request, TurnRecord], Awaitable[tuple[str, Mapping[str, bytes]]]]


class PageOptions(Struct, frozen=True):
    """What the page is told by who starts the server: `link` opens it once where a key is set, and shows all."""

    link: str | None = None
    save: SaveTurn | None = None


class Inspection:
    def __init__(self, log: TurnLog, access: PageAccess, options: PageOptions) -> None:
        self.log = log
        self.feed = Feed(log)
        self.access = access
        self.save = options.save

    @contextmanager
    def turn(self, entry: RequestLog, request: TurnRequest) -> Iterator[TurnRecord]:
        """Keeps a record of one turn, which is told what happens."""
        record = TurnRecord(
            entry.id, at=time.time(), began=time.monotonic(), route=entry.route, client=entry.client, key=entry.asker,
            model=entry.model or request.model, method=entry.method, owner=request.owner,
        )  # fmt: skip
        record.changed = lambda: self.feed.tell(record.id)
        self.log.begin(record, request, request.owner, entry.body)
        entry.turn.observer = record
        record.report = entry.turn
        record.changed()
        try:
            yield record
        finally:
            entry.turn.observer = None
            record.close(time.monotonic())

    def noted(self, builder: AnswerBuilder, record: TurnRecord) -> AnswerBuilder:
        """`builder`, whose opening is noted where words are kept."""
        return OverheardBuilder(builder, record) if self.log.keeps_words else builder

    def overheard(self, backend: TextBackend, record: TurnRecord) -> TextBackend:
        """`backend`, listened to where words are kept."""
        return OverheardBackend(backend, record) if self.log.keeps_words else backend


INSPECTION = web.AppKey("inspection", Inspection)
