"""GET /metrics: what is counted, and that no label holds a word of anybody."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from parser import write_call
from proxy.contracts import Load, Prompt, TextPiece
from proxy.errors import BackendError
from proxy.ingress.metrics import (
    INTERRUPTIONS,
    LANE_REASONS,
    MALFORMED,
    METHODS,
    REFUSALS,
    SPOILING,
    TIERS,
)
from proxy.ingress.routes import ROUTES
from proxy.quota import Quota, QuotaWindow
from proxy.replay.key_placeholder import key_of
from proxy.server import running_server
from proxy.settings import Settings
from proxy.turn import Reason
from proxy.turn.reason import DOUBTS
from tests.support.http_client import client
from tests.support.memory_backend import MemoryBackend, Script
from tests.support.talking import GatedBackend, talking

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference" / "metrics.md").read_text("utf-8")
TOOLS = [{"type": "function", "name": "read_note", "parameters": {"type": "object"}, "strict": False}]
BODY: dict[str, Any] = {"model": "secret-model", "input": "hi"}

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def samples(session: aiohttp.ClientSession, url: str) -> Samples:
    async with session.get(url.removesuffix("/v1") + "/metrics") as response:
        assert response.status == 200
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = await response.text()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


async def told(load: Load = Load()) -> str:  # noqa: B008 -- nothing changes it
    """The page of a server whose backend has this load, and that has served nothing."""

    class Loaded(MemoryBackend):
        def load(self) -> Load:
            return load

    async with running_server(Settings(port=0), Loaded([])) as url, aiohttp.ClientSession() as session:
        async with session.get(url.removesuffix("/v1") + "/metrics") as response:
            return await response.text()


async def collected() -> list[Metric]:
    return [*text_string_to_metric_families(await told())]


def value(found: Samples, name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0.0)


async def test_results_that_were_made_to_pair_are_counted_and_logged() -> None:
    ask = {"role": "assistant", "tool_calls": [
        {"id": name, "type": "function", "function": {"name": "read_note", "arguments": "{}"}} for name in "ab"
    ]}  # fmt: skip
    merged = {"role": "tool", "tool_call_id": "a", "content": "one, two"}
    with capture_logs() as logs:
        async with client("So.") as (session, url):
            body = {"model": "m", "messages": [ask, merged, {"role": "user", "content": "hi"}]}
            async with session.post(url + "/chat/completions", json=body) as response:
                assert response.status == 200
            found = await samples(session, url)
    assert value(found, "tagcall_paired_results_total", kind="missing") == 1
    assert {"missing": 1} in [entry.get("paired") for entry in logs]


async def test_a_turn_is_counted_by_its_outcome_and_by_what_became_of_its_calls() -> None:
    quoted = write_call("read_note", '{"path": "quoted.md"}')

    def answer(prompt: Prompt) -> str:
        key = key_of(prompt.developer)
        meant = (("read_note", '{"path": "a.md"}'), ("read_note", "{'path': 'b.md',}"), ("delete_all", "{}"))
        return "\n".join((*(write_call(*call, key=key) for call in meant), f"> {quoted}"))

    async with client(answer, BackendError("Slow down.", status=429), "<tool_call>{]</tool_call>", "So.") as (
        session,
        url,
    ):
        for prompt in (f"Show {quoted}", "b", "c"):
            async with session.post(f"{url}/responses", json={**BODY, "tools": TOOLS, "input": prompt}) as response:
                await response.read()
        found = await samples(session, url)
    assert value(found, "tagcall_turns_total", outcome="completed") == 2
    assert value(found, "tagcall_turns_total", outcome="failed") == 1
    assert value(found, "tagcall_calls_total", tier="valid") == 1
    assert value(found, "tagcall_calls_total", tier="repaired") == 1
    assert value(found, "tagcall_repairs_total", rule="single-quotes") == 1
    assert value(found, "tagcall_repairs_total", rule="trailing-comma") == 1
    assert value(found, "tagcall_refusals_total", reason="quoted") == 1
    assert value(found, "tagcall_refusals_total", reason="undeclared") == 1
    assert value(found, "tagcall_refusals_total", reason="malformed") == 1
    assert value(found, "tagcall_second_answers_total", reason="malformed") == 1
    assert value(found, "tagcall_requests_total", route="/responses", method="POST", status="2xx") == 2
    assert value(found, "tagcall_requests_total", route="/responses", method="POST", status="4xx") == 1
    assert value(found, "tagcall_turn_duration_seconds_count") == 3
    assert value(found, "tagcall_first_event_seconds_count") == 2
    assert value(found, "tagcall_backend_starts_total") == 1


async def test_tokens_are_counted_by_model_and_key_and_stand_in_the_log(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("ada=sk-ada\nsk-nobody\n")
    with capture_logs() as logs:
        async with client(*["Hi."] * 3, api_key_file=file, store="memory") as (session, url):
            async with session.get(f"{url}/models", headers={"Authorization": "Bearer sk-ada"}) as response:
                assert response.status == 200
            for model, key in (("scripted", "sk-ada"), ("a client's word", "sk-ada"), ("scripted", "sk-nobody")):
                headers = {"Authorization": f"Bearer {key}"}
                async with session.post(f"{url}/responses", json={**BODY, "model": model}, headers=headers) as response:
                    assert response.status == 200
            session.headers["Authorization"] = "Bearer sk-ada"
            found = await samples(session, url)
    for model, key in (("scripted", "ada"), ("other", "ada"), ("scripted", "other")):
        for kind, tokens in (("input", 100), ("cached", 40), ("output", 20), ("reasoning", 5), ("cache_write", 0)):
            assert value(found, "tagcall_tokens_total", kind=kind, model=model, key=key) == tokens
    lines = [line for line in logs if line.get("path") == "/responses"]
    assert [line.get("key") for line in lines] == ["ada", "ada", None]
    assert {(line["input_tokens"], line["cached_tokens"], line["output_tokens"]) for line in lines} == {(100, 40, 20)}


async def test_the_tokens_of_answers_that_were_no_use_are_counted_with_the_turn_that_failed() -> None:
    """Two answers without the call that was demanded; and one that the backend broke off, of which it told nothing."""
    broken: Script = [TextPiece("So"), BackendError("Gone.")]
    with capture_logs() as logs:
        async with client("No.", "No.", broken) as (session, url):
            for more in ({"tools": TOOLS, "tool_choice": "required"}, {}):
                async with session.post(f"{url}/responses", json={**BODY, **more}) as response:
                    assert response.status in {422, 502}
            found = await samples(session, url)
    assert value(found, "tagcall_tokens_total", kind="input", model="other", key="other") == 200
    lines = [line for line in logs if line.get("path") == "/responses"]
    assert [line.get("output_tokens") for line in lines] == [40, None]


async def test_an_answer_that_is_cut_is_an_interrupt() -> None:
    answer = write_call("read_note", "{}") * 2
    async with client(answer, "x" * 900) as (session, url):
        for more in ({"tools": TOOLS, "parallel_tool_calls": False}, {"max_output_tokens": 16}):
            async with session.post(f"{url}/responses", json={**BODY, **more}) as response:
                await response.read()
        found = await samples(session, url)
    assert value(found, "tagcall_interrupts_total", reason="one_call") == 1
    assert value(found, "tagcall_interrupts_total", reason="max_output_tokens") == 1
    assert value(found, "tagcall_turns_total", outcome="incomplete") == 1


async def test_what_runs_is_seen_and_what_was_left_is_counted() -> None:
    backend = GatedBackend(["Hello"])
    async with talking(backend=backend) as (openai, _), aiohttp.ClientSession() as session:
        url = str(openai.base_url).rstrip("/")
        async with session.post(f"{url}/responses", json={**BODY, "stream": True}) as response:
            await response.content.readuntil(b"response.output_text.delta")
            found = await samples(session, url)
            assert value(found, "tagcall_turns_running") == 1
            assert value(found, "tagcall_backend_open_turns") == 1
        await backend.left.wait()
        found = await samples(session, url)
    assert value(found, "tagcall_turns_running") == 0
    assert value(found, "tagcall_turns_total", outcome="left") == 1
    assert value(found, "tagcall_requests_total", route="/responses", method="POST", status="gone") == 1
    assert value(found, "tagcall_backend_interrupts_total") == 1


async def test_turns_in_the_background_on_sockets_and_for_summaries_are_counted_too() -> None:
    async with talking("one", "two", "three") as (openai, _), aiohttp.ClientSession() as session:
        url = str(openai.base_url).rstrip("/")
        queued = await openai.responses.create(model="m", input="hi", background=True, stream=True)
        async for _ in queued:
            pass
        async with session.ws_connect(f"{url}/responses") as socket:
            await socket.send_json({"type": "response.create", **BODY})
            async for frame in socket:
                if "response.completed" in frame.data:
                    break
        async with session.post(f"{url}/responses/compact", json=BODY) as response:
            assert response.status == 200
        found = await samples(session, url)
    assert value(found, "tagcall_turns_total", outcome="completed") == 3
    assert value(found, "tagcall_requests_total", route="/responses", method="WS", status="2xx") == 1


async def test_nothing_that_a_client_sent_becomes_a_label() -> None:
    async with client("Hello", "Hi", api_key=("sesame",)) as (session, url):
        root, key = url.removesuffix("/v1"), {"Authorization": "Bearer sesame"}
        for method, path in (("POST", "/v1/responses"), ("GET", "/v1/models/secret-model"), ("GET", "/secret-path"),
                             ("SECRET", "/v1/responses"), ("GET", "/v1/responses/resp_secret?secret=1"),
                             ("POST", "/v1/responses?secret")):  # fmt: skip
            body = BODY if method == "POST" else None
            async with session.request(method, root + path, headers=key, json=body) as response:
                await response.read()
        async with session.get(f"{root}/metrics", headers=key) as response:
            text = await response.text()
        async with session.get(f"{root}/metrics") as response:
            assert response.status == 401
        async with session.get(f"{root}/metrics", headers={**key, "Host": "secret.example"}) as response:
            assert response.status == 421
    assert 'route="/models/{id*}"' in text
    assert "secret" not in text.lower().replace("tagcall_second", "")
    assert "sesame" not in text


# The dashboard


async def test_the_dashboard_asks_for_what_there_is() -> None:
    dashboard = orjson.loads((ROOT / "docs/howto/many-machines/grafana.json").read_bytes())
    families = {family.name: family for family in await collected()}
    named: dict[str, set[str]] = {}
    for name, family in families.items():
        labels = set(
            re.findall(r"`(\w+)`", rows("| metric |")[name + "_total" * (family.type == "counter")].split(" | ")[2])
        )
        suffixes = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}[family.type]
        named |= {name + suffix: labels | ({"le"} if suffix == "_bucket" else set()) for suffix in suffixes}
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert asked
    for expression in asked:
        (used,) = set(re.findall(r"tagcall_\w+", expression))
        assert used in named, expression
        groups = re.findall(r"by \(([\w, ]+)\)", expression) + re.findall(r"(\w+)=~?\"", expression)
        assert {label.strip() for group in groups for label in group.split(",")} <= named[used] | {"instance"}, (
            expression
        )


async def test_every_number_is_told_in_a_form_that_prometheus_reads() -> None:
    async with client("Hi.") as (session, url):
        async with session.post(f"{url}/responses", json=BODY) as response:
            assert response.status == 200
        async with session.get(url.removesuffix("/v1") + "/metrics") as response:
            text = await response.text()
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    for family in families:
        assert family.documentation.endswith("."), family.name
        assert family.type in {"counter", "gauge", "histogram"}, family.name
        assert re.fullmatch(r"tagcall(_[a-z]+)+", family.name)


# The page


def rows(heading: str) -> dict[str, str]:
    table = PAGE.split(heading)[1].split("\n\n")[0]
    return dict(re.findall(r"^\| `(\w+)`(.*) \|$", table, re.MULTILINE))


async def test_every_metric_is_documented_with_its_type_and_labels() -> None:
    families = {family.name + ("_total" if family.type == "counter" else ""): family for family in await collected()}
    documented = rows("| metric |")
    assert set(documented) == set(families)
    for name, row in documented.items():
        kind, labels = row.split(" | ")[1:3]
        assert families[name].type == kind, name
        assert len(re.findall(r"`(\w+)`", labels)) == labels.count("`") // 2


def asked_again() -> set[Reason]:
    """Why one more answer is asked for."""
    reasons = literals("proxy/turn/verdict.py", r"(?:Fault\(|return )Reason\.(\w+)\b")
    return {Reason[name] for name in reasons} | {*DOUBTS}


def test_every_value_of_a_label_is_documented() -> None:
    for values in (
        METHODS, asked_again(), REFUSALS | {MALFORMED},
        INTERRUPTIONS.values(), TIERS.values(), LANE_REASONS, SPOILING,
        {"continued", "fresh"}, {"completed", "incomplete", "failed", "left", "gone"},
    ):  # fmt: skip
        assert not [value for value in values if f"`{value}`" not in PAGE]
    assert "/metrics" in ROUTES


def literals(path: str, pattern: str) -> set[str]:
    return set(re.findall(pattern, (ROOT / path).read_text("utf-8")))


def test_what_a_turn_reports_is_known_by_its_name() -> None:
    """Else it would be counted as `other`, and nobody would see it."""
    cuts = literals("proxy/turn/reading.py", r'(?:Stop|_cut)\("([^"]+)"')
    cuts |= literals("proxy/turn/passed_calls.py", r'Stop\("([^"]+)"')
    ended = literals("parser/block.py", r'ReadingEnded\("([^"]+)"')
    assert cuts | ended == set(INTERRUPTIONS)
    spoilt = literals("proxy/turn/report.py", r'"(\w+)": self\.') | literals("proxy/turn/run.py", r'settle\("(\w+)"\)')
    spoilt |= literals("proxy/turn/lane_end.py", r'settle\("(\w+)"\)')
    assert spoilt | {"rewritten", "max_output_tokens", "content_filter"} == SPOILING
    assert literals("proxy/backends/codex/lanes.py", r'return "(\w+)"') <= LANE_REASONS
    refused = literals("proxy/turn/key_rule.py", r"Reason\.(\w+)")
    refused |= literals("proxy/turn/calls.py", r"Fate\.(?:GONE|TEXT|REFUSE), Reason\.(\w+)")
    assert {Reason[name] for name in refused} == REFUSALS


@pytest.mark.parametrize("load", [Load(3, 20, 2, 7)])
async def test_the_backends_load_is_told_as_it_is_now(load: Load) -> None:
    text = await told(load)
    for line in (
        "backend_open_turns 3.0",
        "backend_backlog 20.0",
        "backend_starts_total 2.0",
        "backend_interrupts_total 7.0",
    ):
        assert f"\ntagcall_{line}\n" in text


async def test_of_the_limits_of_some_models_the_worst_is_told_and_no_name() -> None:
    def quota(limit: str, used: int) -> Quota:
        return Quota(limit, (QuotaWindow("primary", used, 300, 1000 + used), QuotaWindow("secondary", used)), used)

    text = await told(Load(quota=(quota("codex", 10), quota("a-model", 100), quota("b-model", 30))))
    assert sorted(line for line in text.splitlines() if line.startswith("tagcall_quota_")) == [
        'tagcall_quota_exhausted{limit="codex"} 0.0',
        'tagcall_quota_exhausted{limit="other"} 1.0',
        'tagcall_quota_left_ratio{limit="codex",window="primary"} 0.9',
        'tagcall_quota_left_ratio{limit="codex",window="secondary"} 0.9',
        'tagcall_quota_left_ratio{limit="other",window="primary"} 0.0',
        'tagcall_quota_left_ratio{limit="other",window="secondary"} 0.0',
        'tagcall_quota_resets_timestamp_seconds{limit="codex",window="primary"} 1010.0',
        'tagcall_quota_resets_timestamp_seconds{limit="other",window="primary"} 1100.0',
        'tagcall_quota_told_timestamp_seconds{limit="codex"} 10.0',
        'tagcall_quota_told_timestamp_seconds{limit="other"} 100.0',
    ]
