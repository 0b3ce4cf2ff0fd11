"""The replay app-server over its real pipes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.proxy.replay.child import (
    Message,
    answered,
    asked,
    counted,
    is_end,
    item,
    replay_child,
    said,
    write_fixture,
)

HOUR = 3600.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_fixture(tmp_path, "greeting", [asked("hi"), *answered(["Hel", "lo ", "you"])], model="gpt-x")
    slow = answered(["Once", " upon"])
    slow[-2:] = [line | {"t": HOUR} for line in slow[-2:]]
    write_fixture(tmp_path, "story", [asked("tell me a story"), *slow])
    return tmp_path


async def test_a_whole_conversation_looks_like_the_real_one(folder: Path) -> None:
    async with replay_child(folder) as child:
        assert (await child.initialize())["result"]["userAgent"].startswith("test/0.169.0 ")
        assert (await child.request("account/read"))["result"] == {"account": None, "requiresOpenaiAuth": False}
        assert [model["id"] for model in (await child.request("model/list"))["result"]["data"]] == ["replay", "gpt-x"]
        thread_id, turn_id = await child.start_turn("hi")
        turn = await child.finish(thread_id)
    assert turn == {"id": turn_id, "status": "completed", "error": None}
    notifications = [message for message in child.heard if "method" in message]
    assert [message["method"] for message in notifications] == [
        "thread/started",
        "turn/started",
        "item/started",
        "item/completed",
        "item/started",
        "item/agentMessage/delta",
        "item/agentMessage/delta",
        "item/agentMessage/delta",
        "item/completed",
        "turn/completed",
    ]
    echo = notifications[2]["params"]["item"]
    assert echo["type"] == "userMessage"
    assert echo["content"] == [{"type": "text", "text": "hi", "text_elements": []}]
    assert all(message["params"]["threadId"] == thread_id for message in notifications[1:])
    assert notifications[8]["params"]["item"]["text"] == "Hello you"


async def test_who_does_not_say_who_asks_is_refused_and_may_say_it_then(folder: Path) -> None:
    async with replay_child(folder) as child:
        for asked_by in ({}, {"clientInfo": {"version": "1"}}):
            refused = await child.request("initialize", **asked_by)
            assert refused["error"]["message"] == "Invalid request: missing field `clientInfo`"
        await child.initialize()
        assert (await child.initialize())["error"]["message"] == "Already initialized"
        assert (await child.request("thread/start", cwd="/work"))["result"]["cwd"] == "/work"


async def test_the_text_can_be_cut_anew(folder: Path) -> None:
    async with replay_child(folder, "--chunk", "4") as child:
        await child.initialize()
        thread_id, turn_id = await child.start_turn("hi")
        await child.finish(thread_id)
    assert child.deltas(turn_id) == ["Hell", "o yo", "u"]


async def test_fast_does_not_wait_for_recorded_pauses(folder: Path) -> None:
    async with replay_child(folder) as child:
        await child.initialize()
        assert await child.ask("tell me a story") == "Once upon"


async def test_recorded_speed_waits(folder: Path) -> None:
    write_fixture(folder, "pause", [asked("pause"), *answered(["x"], at=0.2)])
    async with replay_child(folder, "--speed", "recorded") as child:
        await child.initialize()
        thread_id, _ = await child.start_turn("tell me a story")
        assert await child.ask("pause") == "x"
        assert not [
            message for message in child.heard if is_end(message) and message["params"]["threadId"] == thread_id
        ]


async def test_an_interrupt_ends_a_turn_in_the_middle_of_its_text(folder: Path) -> None:
    async with replay_child(folder, "--speed", "recorded") as child:
        await child.initialize()
        thread_id, turn_id = await child.start_turn("tell me a story")
        await child.until(lambda message: message.get("method") == "item/agentMessage/delta")
        assert (await child.request("turn/interrupt", threadId=thread_id, turnId=turn_id))["result"] == {}
        turn = await child.finish(thread_id)
        assert (turn["id"], turn["status"]) == (turn_id, "interrupted")
        refused = await child.request("turn/interrupt", threadId=thread_id, turnId=turn_id)
        assert refused["error"] == {"code": -32600, "message": "no active turn to interrupt"}
        assert await child.ask("hi") == "Hello you"
    assert (
        len([message for message in child.heard if is_end(message) and message["params"]["turn"]["id"] == turn_id]) == 1
    )


async def test_two_turns_play_at_once(folder: Path) -> None:
    async with replay_child(folder, "--speed", "recorded") as child:
        await child.initialize()
        slow_thread, slow_turn = await child.start_turn("tell me a story")
        await child.until(lambda message: message.get("params", {}).get("delta") == " upon")
        assert await child.ask("hi") == "Hello you"
        assert (await child.request("thread/loaded/list"))["result"]["data"][0] == slow_thread
        await child.request("turn/interrupt", threadId=slow_thread, turnId=slow_turn)
        await child.finish(slow_thread)
    assert child.deltas(slow_turn) == ["Once", " upon"]


async def test_a_turn_that_nothing_answers_fails_and_says_why(folder: Path) -> None:
    async with replay_child(folder) as child:
        await child.initialize()
        thread_id, turn_id = await child.start_turn("tell me a joke")
        turn = await child.finish(thread_id)
    assert turn["status"] == "failed"
    assert turn["error"]["codexErrorInfo"] == "badRequest"
    assert turn["error"]["message"] == (
        'No fixture answers this turn. The nearest is story: at character 11 it has "tell me a story '
        '(before any call)" where the turn has "tell me a joke (before any call)".'
    )
    error = child.heard[-2]
    assert error["method"] == "error"
    assert error["params"] == {"error": turn["error"], "willRetry": False, "threadId": thread_id, "turnId": turn_id}


async def test_fixtures_with_one_ask_are_played_in_turn_and_the_last_one_again(tmp_path: Path) -> None:
    for name in ("1", "2"):
        write_fixture(tmp_path, name, [asked("again"), *answered([name])])
    async with replay_child(tmp_path) as child:
        await child.initialize()
        assert [await child.ask("again") for _ in range(3)] == ["1", "2", "2"]


async def test_the_attempts_of_one_request_are_played_in_turn_and_then_anew(tmp_path: Path) -> None:
    again = [asked("hi"), *answered(["second"])]
    for line in again:
        line["msg"]["params"]["threadId"] = "T2"
    write_fixture(tmp_path, "case", [asked("hi"), *answered(["first"]), *again])
    async with replay_child(tmp_path) as child:
        await child.initialize()
        assert [await child.ask("hi") for _ in range(4)] == ["first", "second", "first", "second"]


async def test_a_model_may_name_the_fixture(tmp_path: Path) -> None:
    for name in ("1", "2"):
        write_fixture(tmp_path, name, [asked("again"), *answered([name])])
    async with replay_child(tmp_path) as child:
        await child.initialize()
        assert await child.ask("again", model="fixture:2") == "2"
        thread_id, _ = await child.start_turn("something else", model="fixture:2")
        turn = await child.finish(thread_id)
        thread_id, _ = await child.start_turn("again", model="fixture:3")
        unknown = await child.finish(thread_id)
    assert "The nearest is 2:" in turn["error"]["message"]
    assert unknown["error"]["message"].endswith('none has the name of the model "fixture:3".')


async def test_pieces_come_at_a_fixed_pace(folder: Path) -> None:
    async with replay_child(folder, "--speed", "50ms") as child:
        await child.initialize()
        begin = asyncio.get_running_loop().time()
        assert await child.ask("hi") == "Hello you"
        assert asyncio.get_running_loop().time() - begin >= 0.15


async def test_developer_instructions_do_not_decide(folder: Path) -> None:
    async with replay_child(folder) as child:
        await child.initialize()
        thread = (await child.request("thread/start", developerInstructions="tell me a story"))["result"]["thread"][
            "id"
        ]
        await child.request("turn/start", threadId=thread, input=[{"type": "text", "text": "hi"}])
        assert (await child.finish(thread))["status"] == "completed"


KEY = "0abcdefghi"
CALL = '<tool_call>{"key": "[call key]", "name": "search", "arguments": {}}</tool_call>'
DEVELOPER = f'Write <tool_call>{{"key": "{KEY}", "name": "...", "arguments": {{}}}}</tool_call>.'
QUESTION = "Where are the beans?"
# The same conversation as one text, as it was shown before there were items.
PAGE = f"So far:\n\n[user] {QUESTION}\n\n[assistant]\n{CALL}\n\n[tool:call_1] North.\n  And south."
RESULT = "[tool:call_9] Nowhere.\nReally."


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    """A question that is answered with a call, and its answer after the result."""
    write_fixture(tmp_path, "1-calls", [asked(QUESTION), *answered([CALL])])
    write_fixture(tmp_path, "2-answers", [asked(PAGE), *answered(["In the north."])])
    write_fixture(tmp_path, "3-thanks", answered(["Welcome."]), ask={"last_user": "Thanks!"})
    return tmp_path


async def test_a_thread_that_goes_on_is_asked_with_what_it_holds(loop: Path) -> None:
    async with replay_child(loop, "--chunk", "3") as child:
        await child.initialize()
        thread = await child.start_thread(developerInstructions=DEVELOPER)
        assert await child.go_on(thread, QUESTION) == CALL.replace("[call key]", KEY)
        assert await child.go_on(thread, RESULT) == "In the north."
        assert await child.go_on(thread, "Thanks!", "Answer in plain text.") == "Welcome."
        assert await child.ask(QUESTION) == CALL


async def test_older_messages_may_be_injected(loop: Path) -> None:
    call = item("assistant", CALL.replace("[call key]", KEY))
    question, result = item("user", QUESTION), item("user", RESULT)
    async with replay_child(loop) as child:
        await child.initialize()
        for items, turn in (([question, call], [RESULT]), ([question, call, result], [])):
            thread = await child.start_thread(developerInstructions=DEVELOPER)
            assert (await child.request("thread/inject_items", threadId=thread, items=items))["result"] == {}
            assert await child.go_on(thread, *turn) == "In the north."
            await child.request("thread/inject_items", threadId=thread, items=[item("developer", "Be brief.")])
            assert await child.go_on(thread, "Thanks!") == "Welcome."


async def test_a_turn_without_input_is_not_echoed(loop: Path) -> None:
    async with replay_child(loop) as child:
        await child.initialize()
        thread = await child.start_thread()
        await child.request("thread/inject_items", threadId=thread, items=[item("user", "Thanks!")])
        await child.go_on(thread)
    assert not [line for line in child.heard if line.get("params", {}).get("item", {}).get("type") == "userMessage"]


async def test_a_thread_that_nothing_answers_fails_and_goes_on(loop: Path) -> None:
    async with replay_child(loop) as child:
        await child.initialize()
        thread = await child.start_thread()
        await child.go_on(thread, QUESTION)
        await child.request("turn/start", threadId=thread, input=[{"type": "text", "text": "Where is the rake?"}])
        turn = await child.finish(thread)
        assert "(before any call)" in turn["error"]["message"]
        assert await child.go_on(thread, "Thanks!") == "Welcome."


async def test_the_tokens_of_a_thread_add_up(tmp_path: Path) -> None:
    for name, tokens in (("one", 10), ("two", 7)):
        *before, end = answered([name])
        write_fixture(tmp_path, name, [asked(name), *before, counted(tokens, tokens), end])
    async with replay_child(tmp_path) as child:
        await child.initialize()
        thread = await child.start_thread()
        for name in ("one", "two", "one"):
            await child.go_on(thread, name)
    told = [line["params"]["tokenUsage"] for line in child.heard if line.get("method") == "thread/tokenUsage/updated"]
    assert [(usage["last"]["inputTokens"], usage["total"]["inputTokens"]) for usage in told] == [
        (10, 10),
        (7, 17),
        (10, 27),
    ]


async def test_a_turn_may_name_another_model_which_the_thread_keeps(tmp_path: Path) -> None:
    for name in ("1", "2"):
        write_fixture(tmp_path, name, [asked("again"), *answered([name])])
    async with replay_child(tmp_path) as child:
        await child.initialize()
        thread = await child.start_thread(model="fixture:1")
        assert await child.go_on(thread, "again", model="fixture:2") == "2"
        assert await child.go_on(thread, "again") == "2"


async def test_requests_of_the_recorded_server_are_made_again_under_new_ids(tmp_path: Path) -> None:
    approval = said(0.0, "item/commandExecution/requestApproval", turnId="U")
    approval["msg"]["id"] = 7
    write_fixture(tmp_path, "approval", [asked("hi"), approval, *answered(["x"])])
    async with replay_child(tmp_path) as child:
        await child.initialize()
        await child.ask("hi")
        request = next(message for message in child.heard if message.get("method", "").endswith("requestApproval"))
        child.say({"id": request["id"], "result": {"decision": "decline"}})
        assert await child.ask("hi") == "x"
    assert request["id"] == 0


async def test_notifications_are_left_out_on_request(folder: Path) -> None:
    async with replay_child(folder) as child:
        await child.initialize(optOutNotificationMethods=["item/started", "thread/started"])
        await child.ask("hi")
    assert not [message for message in child.heard if message.get("method") in {"item/started", "thread/started"}]


REFUSED: list[tuple[str, Message, str]] = [
    ("initialize", {"clientInfo": {"name": "again"}}, "Already initialized"),
    ("no/such", {}, "Invalid request: unknown variant `no/such`"),
    ("turn/start", {"input": []}, "Invalid request: missing field `threadId`"),
    ("turn/start", {"threadId": "x", "input": []}, "thread not found: x"),
    ("turn/start", {"threadId": 1, "input": []}, "Invalid request: invalid type for `threadId`"),
    ("thread/archive", {"threadId": "x"}, "thread not found: x"),
]


async def test_requests_are_refused_in_the_words_of_the_real_one(folder: Path) -> None:
    async with replay_child(folder) as child:
        early = await child.request("thread/start")
        assert early["error"] == {"code": -32600, "message": "Not initialized"}
        await child.initialize()
        for method, params, sentence in REFUSED:
            error = (await child.request(method, **params))["error"]
            assert error["code"] == -32600
            assert error["message"].startswith(sentence)


async def test_requests_about_a_thread(folder: Path) -> None:
    async with replay_child(folder, "--speed", "recorded") as child:
        await child.initialize()
        thread = (await child.request("thread/start"))["result"]["thread"]["id"]
        probe = await child.request("thread/inject_items", threadId=thread, items=[])
        assert probe["error"]["message"] == "items must not be empty"
        bad = await child.request("thread/inject_items", threadId=thread, items=[item("user", "a"), {}])
        assert bad["error"]["message"] == "items[1] is not a valid response item: missing field `type`"
        assert (
            "missing field `items`" in (await child.request("thread/inject_items", threadId=thread))["error"]["message"]
        )
        assert "missing field `input`" in (await child.request("turn/start", threadId=thread))["error"]["message"]
        assert (await child.request("thread/unsubscribe", threadId=thread))["result"] == {"status": "unsubscribed"}
        assert (await child.request("thread/archive", threadId=thread))["result"] == {}
        ephemeral, turn = await child.start_turn("tell me a story")
        assert "no rollout" in (await child.request("thread/archive", threadId=ephemeral))["error"]["message"]
        for method, params in (("turn/start", {"input": []}), ("thread/inject_items", {"items": [item("user", "a")]})):
            again = await child.request(method, threadId=ephemeral, **params)
            assert again["error"]["message"] == "a turn is already running on this thread"
        wrong = await child.request("turn/interrupt", threadId=ephemeral, turnId="other")
        assert wrong["error"]["message"] == f"expected active turn id other but found {turn}"


async def test_a_line_that_is_not_json_is_ignored(folder: Path) -> None:
    async with replay_child(folder) as child:
        child.stdin.write(b"this is not json\n[]\n")
        await child.initialize()
        assert await child.ask("hi") == "Hello you"


async def test_the_end_of_the_input_ends_it_in_the_middle_of_a_turn(folder: Path) -> None:
    async with replay_child(folder, "--speed", "recorded") as child:
        await child.initialize()
        await child.start_turn("tell me a story")
