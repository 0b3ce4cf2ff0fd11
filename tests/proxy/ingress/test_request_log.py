"""The line that a request leaves in the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from parser import write_call
from proxy.contracts import TextPiece
from proxy.errors import BackendError
from proxy.ingress.request_log import RequestLog
from tests.support.http_client import client
from tests.support.memory_backend import Script


@pytest.mark.parametrize(("whole", "outcome", "status"), [(True, "done", 200), (False, "client gone", None)])
def test_a_client_that_hangs_up_has_gone_only_when_something_was_still_to_come(
    whole: bool, outcome: str, status: int | None
) -> None:
    entry = RequestLog("req_1", "POST", "/chat/completions", whole=whole)
    with capture_logs() as lines:
        entry.write(None)
    assert (lines[0]["outcome"], lines[0]["status"]) == (outcome, status)


async def line_of(method: str, path: str, *answers: Script, headers: Mapping[str, str] = {}, **body: Any) -> Any:
    """What a request to a server with these answers leaves in the log."""
    with capture_logs() as lines:
        async with client(*answers, api_key=("k",)) as (session, url):
            headers = {"Authorization": "Bearer k", **headers}
            async with session.request(method, url + path, headers=headers, json=body or None) as response:
                await response.read()
    (line,) = (line for line in lines if line["event"] == "request")
    return line


BROKEN = [TextPiece("Hel"), BackendError("x", status=503)]
DOWN = BackendError("Down.", status=503, code="overloaded")


@pytest.mark.parametrize(
    ("answers", "headers", "body", "told"),
    [
        (["Hello"], {}, {"input": "hi"}, (200, "done", None, None)),
        ([], {}, {"input": 5}, (400, "refused", "invalid_type", 400)),
        ([], {"Authorization": "Bearer x"}, {"input": "hi"}, (401, "refused", "invalid_api_key", 401)),
        ([DOWN], {}, {"input": "hi"}, (503, "failed", "overloaded", 503)),
        ([BROKEN], {}, {"input": "hi", "stream": True}, (200, "failed", "server_error", 503)),
    ],
    ids=["done", "not understood", "not let in", "failed at once", "failed in the middle"],
)
async def test_what_was_refused_or_failed_is_not_done(
    answers: list[Script], headers: dict[str, str], body: dict[str, Any], told: tuple[int, str, str | None, int | None]
) -> None:
    line = await line_of("POST", "/responses", *answers, headers=headers, model="m", **body)
    assert (line["status"], line["outcome"], line.get("error"), line.get("error_status")) == told


async def test_a_line_says_what_was_asked_of_which_model_and_what_it_took() -> None:
    line = await line_of("POST", "/responses", "Hello", model="m", input="hi", stream=True)
    told = ("method", "path", "model", "stream", "input_tokens", "cached_tokens", "output_tokens")
    assert [line[name] for name in told] == ["POST", "/responses", "m", True, 100, 40, 20]
    assert line["response"].startswith("resp_")
    assert 0 <= line["first_event_ms"] <= line["duration_ms"]
    assert "origin" not in line


async def test_a_line_names_the_tools_that_were_on_offer_and_called() -> None:
    tools = [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in ("read", "write")]
    line = await line_of("POST", "/responses", write_call("read", "{}"), model="m", input="hi", tools=tools)
    assert (line["tools"], line["calls"], line["stream"]) == (("read", "write"), ["read"], False)


READ = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}


async def test_rules_and_reasons_are_named_in_words() -> None:
    unfit, coerced = (write_call("read", f'{{"n": "{number}"}}') for number in ("x", "3"))
    line = await line_of("POST", "/responses", unfit, coerced, model="m", input="hi", tools=[READ])
    assert repr(line["again"]) == "['arguments_misfit']", "as a line of the log shows it"
    assert repr(line["repaired"]) == "{'coerced_number': 1}"


async def test_what_was_left_out_or_not_checked_is_said() -> None:
    too_long = BackendError("Too long.", status=400, code="context_length_exceeded")
    said = [{"role": role, "content": f"{role} " * 50} for role in ("user", "assistant", "user")]
    tools = [{**READ, "parameters": {"type": "nonsense"}, "strict": False}]
    more: dict[str, Any] = {"truncation": "auto", "tools": tools}
    line = await line_of("POST", "/responses", too_long, write_call("read", "{}"), model="m", input=said, **more)
    assert (line["truncated"], line["unchecked"]) == (2, {"the schema is none": 1})


@pytest.mark.parametrize(
    ("origin", "agent", "name"),
    [
        ("app://obsidian.md", "Mozilla/5.0", "Obsidian"),
        ("capacitor://localhost", "", "Obsidian"),
        ("", "OpenAI/Python 2.9.0", "OpenAI"),
        ("", "curl/8.1", "curl"),
        ("", "agent" * 9, "agent" * 8),
        ("", "", None),
    ],
)
async def test_a_client_is_named_in_a_word(origin: str, agent: str, name: str | None) -> None:
    line = await line_of("GET", "/models", headers={"Origin": origin, "User-Agent": agent})
    assert line.get("client") == name
