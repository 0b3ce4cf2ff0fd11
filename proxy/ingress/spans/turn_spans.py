"""The SDK, and one turn's way through it. Whoever loads this has OpenTelemetry installed.

    the request's traceparent --parent--> the span of its turn --traceparent--> a model server that is asked

The tracer belongs to this server, not to the process: two servers in one process export separately.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from msgspec.structs import replace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ...contracts import TurnRequest
from ...tracing import CURRENT, PARENT
from ...version import own_version
from ...wire.builder import AnswerBuilder
from ..request_log import RequestLog
from .attributes import asked_for, came_of_it, finish_reason
from .heard_builder import HeardBuilder
from .span_messages import input_messages, output_messages, system_instructions

_TRACE_CONTEXT = TraceContextTextMapPropagator()


def _resource() -> Resource:
    """What the environment says of this process, and our name where it says none."""
    told = Resource.create()
    if not str(told.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        return told
    return told.merge(Resource({SERVICE_NAME: "tagcall", SERVICE_VERSION: own_version()}))


class TurnSpans:
    """The spans of one server. With `content` they hold what was asked and answered.

    Raises `ValueError` for a variable of the environment that says nothing of use.
    """

    def __init__(self, provider: str, *, content: bool) -> None:
        self._provider = provider
        self._content = content
        tracers = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        self._exporter = OTLPSpanExporter()
        self._processor = BatchSpanProcessor(self._exporter)
        tracers.add_span_processor(self._processor)
        self._tracer = tracers.get_tracer("tagcall", own_version())

    def close(self, patience: float) -> None:
        """Waits until the last spans have left, for so many seconds at most."""
        last = Thread(target=self._processor.shutdown, name="last spans", daemon=True)
        last.start()
        last.join(patience)
        if last.is_alive():
            self._exporter.shutdown()  # which ends what it waits for

    @contextmanager
    def turn(self, entry: RequestLog, asked: TurnRequest, model: str, builder: AnswerBuilder) -> Iterator[HeardBuilder]:
        """As `spanned` promises it."""
        began = time.monotonic()
        heard = HeardBuilder(builder, keeps=self._content)
        span = self._tracer.start_span(
            f"chat {asked.model}",
            context=_TRACE_CONTEXT.extract({PARENT: entry.trace.parent}),
            kind=SpanKind.CLIENT,
            attributes=asked_for(entry, asked, self._provider, builder.id),
        )
        entry.trace = replace(entry.trace, parent=_traceparent(span))
        outer = CURRENT.set(entry.trace)
        try:
            yield heard
        finally:
            CURRENT.reset(outer)
            first = None if heard.first is None else heard.first - began
            span.set_attributes(came_of_it(entry, model, heard.end, first))
            if self._content and span.is_recording():
                self._tell_words(span, asked, heard, entry)
            if entry.failed is not None:
                span.set_status(StatusCode.ERROR)
            span.end()

    def _tell_words(self, span: Span, asked: TurnRequest, heard: HeardBuilder, entry: RequestLog) -> None:
        span.set_attribute("gen_ai.input.messages", input_messages(asked.transcript))
        if (instructions := system_instructions(asked.transcript)) is not None:
            span.set_attribute("gen_ai.system_instructions", instructions)
        if heard.end is not None:
            finish = finish_reason(heard.end, entry.turn)
            span.set_attribute("gen_ai.output.messages", output_messages(heard.events, finish))


def _traceparent(span: Span) -> str:
    told = span.get_span_context()
    return f"00-{told.trace_id:032x}-{told.span_id:016x}-{told.trace_flags:02x}"
