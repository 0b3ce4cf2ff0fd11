"""Bodies: what is read at all, how much of it, and that whatever stands in them is answered and not repeated."""

from __future__ import annotations

import asyncio
import copy
import json
from base64 import b64encode
from collections.abc import Callable
from threading import current_thread, main_thread
from typing import Any

import aiohttp
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.errors import RequestError
from proxy.ingress.bodies import BYTES_AT_ONCE, VALUES_AT_ONCE
from proxy.server import running_server
from proxy.settings import Settings
from proxy.wire import content
from proxy.wire.chat.request import parse_chat_request
from proxy.wire.json_body import MAX_DEPTH, MAX_VALUES, JsonObject, JsonValue, has_more, parse_json_object, writes_more
from proxy.wire.pdf import pdf_text
from proxy.wire.responses.request import parse_responses_request
from tests.support.cpu_time import any_round, cpu_seconds
from tests.support.http_client import client, connect, error_of
from tests.support.memory_backend import MemoryBackend
from tests.support.parts import text_of_parts
from tests.support.patience import PATIENCE
from tests.support.pdf import pdf
from tests.support.talking import talking

BODY: dict[str, Any] = {"model": "m", "input": "hi"}


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),
        ("text/plain; application/json", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/jsonp", 415),
        ("text/json", 415),
        ("", 415),
    ],
)
async def test_only_what_says_that_it_is_json_is_read(kind: str, status: int) -> None:
    async with client("Hello") as (session, url):
        body = orjson.dumps(BODY)
        async with session.post(f"{url}/responses", data=body, headers={"Content-Type": kind}) as response:
            assert response.status == status


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, identity", "GZIP", "x", "identity"])
async def test_a_compressed_body_is_not_unpacked(encoding: str) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    async with client("Hello") as (session, url):
        async with session.post(f"{url}/responses", data=orjson.dumps(BODY), headers=headers) as response:
            assert response.status == (200 if encoding == "identity" else 415)


HEAD = b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 17000000\r\n\r\n",
        b"Content-Length: 99999999999999\r\n\r\n{",
        b"Transfer-Encoding: chunked\r\n\r\n100000\r\n" + b" " * 0x100000 + b"\r\n",
    ],
    ids=["a little", "much", "chunks"],
)
async def test_a_body_over_the_limit_is_refused_before_it_has_come(rest: bytes) -> None:
    async with running_server(Settings(port=0, max_body=1_000_000), MemoryBackend([])) as url:
        reader, writer = await connect(url)
        writer.write(HEAD + rest)
        async with asyncio.timeout(PATIENCE):
            answer = await reader.readuntil(b"--max-body")
        writer.close()
    assert answer.split()[1] == b"413"


def nested(depth: int) -> dict[str, Any]:
    value: Any = []
    for _ in range(depth - 3):
        value = [value]
    return {**BODY, "metadata": {"a": value}}


def test_depth_and_counts_are_bounded() -> None:
    def code(body: Any) -> str | None:
        with pytest.raises(RequestError) as refused:
            parse_responses_request(parse_json_object(orjson.dumps(body)))
        return refused.value.code

    assert code(nested(MAX_DEPTH + 1)) == "invalid_value"
    assert code(nested(MAX_DEPTH)) == "invalid_type"  # read, and found to be no metadata
    tool: dict[str, Any] = {"type": "function", "name": "f", "parameters": {}}
    assert (
        code({**BODY, "tools": [{**tool, "name": f"f{number}"} for number in range(129)]}) == "array_above_max_length"
    )
    assert code({**BODY, "input": [{"role": "user", "content": "x"}] * 10_001}) == "array_above_max_length"
    schema = {"description": "x" * (256 * 1024)}
    assert code({**BODY, "tools": [{**tool, "parameters": schema}]}) is not None
    fits: list[JsonValue] = [{**tool, "name": f"f{number}"} for number in range(128)]
    assert len(parse_responses_request({**BODY, "tools": fits}).turn.registry) == 128
    for body in (b"[" * 100_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000):
        with pytest.raises(RequestError):
            parse_json_object(body)


