"""Why no call was made: each cause with its sentence on the page, in `tagcall log`, on the terminal's line and in the
answer's head."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import structlog

from parser import write_call
from proxy.cli.log import _line
from proxy.contracts import Prompt, TextPiece, TurnEnded
from proxy.logs import request_line
from proxy.replay.key_placeholder import key_of
from tests.proxy.ingress.inspect.test_page import detail, turns
from tests.support.http_client import client
from tests.support.memory_backend import USAGE, Script

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
TOOLS: list[Any] = [
    {"type": "function", "name": "localSearch", "parameters": SCHEMA, "strict": False},
    {"type": "function", "name": "readNote", "parameters": {"type": "object"}, "strict": False},
]
BODY: dict[str, Any] = {"model": "m", "input": "Find the beans.", "tools": TOOLS}


def keyed(name: str, arguments: str) -> Callable[[Prompt], str]:
    return lambda prompt: write_call(name, arguments, key=key_of(prompt.developer))


def fenced(prompt: Prompt) -> str:
    return f"So you would write:\n```\n{keyed('readNote', '{}')(prompt)}\n```\nThat is all."


CUT: Script = [
    TextPiece('I look. <tool_call>{"name": "localSearch", "arguments": {"query": "bea'),
    TurnEnded(USAGE, "max_output_tokens"),
]


GOOD = keyed("localSearch", '{"query": "beans"}')
BAD = '<tool_call>{"name": "readNote", "arguments": [1}}</tool_call>'
RM = keyed("delete_everything", "{}")
JSON = '{"name": "readNote", "arguments": {"path": "a.md"}}'


class Why(NamedTuple):
    """What a model answers, what is said of it, what the client is warned of, and the marks of its blocks."""

    answers: Sequence[Script]
    said: str
    warned: str | None
    marks: Sequence[tuple[str, str | None]]
    text: str | None = None
    body: dict[str, Any] = BODY


LOOP = [
    {"role": "user", "content": BODY["input"]},
    *({"type": "function_call", "call_id": f"c{n}", "name": "readNote", "arguments": "{}"} for n in range(2)),
    *({"type": "function_call_output", "call_id": f"c{n}", "output": "Beans."} for n in range(2)),
]
NOT_SHOWN = "The model asked for a tool that was not offered (`delete_everything`), and said nothing else."
CAUSES: dict[str, Why] = {
    "in a code fence": Why(
        [fenced],
        "no call left: the block of readNote stands in a code fence, so it was shown",
        "left as text: it was taken for a quotation",
        [],
    ),
    "bare JSON": Why(
        [f"Here:\n```json\n{JSON}\n```"],
        "no call left: JSON of readNote without the tags of a call, so it was shown",
        "A call of the tool 'readNote' left as text: it has no tags.",
        [],
    ),
    "[tool] and JSON": Why(
        ['I search.\n[localSearch] {"query": "beans"}'],
        "no call left: JSON of localSearch without the tags of a call, so it was shown",
        "A call of the tool 'localSearch' left as text: it has no tags.",
        [],
    ),
    "announced and not made": Why(["I will search your notes now."], "2 tools offered, none asked for", None, []),
    "loop at its end": Why(
        ["Both notes have them."], "answered from the results of 2 calls", None, [], body={**BODY, "input": LOOP}
    ),
    "undeclared": Why(
        [RM, RM],
        "asked again: delete_everything is not among the tools that were offered; the second answer left no call: "
        "delete_everything is not among the tools that were offered; answered with nothing",
        "A call of 'delete_everything' was taken out, because no such tool is offered.",
        [("refused", "delete_everything")] * 2,
        NOT_SHOWN,
    ),
    "cut": Why(
        [CUT],
        "the answer was cut in the middle of a call of localSearch",
        None,
        [("cut", "localSearch")],
    ),
    "bad JSON": Why(
        [BAD, GOOD],
        "asked again: a call of readNote could not be read, and the second answer could; called localSearch",
        None,
        [("refused", "readNote"), ("valid", "localSearch")],
    ),
    "mended": Why(
        [lambda prompt: GOOD(prompt).replace('"beans"}', '"beans",}')],
        "called localSearch (mended: trailing comma)",
        None,
        [("repaired", "localSearch")],
    ),
    "renamed": Why(
        [keyed("local_search", '{"query": "beans"}')],
        "called localSearch, renamed from local_search",
        "A call of 'local_search' left as one of 'localSearch', which was meant.",
        [("repaired", "localSearch")],
    ),
    "misfit": Why(
        [keyed("localSearch", "{}"), GOOD],
        "asked again: the arguments did not fit localSearch (query is missing), and the second answer did; "
        "called localSearch",
        None,
        [("discarded", "localSearch"), ("valid", "localSearch")],
    ),
    "misfit again": Why(
        [keyed("localSearch", "{}")] * 2,
        "asked again: the arguments did not fit localSearch (query is missing), and the second answer was no better; "
        "called localSearch although its arguments do not fit (query is missing)",
        "A call of the tool 'localSearch' left with arguments that do not fit its schema.",
        [("discarded", "localSearch"), ("does not fit", "localSearch")],
    ),
    "nothing": Why([""], "answered with nothing", None, [], "The model answered with nothing."),
}  # fmt: skip


@pytest.mark.parametrize("cause", CAUSES)
async def test_each_cause_has_its_sentence_wherever_somebody_looks(cause: str) -> None:
    why = CAUSES[cause]
    with structlog.testing.capture_logs() as logged:
        async with client(*why.answers, inspect=True) as (session, url):
            async with session.post(f"{url}/responses", json=why.body) as response:
                head, body = response.headers, await response.json()
            (row,) = await turns(session, url)
            shown = await detail(session, url, row["id"])
    (line,) = (each for each in logged if each["event"] == "request" and "model" in each)
    assert row["said"] == why.said
    assert shown["said"] == why.said
    assert why.said in _line(row)
    assert why.said in request_line({**line, "timestamp": "12:00:00"})
    assert head["x-tagcall-turn"] == why.said
    assert (why.warned or "") in head.get("x-tagcall-warning", "")
    assert ("x-tagcall-warning" in head) is (why.warned is not None)
    assert [(call["mark"], call["name"]) for call in row["calls"]] == list(why.marks)
    text = "".join(part["text"] for item in body["output"] if item["type"] == "message" for part in item["content"])
    if why.text is not None:
        assert text == why.text
    assert row["question"] == "Find the beans."
    assert row["tools"] == len(TOOLS)


async def marked(cause: str) -> list[dict[str, Any]]:
    """The blocks of its turn, as the page gets them with their words."""
    async with client(*CAUSES[cause].answers, inspect=True) as (session, url):
        async with session.post(f"{url}/responses", json=BODY) as response:
            await response.read()
        (row,) = await turns(session, url)
        blocks: list[dict[str, Any]] = (await detail(session, url, row["id"]))["blocks"]
        return blocks


async def test_a_mark_says_what_became_of_its_call() -> None:
    (renamed,) = await marked("renamed")
    assert (renamed["mark"], renamed["why"]) == ("repaired", ["renamed from local_search"])
    thrown_away, left = await marked("misfit again")
    assert (thrown_away["mark"], thrown_away["attempt"]) == ("discarded", 1)
    assert thrown_away["why"][0] == "the arguments did not fit localSearch (query is missing)"
    assert (left["mark"], left["why"]) == ("does not fit", ["'query' is a required property"])
    _, valid = await marked("misfit")
    assert (valid["mark"], valid["why"]) == ("valid", [])


async def test_a_refused_block_has_the_name_and_the_arguments_that_it_had() -> None:
    refused, valid = await marked("bad JSON")
    assert (refused["mark"], refused["name"], refused["block"]) == ("refused", "readNote", BAD)
    assert '"arguments": {"query": "beans"}' in valid["block"]
    for undeclared in await marked("undeclared"):
        assert (undeclared["mark"], undeclared["name"]) == ("refused", "delete_everything")
        assert undeclared["why"][0] == "delete_everything is not among the tools that were offered"
        assert '"arguments": {}' in undeclared["block"]


@pytest.mark.parametrize(
    ("cause", "reasons"),
    [
        ("in a code fence", ["quoted"]), ("bare JSON", ["untagged"]), ("undeclared", ["undeclared"]), ("cut", ["cut"]),
        ("bad JSON", ["malformed"]), ("misfit", ["arguments_misfit"]), ("renamed", []), ("nothing", []),
    ],
)  # fmt: skip
async def test_a_turn_is_found_by_its_reason_whose_words_the_page_knows(cause: str, reasons: list[str]) -> None:
    async with client(*CAUSES[cause].answers) as (session, url):
        async with session.post(f"{url}/responses", json=BODY) as response:
            await response.read()
        (row,) = await turns(session, url)
        async with session.get(url.replace("/v1", "/inspect/state")) as response:
            words = (await response.json())["reasons"]
    assert row["reasons"] == reasons
    assert all(words[reason] and "_" not in words[reason] for reason in reasons)


DOCS = Path(__file__).parents[3] / "docs"
SAID = [text for why in CAUSES.values() for text in (why.said, why.text) if text]


def lines_of(page: str, word: str) -> str:
    """Those of the first paragraph or row of a page that has this word."""
    text = (DOCS / page).read_text("utf-8")
    parts = re.split(r"\n(?=\||\n)", text)
    return next(" ".join(part.split()) for part in parts if word in part)


def is_said(sentence: str) -> bool:
    """Whether it is one of them as a whole; three dots stand for anything."""
    pattern = ".*".join(map(re.escape, sentence.split("...")))
    return any(re.fullmatch(pattern, said) for said in SAID)


def test_the_page_on_the_page_lists_what_is_said() -> None:
    table = (DOCS / "howto" / "inspect.md").read_text("utf-8").partition("| the sentence |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([^|-][^|]*) \|", table, re.MULTILINE)
    assert len(rows) == 9
    assert [row for row in rows if not is_said(row)] == []


@pytest.mark.parametrize(
    ("page", "word", "count"),
    [
        ("howto/obsidian/troubleshooting.md", "The model answered with nothing", 2),
        ("howto/obsidian/troubleshooting.md", "announces a search and stops", 2),
        ("reference/reliability.md", "the client gets one sentence", 1),
    ],
)
def test_what_other_pages_quote_is_said(page: str, word: str, count: int) -> None:
    quotes = re.findall(r'"([^"]+)"', lines_of(page, word))
    assert len(quotes) == count
    assert [quote for quote in quotes if not is_said(f"...{quote}...")] == []


@pytest.mark.parametrize("path", ["/responses", "/chat/completions"])
async def test_an_empty_answer_is_told_as_ours_on_each_api_and_left_alone_where_that_is_wanted(path: str) -> None:
    body = BODY if path == "/responses" else {
        "model": "m", "messages": [{"role": "user", "content": "Find the beans."}],
        "tools": [{"type": "function", "function": {"name": tool["name"]}} for tool in TOOLS],
    }  # fmt: skip
    for chosen, told in (("sentence", True), ("empty", False)):
        for stream in (False, True):
            with structlog.testing.capture_logs() as logged:
                async with client(RM, RM, empty_answers=chosen) as (session, url):
                    async with session.post(f"{url}{path}", json={**body, "stream": stream}) as response:
                        answer = await response.text()
            assert (json.dumps(NOT_SHOWN)[1:-1] in answer) is told
            if stream and path == "/responses":
                assert ": x-tagcall-warning: A call of 'delete_everything' was taken out" in answer
            (line,) = (each for each in logged if each["event"] == "request" and "model" in each)
            assert line["answered_nothing"] == chosen
            assert "A call of 'delete_everything' was taken out, because no such tool is offered." in line["warnings"]


async def test_where_json_is_asked_for_no_sentence_stands_in_its_place() -> None:
    wanted = {**BODY, "text": {"format": {"type": "json_object"}}}
    async with client(RM, RM, RM) as (session, url):
        async with session.post(f"{url}/responses", json=wanted) as response:
            assert "asked for a tool" not in await response.text()


@pytest.mark.parametrize("name", ["x" * 300, "rm -rf /", "d\u00e9truire", "a\nb"])
async def test_a_name_is_told_only_where_it_is_one_and_never_longer_than_64_characters(name: str) -> None:
    call = keyed(name, "{}")
    async with client(call, call) as (session, url):
        async with session.post(f"{url}/responses", json=BODY) as response:
            head = response.headers
    told = head["x-tagcall-warning"] + head["x-tagcall-turn"]
    assert name not in told
    assert ("x" * 64 in told) is (name == "x" * 300)
    assert "x" * 65 not in told
    assert told.isascii()
