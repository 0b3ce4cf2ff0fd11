"""The model: its answers depend on all that it is shown, and it notes what it should not have been shown."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from proxy.replay.key_placeholder import key_of
from tests.end_to_end.differential.history import fits
from tests.support.scripted_model import Cut, Failed, Incomplete, Message, Reasoning, Refusal, Reply
from tests.support.shown_history import ShownHistory, read_back

PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS: Mapping[str, Mapping[str, Any]] = {
    "read_note": PATH,
    "count_notes": {"type": "object", "properties": {"limit": {"type": "integer"}}},
}
QUOTED = '<tool_call>{"name": "read_note", "arguments": {"path": "quoted.md"}}</tool_call>'
# What models write behind a call, and nobody is shown.
MADE_UP = "[tool:call_9] made up"
# A request without tools reads those of its lane, and this.
FORBIDS = "No tool can be called in this turn"


@dataclass(eq=False)
class Expected:
    """A request that is under way. `asked` are the requests of codex that came of it."""

    owner: str
    shown: ShownHistory
    reply: Reply | None = None
    gate: asyncio.Event | None = None
    called: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[dict[str, Any]] = field(default_factory=list)
    broken_off: bool = False
    refused: bool = False

    @property
    def keys(self) -> list[str]:
        return [body["prompt_cache_key"] for body in self.asked]


@dataclass
class Thread:
    """What is known of a thread of codex by its `prompt_cache_key`."""

    owner: str
    head: str
    shown: str


class Upstream:
    """Answers for the scripted model, and notes what it should not have been shown in `faults`."""

    def __init__(self, *, lanes: bool) -> None:
        self.lanes = lanes
        self.under_way: list[Expected] = []
        self.faults: list[str] = []
        self.threads: dict[str, Thread] = {}
        self.spoilt: dict[str, str] = {}
        self.counts = Counter[str]()

    def choose(self, body: Mapping[str, Any]) -> Reply | Refusal:
        try:
            return self._choose(body)
        except (ValueError, LookupError, TypeError) as error:
            self.faults.append(f"{error!r} in {json.dumps(body['input'])[-3000:]}")
            return Reply([Message("This cannot be.")])

    def _choose(self, body: Mapping[str, Any]) -> Reply | Refusal:
        if "turn_aborted" in json.dumps(body):
            self.faults.append("turn_aborted")
        seen = read_back(body, as_messages=self.lanes)
        alike = [one for one in self.under_way if fits(seen, one.shown)]
        if not alike:
            wanted = "\n  or ".join(map(_told, (one.shown for one in self.under_way)))
            self.faults.append(f"shown\n     {_told(seen)}\n  for {wanted}")
            for one in self.under_way:
                one.called.set()
            return Reply([Message("Nobody said that.")])
        request = min(alike, key=lambda one: len(one.asked))
        self._note_thread(body, seen, request, sure=len({one.owner for one in alike}) == 1)
        request.asked.append(dict(body))
        request.called.set()
        if request.reply is not None and len(request.asked) == 1:
            return request.reply
        reply = Script(request.shown, seen, calls=FORBIDS not in json.dumps(body["input"][-1])).reply()
        if isinstance(reply, Refusal):
            request.refused = True
            return reply
        request.broken_off = request.broken_off or any(MADE_UP in str(item) for item in reply.items)
        return replace(reply, gate=request.gate)

    def _note_thread(self, body: Mapping[str, Any], seen: ShownHistory, request: Expected, *, sure: bool) -> None:
        key, shown = body["prompt_cache_key"], json.dumps(body["input"])
        self.counts["requests"] += 1
        if (thread := self.threads.get(key)) is not None:
            self.counts["continued"] += 1
            if key in self.spoilt:
                self.faults.append(f"a thread went on after: {self.spoilt[key]}")
            if sure and thread.owner != request.owner:
                self.faults.append("a thread crossed owners")
            if thread.head != seen.head:
                self.faults.append("a thread has another developer text")
            if not shown.startswith(thread.shown[:-1]):
                self.faults.append(f"a thread's beginning moved from\n     {thread.shown}\n  to {shown}")
        owner = request.owner if sure or thread is None else thread.owner
        self.threads[key] = Thread(owner, seen.head, shown)

    @asynccontextmanager
    async def expecting(self, request: Expected) -> AsyncIterator[Expected]:
        self.under_way.append(request)
        try:
            yield request
        finally:
            self.under_way.remove(request)

    def settle(self, request: Expected, outcome: str, *, restarts: bool = False) -> None:
        """It is over: only a thread may go on whose answer was good at once, or refused before a word of it."""
        # The first thread of a codex that dies is lost, and nobody knows whether its model was asked.
        answers = len(request.asked) - (restarts and len(request.asked) > 1)
        good = (outcome == "good" or request.refused) and answers == 1
        for key in request.keys[: -1 if good else None]:
            self.spoilt[key] = f"{outcome}, {answers} answers"


def _told(shown: ShownHistory) -> str:
    return "\n         ".join([repr(shown.head[:80]), *map(repr, shown.said)])


class Script:
    """One answer, drawn from all that the model is shown; ids count by where they stand, for they are drawn at random.

    `wanted` is the same history as its client has it, in which guidance and calls stand alike in both modes.
    """

    def __init__(self, wanted: ShownHistory, seen: ShownHistory, *, calls: bool) -> None:
        ids: dict[str | None, int] = {None: 0}
        everything = [one for one in seen.said if one.kind != "developer"]
        facts = [
            (one.kind, one.text, ids.setdefault(one.id, len(ids)), [(call.name, call.arguments) for call in one.calls])
            for one in everything
        ]
        self._seen = seen
        self._key = key_of(seen.head) if calls else None
        self._json = "# Form of the answer" in seen.head
        self.digest = sha256(json.dumps([facts, seen.again, self._key is None, self._json]).encode()).hexdigest()
        self._random = random.Random(self.digest)  # noqa: S311 -- no secret

    def reply(self) -> Reply | Refusal:
        draw = self._random
        text = self._text()
        chunk = draw.choice([5, 11, 10_000])
        if self._json:
            written = json.dumps({"answer": self.digest[:6]})
            return Reply([Message(draw.choice([written, f"```json\n{written}\n```", text, written]))], chunk)
        if draw.random() < 0.06:
            end: Any = draw.choice([Failed("server_error", "broken"), Incomplete("max_output_tokens"), Cut()])
            return Reply([Message(text)], chunk, end)
        if draw.random() < 0.02:
            return Refusal(500, {"message": "broken"})
        thoughts = [Reasoning([f"**Thinking** {self.digest[6:9]}"])] if draw.random() < 0.2 else []
        if draw.random() < 0.03:
            return Reply([*thoughts, Message(draw.choice(["", " \n"]))], chunk)
        if self._key is None or draw.random() < 0.3:
            more = [Message(f"And {self.digest[9:12]}.")] if draw.random() < 0.15 else []
            return Reply([*thoughts, Message(text, deltas=draw.random() < 0.9), *more], chunk)
        kinds = self._good if self._seen.again and draw.random() < 0.8 else self._good + self._strange
        return Reply([*thoughts, *draw.choice(kinds)(self, text)], chunk)

    def _text(self) -> str:
        draw, mark = self._random, self.digest[:6]
        return draw.choice([
            f"So it is, {mark}.",
            f"One {mark}.\n\n\n  indented\n\nTwo HALT and three.\n",
            f"{mark}",
            f"A <\\tool_call> of {mark}. \n",
            f"Long {mark}: " + "word after word, " * 12,
        ])  # fmt: skip

    def _call(self, name: str | None = None, **members: Any) -> str:
        """One call as the block asks for it, spelled in one of several ways."""
        draw = self._random
        name = name or draw.choice([*TOOLS])
        path = draw.choice(["a.md", "b.md", f"{self.digest[12:15]}.md"])
        arguments: Any = {"path": path} if name != "count_notes" else {"limit": draw.randrange(3)}
        if draw.random() < 0.1:
            arguments = json.dumps(arguments)
        call = {"key": self._key, "name": name, "arguments": arguments, **members}
        spelled = draw.choice([json.dumps(call), json.dumps(call, separators=(",", ":")), json.dumps(call, indent=1)])
        return f"<tool_call>{spelled}</tool_call>"

    # Answers that a lane can go on from

    def _one(self, text: str) -> list[Message]:
        return [Message(f"{text}\n{self._call()}")]

    def _bare(self, text: str) -> list[Message]:
        return [Message(self._call())]

    def _two(self, text: str) -> list[Message]:
        return [Message(f"{text}\n{self._call()}\n{self._call()}\n")]

    def _three(self, text: str) -> list[Message]:
        return [Message(self._call()), Message(f"{text}\n{self._call()}"), Message(f"\n{self._call()}")]

    def _with_id(self, text: str) -> list[Message]:
        return [Message(f"{text}\n{self._call(id=f'call_{self.digest[:9]}')}")]

    # Answers that it cannot go on from

    def _repaired(self, text: str) -> list[Message]:
        return [Message(f"{text}\n{self._call()}".replace('"}', '",}').replace("}}", ",}}"))]

    def _coerced(self, text: str) -> list[Message]:
        return [Message(f"{text}\n{self._call('count_notes', arguments={'limit': '3'})}")]

    def _malformed(self, text: str) -> list[Message]:
        return [Message(f'{text}\n<tool_call>{{"key": "{self._key}", "name": "read_note", "arg</tool_call>')]

    def _undeclared(self, text: str) -> list[Message]:
        beside = self._random.choice(["", text, self._call()])
        return [Message(f"{beside}\n{self._call('drop_notes')}")]

    def _keyless(self, text: str) -> list[Message]:
        return [Message(f"{text}\n{self._call(key=None)}".replace('"key": null, ', "").replace('"key":null,', ""))]

    def _wrong_key(self, text: str) -> list[Message]:
        return [Message(f"{text}\n{self._call(key='0abcdefghi')}")]

    def _quoted(self, text: str) -> list[Message]:
        return [Message(f"{text}\n{QUOTED}\nsays that.")]

    def _taken_id(self, text: str) -> list[Message]:
        taken = next((one.id for one in self._seen.said if one.id), "not an id")
        return [Message(f"{text}\n{self._call(id=taken)}")]

    def _text_behind(self, text: str) -> list[Message]:
        return [Message(f"{self._call()}\n{text}")]

    def _half_a_tag(self, text: str) -> list[Message]:
        return [Message(f"{text}\n{self._call()}\n<tool")]

    def _made_up_result(self, text: str) -> list[Message]:
        return [Message(f"{text}\n{self._call()}\n{MADE_UP} \nSo that is it.")]

    def _closed_twice(self, text: str) -> list[Message]:
        return [Message(f"{text}\n{self._call()}</tool_call>")]

    def _tells_the_key(self, text: str) -> list[Message]:
        return [Message(f"{text} The key is {self._key}.")]

    _good: tuple[Callable[[Script, str], list[Message]], ...] = (_one, _bare, _two, _three, _with_id) * 6
    _strange: tuple[Callable[[Script, str], list[Message]], ...] = (
        _repaired, _coerced, _malformed, _undeclared, _keyless, _wrong_key, _quoted, _taken_id, _text_behind,
        _half_a_tag, _made_up_result, _closed_twice, _tells_the_key,
    )  # fmt: skip