def test_brackets_in_a_text_and_many_that_stand_beside_each_other_are_not_deep() -> None:
    body = {**BODY, "input": "[{" * 1000, "tools": [[{}]] * 1000}
    assert parse_json_object(orjson.dumps(body)) == body


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"cut \ud83d", "cut \ufffd"),
        (rb"\uDE00 cut", "\ufffd cut"),
        (rb"\ud83d\ud83d\ude00\ude00", "\ufffd\U0001f600\ufffd"),
        (rb"\ud83d\u0041\n", "\ufffdA\n"),
        (rb"\\ud83d \\\ud83d", "\\ud83d \\\ufffd"),
    ],
)
def test_half_an_emoji_is_read_as_a_replacement_character(written: bytes, read: str) -> None:
    assert parse_json_object(b'{"a": "' + written + b'"}') == {"a": read}


@given(st.lists(st.sampled_from(["\ud83d", "\ude00", "\\", '"', "u", "d83d", "\n", "\0", "a", "\U0001f600"])))
def test_what_javascript_writes_is_read_as_if_it_were_well_formed(pieces: list[str]) -> None:
    units = "".join(pieces).encode("utf-16-le", "surrogatepass")
    cut = units.decode("utf-16-le", "surrogatepass")
    whole = "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in cut)
    assert parse_json_object(json.dumps({"a": [cut], cut: 1}).encode()) == {"a": [whole], whole: 1}


@pytest.mark.parametrize(
    "body", [b'{"a": "\\ud83d\0"}', rb'{"a": "\ud83d" "b"}', rb'{"a": \ud83d}', rb'{"a": "\ud83d\ud8"}']
)
def test_half_an_emoji_excuses_no_broken_json(body: bytes) -> None:
    with pytest.raises(RequestError, match="not valid JSON"):
        parse_json_object(body)


