"""A receiver of OTLP over HTTP, which reads what a collector would read: OpenTelemetry's own protocol buffers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


def _value(told: AnyValue) -> Any:
    kind = told.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in told.array_value.values]
    return getattr(told, kind) if kind else None


def attributes_of(told: Any) -> dict[str, Any]:
    """Those of a span or a resource."""
    return {each.key: _value(each.value) for each in told.attributes}


class OtlpReceiver:
    """What has come: spans, the attributes of the last resource, the headers and paths of each export."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Span] = []
        self.resource: dict[str, Any] = {}
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.came = asyncio.Event()

    async def receive(self, request: web.Request) -> web.StreamResponse:
        export = ExportTraceServiceRequest.FromString(await request.read())
        self.headers.append(dict(request.headers))
        self.paths.append(request.path)
        for each in export.resource_spans:
            self.resource = attributes_of(each.resource)
            self.spans += [span for scope in each.scope_spans for span in scope.spans]
        self.came.set()
        body = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=body, content_type="application/x-protobuf")


@asynccontextmanager
async def otlp_receiver() -> AsyncIterator[OtlpReceiver]:
    receiver = OtlpReceiver()
    app = web.Application()
    app.router.add_post("/{path:.*}", receiver.receive)
    async with TestServer(app, host="127.0.0.1") as server:
        receiver.url = f"http://127.0.0.1:{server.port}"
        yield receiver
