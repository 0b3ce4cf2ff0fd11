"""OpenTelemetry: one span a turn, by the semantic conventions for generative AI, exported by OTLP over HTTP.

wanted         whether the environment asks for spans, and what keeps them from leaving
attributes     what a span says: names and numbers; pure
span_messages  what it says of the words, where they are asked for; pure
heard_builder  a builder that is listened to
turn_spans     the SDK, and one turn's way through it: all that loads OpenTelemetry

Nothing of it is loaded unless the environment asks for spans.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from aiohttp import web

from ...contracts import TurnRequest
from ...logs import tell
from ..request_log import RequestLog
from .wanted import captures_content, hindrance, wants_spans

if TYPE_CHECKING:
    from ...wire.builder import AnswerBuilder
    from .turn_spans import TurnSpans

# Seconds for the last spans, once the server stops.
FAREWELL = 5.0

SPANS: web.AppKey[TurnSpans | None] = web.AppKey("spans")


def add_spans(app: web.Application, provider: str) -> None:
    """Has the turns of `app` exported if the environment asks for it, and says so if that cannot be.

    `provider` is who gives the models, by its name in the conventions.
    """
    app[SPANS] = None
    if not wants_spans(os.environ):
        return
    if (sentence := hindrance(os.environ)) is not None:
        tell(f"tagcall: {sentence}")
        return
    from .turn_spans import TurnSpans  # noqa: PLC0415 -- an extra, and time that only those pay who ask for it

    try:
        spans = TurnSpans(provider, content=captures_content(os.environ))
    except ValueError as error:
        tell(f"tagcall: OpenTelemetry cannot start, so no spans leave ({error}). Correct it, and restart tagcall.")
        return
    app[SPANS] = spans

    async def leave(_: web.Application) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(spans.close, FAREWELL)

    app.cleanup_ctx.append(leave)


def spanned(
    app: web.Application, entry: RequestLog, asked: TurnRequest, model: str, builder: AnswerBuilder
) -> AbstractContextManager[AnswerBuilder]:
    """One turn, as a span where spans are wanted. `model` is the one that answers what was `asked`; the builder that is
    given in place of `builder` is to make the answer.
    """
    spans = app[SPANS]
    return nullcontext(builder) if spans is None else spans.turn(entry, asked, model, builder)


__all__ = ["add_spans", "spanned"]
