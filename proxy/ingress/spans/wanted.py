"""Whether the environment asks for spans, by OpenTelemetry's own variables: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from ...advice import addition

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
EXPORTER = "OTEL_TRACES_EXPORTER"
DISABLED = "OTEL_SDK_DISABLED"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
# The values by which the words of a conversation go into its span; `true` is the older one.
INTO_SPANS = frozenset({"true", "span_only", "span_and_event"})

# What exports, with all that it takes.
PACKAGE = "opentelemetry-exporter-otlp-proto-http"


def _value(environ: Mapping[str, str], *names: str) -> tuple[str, str]:
    """The first of these variables that says something, and what; both "" if none does."""
    said = ((name, environ.get(name, "").strip()) for name in names)
    return next(((name, value) for name, value in said if value), ("", ""))


def wants_spans(environ: Mapping[str, str]) -> bool:
    """Whether an endpoint is named, and nothing turns the export off."""
    _, exporters = _value(environ, EXPORTER)
    off = _value(environ, DISABLED)[1].lower() == "true"
    by_otlp = "otlp" in [each.strip() for each in exporters.split(",")] if exporters else True
    return bool(_value(environ, *ENDPOINTS)[1]) and by_otlp and not off


def hindrance(environ: Mapping[str, str]) -> str | None:
    """Why no span can leave although they are asked for, and what to do. None: they can."""
    name, protocol = _value(environ, *PROTOCOLS)
    if protocol not in {"", "http/protobuf"}:
        return (
            f"{name} is {protocol}, which tagcall does not speak, so no spans leave. Set it to http/protobuf, and name "
            "an endpoint for OTLP over HTTP, usually on port 4318."
        )
    try:
        there = find_spec("opentelemetry.sdk") and find_spec("opentelemetry.exporter.otlp.proto.http")
    except ModuleNotFoundError:
        there = None
    if there is None:
        asks, _ = _value(environ, *ENDPOINTS)
        return f"{asks} asks for spans, but OpenTelemetry is not installed here. Install it with {addition(PACKAGE)}."
    return None


def captures_content(environ: Mapping[str, str]) -> bool:
    """Whether the words of a conversation may leave in its span."""
    return _value(environ, CONTENT)[1].lower() in INTO_SPANS
