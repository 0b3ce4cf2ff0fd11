"""A span a turn, as a receiver of OTLP gets it over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from pytest_aiohttp import AiohttpServer
from structlog.testing import capture_logs

from parser import write_call
from proxy.contracts import BackendEvent, Prompt, ReasoningEnded, ReasoningPiece, TextPiece, TurnEnded
from proxy.errors import BackendError
from proxy.ingress.spans.attributes import TOKENS
from proxy.ingress.spans.span_messages import MOST_OF_MESSAGES, MOST_OF_PART
from proxy.replay.key_placeholder import key_of
from proxy.server import running_server
from proxy.settings import Settings
from tests.support.http_client import client
from tests.support.memory_backend import USAGE, MemoryBackend, Script
from tests.support.otlp_receiver import OtlpReceiver, attributes_of, otlp_receiver
from tests.support.patience import PATIENCE
from tests.support.scripted_chat import ScriptedChat

TRACE, PARENT_SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TOOLS: list[Any] = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]
BODY: dict[str, Any] = {"model": "m", "input": "What is in a.md?", "tools": TOOLS}
PAGE = (Path(__file__).parents[4] / "docs" / "howto" / "opentelemetry.md").read_text("utf-8")
UNSTEADY = {"gen_ai.response.id", "tagcall.request.id", "gen_ai.response.time_to_first_chunk"}
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def call(prompt: Prompt) -> str:
    return "I look." + write_call("read_note", '{"path": "a.md"}', key=key_of(prompt.developer))


def mended(prompt: Prompt) -> str:
    return call(prompt).replace('"a.md"}', '"a.md",}')


@pytest.fixture
async def receiver(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OtlpReceiver]:
    """One that the environment names."""
    async with otlp_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        yield receiver


async def ask(*answers: Script, path: str = "/responses", body: Any = BODY, **headers: str) -> None:
    """One request a script. All spans have left once this returns."""
    async with client(*answers) as (session, url):
        async with session.post(url + path, json=body, headers=headers) as response:
            await response.read()


async def test_a_turn_is_a_span_with_model_tokens_calls_and_our_sentence(receiver: OtlpReceiver) -> None:
    await ask(mended, **{"User-Agent": "Obsidian/1.9"})
    (span,) = receiver.spans
    told = attributes_of(span)
    assert (span.name, span.kind) == ("chat m", Span.SPAN_KIND_CLIENT)
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert span.end_time_unix_nano > span.start_time_unix_nano
    assert told["gen_ai.response.id"].startswith("resp_")
    assert told["tagcall.request.id"].startswith("req_")
    assert told["gen_ai.response.time_to_first_chunk"] >= 0
    assert {name: value for name, value in told.items() if name not in UNSTEADY} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "m",
        "gen_ai.response.finish_reasons": ["tool_call"],
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.usage.cache_creation.input_tokens": 0,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "tagcall.outcome": "done",
        "tagcall.said": "called read_note (mended: trailing comma)",
        "tagcall.reasons": [],
        "tagcall.calls": ["read_note"],
        "tagcall.tools": 1,
        "tagcall.attempts": 1,
        "tagcall.client": "Obsidian",
        "tagcall.path": "/responses",
    }
    assert receiver.paths == ["/v1/traces"]
    assert receiver.resource["service.name"] == "tagcall"
    assert receiver.resource["service.version"]


@pytest.mark.parametrize("name", [*TOKENS.values(), *sorted(UNSTEADY), "error.type", "tagcall.key"])
def test_each_attribute_is_on_its_page(name: str) -> None:
    assert f"`{name}`" in PAGE


async def test_no_attribute_is_missing_on_the_page(receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTENT, "true")
    wanted = {"temperature": 0, "top_p": 1, "max_output_tokens": 90, "stream": True}
    await ask(call, body=SAID | wanted | {"text": {"format": {"type": "json_object"}}})
    told = attributes_of(receiver.spans[0])
    assert {"gen_ai.output.type", "gen_ai.request.temperature"} <= told.keys()
    assert [name for name in told if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}),
        ("/messages", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}),
        ("/responses", {"model": "m", "input": "Hi.", "background": True}),
        ("/responses", {"model": "m", "input": "Hi.", "stream": True}),
    ],
)
async def test_each_api_and_each_way_of_answering_has_one(
    receiver: OtlpReceiver, path: str, body: dict[str, Any]
) -> None:
    await ask("Hello.", path=path, body=body)
    (span,) = receiver.spans
    told = attributes_of(span)
    assert told["gen_ai.response.finish_reasons"] == ["stop"]
    assert told["tagcall.said"] == "answered"
    assert told.get("gen_ai.request.stream", False) is (body.get("stream") or False)
    assert told.get("gen_ai.request.max_tokens") == body.get("max_tokens")


async def test_it_stands_between_the_span_of_the_client_and_that_of_the_model_server(
    receiver: OtlpReceiver, aiohttp_server: AiohttpServer
) -> None:
    chat = ScriptedChat()
    server = await aiohttp_server(chat.app)
    settings = Settings(port=0, store="memory", backend=str(server.make_url("/v1")))
    headers = {"traceparent": f"00-{TRACE}-{PARENT_SPAN}-01"}
    with capture_logs() as logs:
        async with running_server(settings) as url, aiohttp.ClientSession() as session:
            for more in (headers, {}):
                async with session.post(f"{url}/responses", json={"model": "m", "input": "hi"}, headers=more):
                    pass
    lines = [line for line in logs if line.get("path") == "/responses"]
    below, alone = receiver.spans
    assert (below.trace_id.hex(), below.parent_span_id.hex()) == (TRACE, PARENT_SPAN)
    assert alone.parent_span_id == b""
    for span, asked, line in zip(receiver.spans, chat.requests, lines, strict=True):
        assert asked.headers["traceparent"].startswith(f"00-{span.trace_id.hex()}-{span.span_id.hex()}-")
        assert line["trace"] == span.trace_id.hex()


async def test_a_failure_is_an_error_with_its_code_and_none_of_its_words(receiver: OtlpReceiver) -> None:
    await ask(BackendError("Too long: my secret.", status=400, code="context_length_exceeded"))
    (span,) = receiver.spans
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert attributes_of(span)["error.type"] == "context_length_exceeded"
    assert attributes_of(span)["tagcall.outcome"] == "failed"
    assert "secret" not in str(span)


async def test_a_cut_answer_ended_for_its_length(receiver: OtlpReceiver) -> None:
    await ask([TextPiece("And"), TurnEnded(USAGE, "max_output_tokens")])
    assert attributes_of(receiver.spans[0])["gen_ai.response.finish_reasons"] == ["length"]
    assert attributes_of(receiver.spans[0])["tagcall.outcome"] == "incomplete"


async def test_a_client_that_leaves_ends_its_span_without_a_reason_to_finish(receiver: OtlpReceiver) -> None:
    gate = asyncio.Event()
    backend = HeldBackend(gate)
    async with running_server(Settings(port=0, store="memory"), backend) as url, aiohttp.ClientSession() as session:
        async with session.post(f"{url}/responses", json={**BODY, "stream": True}) as response:
            await response.content.readuntil(b"response.output_text.delta")
            response.close()
        async with asyncio.timeout(PATIENCE):
            await gate.wait()
    told = attributes_of(receiver.spans[0])
    assert told["tagcall.outcome"] == "left"
    assert "gen_ai.response.finish_reasons" not in told
    assert "error.type" not in told


class HeldBackend(MemoryBackend):
    """Says one word, and no more until its consumer leaves, which sets the gate."""

    def __init__(self, gate: asyncio.Event) -> None:
        super().__init__([])
        self._gate = gate

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        async def batches() -> AsyncIterator[Sequence[BackendEvent]]:
            yield [TextPiece("One ")]
            await self._gate.wait()

        try:
            yield batches()
        finally:
            self._gate.set()


async def test_a_second_answer_is_told_by_its_reason(receiver: OtlpReceiver) -> None:
    unknown = write_call("burn", "{}")
    await ask(unknown, unknown)
    told = attributes_of(receiver.spans[0])
    assert told["tagcall.reasons"] == ["undeclared"]
    assert told["tagcall.attempts"] == 2
    assert told["tagcall.said"].endswith("answered with nothing")


SAID: dict[str, Any] = {
    "model": "m",
    "instructions": "Be brief.",
    "tools": TOOLS,
    "input": [
        {"role": "user", "content": [
            {"type": "input_text", "text": "What is in a.md?"},
            {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
        ]},
        {"type": "function_call", "call_id": "call_1", "name": "read_note", "arguments": '{"path": "a.md"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "Beans."},
    ],
}  # fmt: skip


@pytest.mark.parametrize("value", ["true", "SPAN_ONLY", "span_and_event"])
async def test_words_leave_by_the_standard_switch(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(CONTENT, value)
    thought: list[BackendEvent] = [ReasoningPiece(0, "Beans "), ReasoningPiece(0, "again."), ReasoningEnded()]

    def answer(prompt: Prompt) -> str:
        return call(prompt).replace("a.md", "b.md")

    async with client(answer, [*thought, TextPiece("Be"), TextPiece("ans."), TurnEnded(USAGE)]) as (session, url):
        for _ in range(2):
            async with session.post(f"{url}/responses", json=SAID) as response:
                await response.read()
    called, answered = (attributes_of(span) for span in receiver.spans)
    assert json.loads(called["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be brief."}]
    assert json.loads(called["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [
            {"type": "text", "content": "What is in a.md?"}, {"type": "text", "content": "[an image]"},
        ]},
        {"role": "assistant", "parts": [
            {"type": "tool_call", "id": "call_1", "name": "read_note", "arguments": {"path": "a.md"}},
        ]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "Beans."}]},
    ]  # fmt: skip
    (message,) = json.loads(called["gen_ai.output.messages"])
    assert message["finish_reason"] == "tool_call"
    text, made = message["parts"]
    assert text == {"type": "text", "content": "I look."}
    assert made.pop("id").startswith("call_")
    assert made == {"type": "tool_call", "name": "read_note", "arguments": {"path": "b.md"}}
    assert json.loads(answered["gen_ai.output.messages"])[0]["parts"] == [
        {"type": "reasoning", "content": "Beans again."},
        {"type": "text", "content": "Beans."},
    ]


@pytest.mark.parametrize("value", [None, "false", "NO_CONTENT", "EVENT_ONLY"])
async def test_without_it_no_word_leaves(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is not None:
        monkeypatch.setenv(CONTENT, value)
    await ask(call, body=SAID)
    assert not any(word in str(receiver.spans) for word in ("Be brief", "a.md", "Beans", "I look"))


async def test_of_a_long_conversation_the_end_is_told(receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTENT, "true")
    long = [
        {"role": role, "content": f"{number} {'x' * MOST_OF_PART}"}
        for number in range(20)
        for role in ("user", "assistant")
    ]
    await ask("Hi.", body={"model": "m", "input": [*long, {"role": "user", "content": "Hi?"}]})
    told = attributes_of(receiver.spans[0])["gen_ai.input.messages"]
    messages = json.loads(told)
    assert len(told) <= MOST_OF_MESSAGES + len(messages) + 1
    assert messages[-1]["parts"] == [{"type": "text", "content": "Hi?"}]
    assert messages[-2]["parts"][0]["content"].startswith("19 x")
    assert messages[-2]["parts"][0]["content"].endswith(f"… ({MOST_OF_PART + 3} characters)")


async def test_the_names_and_headers_of_the_environment_are_taken(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "my notes")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=home")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic cGs6c2s=,x-langfuse-ingestion-version=4")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{receiver.url}/api/public/otel")
    await ask("Hi.")
    assert receiver.resource["service.name"] == "my notes"
    assert receiver.resource["deployment.environment.name"] == "home"
    (headers,) = receiver.headers
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == "Basic cGs6c2s="
    assert receiver.paths == ["/api/public/otel/v1/traces"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "")],
)
async def test_what_turns_it_off_is_heeded(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    await ask("Hi.")
    assert receiver.spans == []


async def test_a_receiver_that_is_not_there_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("proxy.ingress.spans.FAREWELL", 0.0)
    async with client("Hi.") as (session, url):
        async with session.post(f"{url}/responses", json=BODY) as response:
            assert response.status == 200


@asynccontextmanager
async def started() -> AsyncIterator[None]:
    async with client("Hi.") as (session, url):
        async with session.post(f"{url}/responses", json=BODY) as response:
            assert response.status == 200
        yield


async def test_where_it_is_asked_for_and_not_installed_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    async with started():
        pass
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "OTEL" in line]
    assert line.startswith(
        "tagcall: OTEL_EXPORTER_OTLP_ENDPOINT asks for spans, but OpenTelemetry is not installed here. Install it with "
    )
    assert "opentelemetry-exporter-otlp-proto-http" in line


async def test_a_protocol_that_is_not_spoken_is_told(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    async with started():
        pass
    assert "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, which tagcall does not speak" in capsys.readouterr().err
    assert receiver.spans == []


async def test_a_variable_that_says_nothing_of_use_costs_the_spans_and_not_the_server(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many")
    async with started():
        pass
    assert "OpenTelemetry cannot start, so no spans leave (OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in capsys.readouterr().err
    assert receiver.spans == []


def test_nothing_of_opentelemetry_is_loaded_unless_it_is_asked_for() -> None:
    code = (
        "import sys, proxy.server, proxy.cli.serve, proxy.ingress\n"
        "print([name for name in sys.modules if 'opentelemetry' in name or name == 'google.protobuf'])"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    ran = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


async def test_half_an_emoji_costs_no_span(receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTENT, "true")
    body = b'{"model": "m\\ud83d", "input": "What? \\ud83d", "instructions": "\\ud83d"}'
    async with client("Hi.") as (session, url):
        async with session.post(
            f"{url}/responses", data=body, headers={"Content-Type": "application/json"}
        ) as response:
            assert response.status == 200
    assert len(receiver.spans) == 1