def test_values_are_counted_before_they_are_read() -> None:
    """Commas and brackets in text are none; broken JSON is refused as such, or by what stands in it so far."""

    def refused(body: bytes) -> bool:
        try:
            parse_json_object(body)
        except RequestError as error:
            return f"{MAX_VALUES:,} values" in error.message
        return False

    for value, each in ((b"1", 1), (b"{}", 2), (b"[]", 2), (rb'"a\\"', 1), (rb'"\",["', 1), (b'{"a":[2]}', 3)):
        assert refused(b'{"a":[' + (value + b",") * (MAX_VALUES // each + 3) + b"1]}")
        assert not refused(b'{"a":[' + (value + b",") * (MAX_VALUES // each - 3) + b"1]}")
    for text in ("a, [b], {c}, ", 'quoted, \\", ', "\\\\, ", '\\\\\\"[,'):
        assert not refused(orjson.dumps({"a": [text * MAX_VALUES, text]}))
    assert refused(b'{"a":[' + b"{}," * MAX_VALUES)
    assert not refused(b'{"a":["' + b"{}," * MAX_VALUES)
    assert not refused(b'{"a":"b' + b'\\"' * MAX_VALUES + b",,")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a,[]{}"\\\n\u00e9'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('a,["\\'), inner),
    max_leaves=30,
)


def written(value: Any) -> int:
    """The members of all objects and arrays; one for an empty one."""
    match value:
        case dict():
            return max(1, len(value)) + sum(map(written, value.values()))
        case list():
            return max(1, len(value)) + sum(map(written, value))
        case _:
            return 0


@given(JSON)
def test_as_many_values_are_counted_as_there_are(value: Any) -> None:
    body = orjson.dumps(value)
    assert not writes_more(body, written(value))
    assert writes_more(body, written(value) - 1)


@given(JSON, st.integers(0, 40))
def test_all_that_is_in_a_value_counts_for_how_long_it_takes(value: Any, most: int) -> None:
    def within(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        return 1 + sum(map(within, inner))

    assert has_more(value, most) == (within(value) > most)
    assert has_more((value,), most) == (within(value) + 1 > most)


@pytest.mark.parametrize("body", [{"input": "x" * BYTES_AT_ONCE}, {"input": "x," * VALUES_AT_ONCE}, {}])
async def test_a_long_body_is_read_beside_the_loop(body: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def parse(read: bytes) -> JsonObject:
        threads.append(current_thread())
        return parse_json_object(read)

    monkeypatch.setattr("proxy.ingress.bodies.parse_json_object", parse)
    async with client("Hello") as (session, url), session.post(f"{url}/responses", json={**BODY, **body}) as response:
        assert response.status == 200
    assert (threads == [main_thread()]) == (not body)


@pytest.mark.growth
def test_all_limits_at_once_are_refused_in_a_moment() -> None:
    """As wide and as deep as 16 MiB can be; a moment is a few times what it takes to read their JSON."""
    part = {"type": "input_text", "text": "x"}
    schema: dict[str, Any] = {"a": [[[]]] * 500}
    bodies: list[dict[str, Any]] = [
        {**BODY, "input": [{"role": "user", "content": [part] * 30}] * 9_000},
        {**BODY, "tools": [{"type": "function", "name": f"f{number}", "parameters": schema} for number in range(128)]},
        {**BODY, "metadata": {str(number): "x" for number in range(200_000)}},
        {**BODY, "x": [nested(50)] * 10_000},
    ]
    for body in bodies:
        data = orjson.dumps(body)
        assert len(data) < 16 << 20
        for each in any_round():
            with each:
                took = cpu_seconds(lambda: refusal_of(parse_responses_request, data))  # noqa: B023 -- called here
                assert took < 50 * cpu_seconds(lambda: orjson.loads(data))  # noqa: B023 -- called here


# Whatever a client sends

OBJECT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
CALL = {"name": "f", "arguments": "{}"}
WHOLE: dict[str, dict[str, Any]] = {
    "responses": {
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "hi"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
                ],
            },
            {"type": "function_call", "call_id": "c", **CALL},
            {"type": "function_call_output", "call_id": "c", "output": "x"},
            {"type": "reasoning", "id": "rs_1", "summary": []},
        ],
        "tools": [
            {"type": "function", "name": "f", "description": "d", "parameters": OBJECT, "strict": True},
            {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
            {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g"}]},
        ],
        "tool_choice": {"type": "function", "name": "f"},
        "text": {"format": {"type": "json_schema", "name": "s", "schema": OBJECT}},
        "reasoning": {"effort": "low", "summary": "auto"},
        "metadata": {"a": "b"},
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 100,
        "temperature": 1,
        "top_p": 1,
        "truncation": "auto",
        "store": True,
    },
    "chat/completions": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": CALL}]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": OBJECT, "strict": True}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": OBJECT}},
        "stop": ["x"],
        "n": 1,
        "max_tokens": 5,
        "logit_bias": {"1": 1},
        "stream_options": {"include_usage": True},
        "metadata": {"a": "b"},
    },
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all members and elements in `value`."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, inner in pairs for found in [(*path, key), *places(inner, (*path, key))]]


def changed(body: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    body = copy.deepcopy(body)
    inside: Any = body
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return body


ODD_VALUES: list[Any] = [
    None, True, 0, -1, 1e308, 2**63, "", "x", "\u0000", "\U0001f600", [], [[]], {}, {"type": 1}, {"type": "x"}, [None],
    {"$ref": "#"}, {"type": "function"}, "https://example.com/a.png", "data:,x", {"": {"": ""}}, "a" * 70, ["x"] * 200,
]  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


def refusal_of(parse: Callable[[JsonObject], object], body: bytes) -> RequestError | None:
    """Why a body is refused, None when it is read. Anything else that is raised is a fault."""
    try:
        parse(parse_json_object(body))
    except RequestError as error:
        return error
    return None


@settings(max_examples=3 * settings().max_examples)
@given(st.data())
@pytest.mark.parametrize("api", WHOLE)
def test_a_request_with_anything_anywhere_is_read_or_refused(api: str, data: st.DataObject) -> None:
    body = WHOLE[api]
    for _ in range(data.draw(st.integers(1, 2))):
        value = data.draw(st.sampled_from(ODD_VALUES) | ANYTHING)
        body = changed(body, data.draw(st.sampled_from(places(body))), value)
    parse: Callable[[JsonObject], object] = parse_responses_request if api == "responses" else parse_chat_request
    refusal = refusal_of(parse, orjson.dumps(body))
    assert refusal is None or (400 <= refusal.status < 500 and len(refusal.message) < 2_000)


async def test_whatever_bytes_a_body_has_it_is_a_clear_400() -> None:
    bodies = [
        b"", b"\x00", b"null", b"[]", b'"x"', b"{", b'{"model":}', b"\xef\xbb\xbf{}", b'{"a":NaN}',
        b"\xff\xfe{\x00}\x00", b'{"a":"\xff"}', b"{}{}", b"[" * 2_000, b'{"model":"m","input":"hi"',
        b'{"a":' * 500 + b"1" + b"}" * 500, b'{"model":"m","input":1e999}', b"{'model':'m'}",
    ]  # fmt: skip
    async with client() as (session, url):
        for path in ("responses", "chat/completions", "responses/compact", "responses/input_tokens", "conversations"):
            for body in bodies:
                if (path, body) == ("conversations", b""):
                    continue  # no body is asked for there
                headers = {"Content-Type": "application/json"}
                async with asyncio.timeout(PATIENCE):
                    async with session.post(f"{url}/{path}", data=body, headers=headers) as response:
                        assert response.status == 400, (path, body)
                        assert (await error_of(response))["type"] == "invalid_request_error"


LONG = "Q" * 5_000
LONG_TARGETS = [
    ("GET", "models/Q"), ("GET", "responses/Q"), ("POST", "Q"), ("DELETE", "conversations/Q"), ("PUT", "responses/Q"),
    ("GET", "conversations/Q/items/Q"), ("POST", "responses/Q/cancel"), ("GET", "responses/x/input_items?limit=Q"),
    ("GET", "responses/x/input_items?order=Q"), ("GET", "models?Q"),
    ("GET", "responses/x?stream=true&starting_after=Q"),
]  # fmt: skip
LONG_HEADERS = [
    "Origin", "Host", "Content-Type", "Content-Encoding", "Sec-Fetch-Site", "x-tagcall-dialect", "Expect", "Upgrade",
    "Access-Control-Request-Headers", "Authorization",
]  # fmt: skip


async def test_no_error_repeats_more_than_200_characters_of_what_was_sent() -> None:
    errors = 0
    async with client(*["Hello"] * 1_000, store="none") as (session, url):

        async def ask(method: str, path: str, **request: Any) -> None:
            nonlocal errors
            async with session.request(method, f"{url}/{path}", **request) as response:
                text = await response.text()
                assert response.status < 500, (path, text)
                if response.status >= 400:
                    errors += 1
                    assert "Q" * 201 not in text, (path, request)
                assert not [name for name, value in response.headers.items() if "Q" * 201 in value]

        for api, body in WHOLE.items():
            for place in places(body):
                for odd in (LONG, {LONG: LONG}, [LONG], {"type": LONG}):
                    await ask("POST", api, json=changed(body, place, odd))
            await ask("POST", api, json={**body, LONG: LONG, "previous_response_id": LONG})
        for method, path in LONG_TARGETS:
            await ask(method, path.replace("Q", LONG))
        for header in LONG_HEADERS:
            await ask("POST", "responses", json={"model": "m"}, headers={header: LONG})
    assert errors > 300


@given(st.binary(max_size=60))
def test_any_bytes_as_a_body_are_a_request_error_or_an_object(body: bytes) -> None:
    refusal = refusal_of(lambda read: read, body)
    assert refusal is None or refusal.status == 400


@pytest.mark.parametrize("api", ["responses", "chat/completions"])
async def test_a_pdf_is_read_beside_the_other_requests(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[str] = []
    real = pdf_text

    def noted(data: bytes) -> str:
        readers.append(current_thread().name)
        return real(data)

    monkeypatch.setattr(content, "pdf_text", noted)
    data = b64encode(pdf("The answer is 42.")).decode()
    file = {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{data}"}
    bodies: dict[str, Any] = {
        "responses": {"input": [{"role": "user", "content": [{"type": "input_file", **file}]}]},
        "chat/completions": {"messages": [{"role": "user", "content": [{"type": "file", "file": file}]}]},
    }
    async with talking("Read.") as (openai, backend), aiohttp.ClientSession() as session:
        async with session.post(f"{openai.base_url}{api}", json={"model": "m", **bodies[api]}) as response:
            assert response.status == 200
    shown = text_of_parts(backend.prompts[0].parts)
    assert "File 'a.pdf':" in shown
    assert "The answer is 42." in shown
    assert readers != [main_thread().name]
    assert len(readers) == 1
