"""The app-server's side of the protocol, as codex 0.169 speaks it: JSON lines without a `jsonrpc` member.

Requests are answered where they are read; each turn plays in a thread of its own. One lock guards the
state and the output, so a notification never overtakes what it belongs to, and whoever ends a turn
(its player or an interrupt) ends it once.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, TypeAlias

import orjson
from msgspec import Struct, field

from .asks import BY_NAME, Seen, choose, explain
from .fixture import Fixture, RecordedTurn, ReplayMessage
from .key_placeholder import key_of
from .playback import Speed, play
from .thread_log import ThreadLog, item_fault

# The version whose behaviour is spoken; clients read it from the user agent.
SPOKEN_VERSION = "0.169.0"
# The model that is always there; fixtures may name others.
MODEL = "replay"

# JSON-RPC's code for every refusal.
_INVALID_REQUEST = -32600

# What a prompt holds that asks for calls.
_OPEN_TAG = "<tool_call>"

_RequestId: TypeAlias = int | str

# A fixture and the number of the turn in it.
_Place: TypeAlias = tuple[str, int]


class _RefusedError(Exception):
    """The request gets an error with this message."""


class _Thread(Struct):
    """`model` is the one of its newest turn. `log` has the placeholder wherever calls show their `key`."""

    ephemeral: bool
    model: str
    with_tools: bool
    key: str | None
    log: ThreadLog


class _Turn(Struct, frozen=True):
    """A turn that is being played. `stop` is set once, by whoever ends it early."""

    id: str
    thread_id: str
    input: list[object]
    stop: threading.Event = field(default_factory=threading.Event)

    def as_json(self, status: str, error: ReplayMessage | None = None) -> ReplayMessage:
        return {"id": self.id, "rootTurnId": self.id, "items": [], "status": status, "error": error}


def _text(params: ReplayMessage, member: str) -> str:
    match params.get(member):
        case str(value):
            return value
        case None:
            raise _RefusedError(f"Invalid request: missing field `{member}`")
        case _:
            raise _RefusedError(f"Invalid request: invalid type for `{member}`, expected a string")


class ReplayServer:
    """One client's app-server. `write` takes whole lines and may be called from any thread, `on_played` the name of
    each fixture that answers, or the sentence that none does.
    """

    def __init__(
        self,
        fixtures: Mapping[str, Fixture],
        write: Callable[[bytes], None],
        *,
        speed: Speed = "fast",
        chunk: int = 0,
        on_played: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._on_played = on_played
        self._fixtures = fixtures
        self._turns: Mapping[_Place, RecordedTurn] = {
            (name, number): turn for name, fixture in fixtures.items() for number, turn in enumerate(fixture.turns)
        }
        self._write = write
        self._speed = speed
        self._chunk = chunk
        self._lock = threading.Lock()
        self._initialized = False
        self._opted_out: frozenset[object] = frozenset()
        self._threads: dict[str, _Thread] = {}
        self._running: dict[str, _Turn] = {}  # by thread id: one turn at a time on a thread
        self._played: Counter[tuple[_Place, ...]] = Counter()
        self._request_ids = itertools.count()

    def receive(self, line: bytes) -> None:
        """Take one line of the client. Lines that are no requests are noted on stderr or pass by."""
        try:
            message: object = orjson.loads(line)
        except orjson.JSONDecodeError:
            print("ignored a line that is not JSON", file=sys.stderr, flush=True)
            return
        match message:
            case {"id": (int() | str()) as id, "method": str(method), **rest}:
                params = rest.get("params")
                with self._lock:
                    self._answer(id, method, params if isinstance(params, dict) else {})
            case _:
                pass  # notifications, and answers to requests that a fixture made

    def _answer(self, id: _RequestId, method: str, params: ReplayMessage) -> None:
        try:
            self._handler(method)(self, id, params)
        except _RefusedError as refused:
            self._send({"error": {"code": _INVALID_REQUEST, "message": str(refused)}, "id": id})

    def _handler(self, method: str) -> _Handler:
        handler = self._METHODS.get(method)
        if handler is None:
            expected = ", ".join(f"`{name}`" for name in self._METHODS)
            raise _RefusedError(f"Invalid request: unknown variant `{method}`, expected one of {expected}")
        if not self._initialized and method != "initialize":
            raise _RefusedError("Not initialized")
        return handler

    def _initialize(self, id: _RequestId, params: ReplayMessage) -> None:
        if self._initialized:
            raise _RefusedError("Already initialized")
        match params:
            case {"clientInfo": {"name": str(client)}}:
                pass
            case _:
                raise _RefusedError("Invalid request: missing field `clientInfo`")
        match params:
            case {"capabilities": {"optOutNotificationMethods": list(methods)}}:
                self._opted_out = frozenset(method for method in methods if isinstance(method, str))
            case _:
                pass
        self._initialized = True
        agent = f"{client}/{SPOKEN_VERSION} (tagcall replay)"
        self._reply(id, {"userAgent": agent, "codexHome": "", "platformFamily": "unix", "platformOs": sys.platform})

    def _account_read(self, id: _RequestId, _params: ReplayMessage) -> None:
        self._reply(id, {"account": None, "requiresOpenaiAuth": False})

    def _model_list(self, id: _RequestId, _params: ReplayMessage) -> None:
        named = sorted({fixture.model for fixture in self._fixtures.values() if fixture.model is not None} - {MODEL})
        models = [
            {
                "id": name,
                "model": name,
                "displayName": name,
                "description": "Plays recorded turns.",
                "hidden": False,
                "supportedReasoningEfforts": [],
                "inputModalities": ["text", "image"],
                "isDefault": name == MODEL,
            }
            for name in [MODEL, *named]
        ]
        self._reply(id, {"data": models, "nextCursor": None})

    def _thread_start(self, id: _RequestId, params: ReplayMessage) -> None:
        thread_id = str(uuid.uuid4())
        ephemeral = params.get("ephemeral") is True
        developer = str(params.get("developerInstructions"))
        with_tools = _OPEN_TAG in developer
        model, key = str(params.get("model") or MODEL), key_of(developer)
        self._threads[thread_id] = _Thread(ephemeral, model, with_tools, key, ThreadLog(key))
        thread = {"id": thread_id, "ephemeral": ephemeral, "status": {"type": "idle"}, "turns": []}
        self._reply(id, {"thread": thread, "model": model, "modelProvider": MODEL, "cwd": params.get("cwd")})
        self._notify("thread/started", {"thread": thread})

    def _thread_loaded_list(self, id: _RequestId, _params: ReplayMessage) -> None:
        self._reply(id, {"data": list(self._threads), "nextCursor": None})

    def _thread_inject_items(self, id: _RequestId, params: ReplayMessage) -> None:
        thread_id = self._idle_thread(params)
        items = params.get("items")
        if not isinstance(items, list):
            raise _RefusedError("Invalid request: missing field `items`")
        if not items:
            raise _RefusedError("items must not be empty")
        for index, item in enumerate(items):
            if (fault := item_fault(item)) is not None:
                raise _RefusedError(f"items[{index}] is not a valid response item: {fault}")
        self._threads[thread_id].log.take({"method": "thread/inject_items", "params": params})
        self._reply(id, {})

    def _thread_archive(self, id: _RequestId, params: ReplayMessage) -> None:
        thread_id = self._known_thread(params)
        if self._threads[thread_id].ephemeral:
            raise _RefusedError(f"no rollout found for thread id {thread_id}")
        del self._threads[thread_id]
        self._reply(id, {})

    def _thread_unsubscribe(self, id: _RequestId, params: ReplayMessage) -> None:
        self._known_thread(params)
        self._reply(id, {"status": "unsubscribed"})

    def _turn_start(self, id: _RequestId, params: ReplayMessage) -> None:
        thread_id = self._idle_thread(params)
        items = params.get("input")
        if not isinstance(items, list):
            raise _RefusedError("Invalid request: missing field `input`")
        turn = _Turn(str(uuid.uuid4()), thread_id, items)
        self._running[thread_id] = turn
        self._reply(id, {"turn": turn.as_json("inProgress")})
        self._notify("turn/started", {"threadId": thread_id, "turn": turn.as_json("inProgress")})
        if items:
            self._echo_input(turn)
        thread = self._threads[thread_id]
        thread.model = str(params.get("model") or thread.model)
        thread.log.take({"method": "turn/start", "params": params})
        self._answer_turn(turn, Seen(tuple(thread.log.messages), thread.model, thread.with_tools))

    def _turn_interrupt(self, id: _RequestId, params: ReplayMessage) -> None:
        turn = self._running.get(self._known_thread(params))
        if turn is None:
            raise _RefusedError("no active turn to interrupt")
        wanted = _text(params, "turnId")
        if wanted != turn.id:
            raise _RefusedError(f"expected active turn id {wanted} but found {turn.id}")
        turn.stop.set()
        self._reply(id, {})
        self._end(turn, "interrupted")

    _METHODS: ClassVar[Mapping[str, _Handler]] = {
        "initialize": _initialize,
        "account/read": _account_read,
        "model/list": _model_list,
        "thread/start": _thread_start,
        "thread/loaded/list": _thread_loaded_list,
        "thread/inject_items": _thread_inject_items,
        "thread/archive": _thread_archive,
        "thread/unsubscribe": _thread_unsubscribe,
        "turn/start": _turn_start,
        "turn/interrupt": _turn_interrupt,
    }

    def _known_thread(self, params: ReplayMessage) -> str:
        thread_id = _text(params, "threadId")
        if thread_id not in self._threads:
            raise _RefusedError(f"thread not found: {thread_id}")
        return thread_id

    def _idle_thread(self, params: ReplayMessage) -> str:
        thread_id = self._known_thread(params)
        if thread_id in self._running:
            # The real one asks its model again within the running turn; nobody here should want that.
            raise _RefusedError("a turn is already running on this thread")
        return thread_id

    def _answer_turn(self, turn: _Turn, seen: Seen) -> None:
        asks = {place: recorded.ask for place, recorded in self._turns.items() if _is_meant(place, seen)}
        places = choose(asks, seen)
        if places:
            place = self._take_next(places)
            self._on_played(place[0])
            arguments = (turn, self._turns[place])
            threading.Thread(target=self._play, args=arguments, name=f"turn {turn.id}", daemon=True).start()
        else:
            reason = explain({name: ask for (name, _), ask in asks.items()}, seen)
            self._on_played(reason)
            self._fail(turn, reason)

    def _take_next(self, places: tuple[_Place, ...]) -> _Place:
        """Turns that fit equally well are played one after the other, then those of the last fixture again."""
        played = self._played[places]
        self._played[places] += 1
        if played < len(places):
            return places[played]
        last = [place for place in places if place[0] == places[-1][0]]
        return last[(played - len(places)) % len(last)]

    def _echo_input(self, turn: _Turn) -> None:
        item = {"type": "userMessage", "id": str(uuid.uuid4()), "content": list(_as_content(turn.input))}
        for method in ("item/started", "item/completed"):
            self._notify(method, {"item": item, "threadId": turn.thread_id, "turnId": turn.id})

    def _play(self, turn: _Turn, recorded: RecordedTurn) -> None:
        begin = time.monotonic()
        thread = self._threads[turn.thread_id]
        steps = play(
            recorded,
            turn.thread_id,
            turn.id,
            chunk=self._chunk,
            speed=self._speed,
            key=thread.key,
            spent=thread.log.tokens,
        )
        for step in steps:
            if step.at:
                turn.stop.wait(begin + step.at - time.monotonic())
            with self._lock:
                if turn.stop.is_set():
                    return
                if step.message["method"] == "turn/completed":
                    del self._running[turn.thread_id]
                thread.log.take(step.message)
                self._send_step(step.message)

    def _send_step(self, message: ReplayMessage) -> None:
        if "id" in message:  # a request of the server: its ids are counted over all turns
            self._send(message | {"id": next(self._request_ids)})
        elif message["method"] not in self._opted_out:
            self._send(message)

    def _fail(self, turn: _Turn, reason: str) -> None:
        error: ReplayMessage = {"message": reason, "codexErrorInfo": "badRequest", "additionalDetails": None}
        self._notify("error", {"error": error, "willRetry": False, "threadId": turn.thread_id, "turnId": turn.id})
        self._end(turn, "failed", error)

    def _end(self, turn: _Turn, status: str, error: ReplayMessage | None = None) -> None:
        del self._running[turn.thread_id]
        params: ReplayMessage = {"threadId": turn.thread_id, "turn": turn.as_json(status, error)}
        self._threads[turn.thread_id].log.take({"method": "turn/completed", "params": params})
        self._notify("turn/completed", params)

    def _reply(self, id: _RequestId, result: ReplayMessage) -> None:
        self._send({"id": id, "result": result})

    def _notify(self, method: str, params: ReplayMessage) -> None:
        if method not in self._opted_out:
            self._send({"method": method, "params": params})

    def _send(self, message: ReplayMessage) -> None:
        self._write(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))


_Handler: TypeAlias = Callable[[ReplayServer, _RequestId, ReplayMessage], None]


def _is_meant(place: _Place, seen: Seen) -> bool:
    """Whether a turn may answer that model: one that names a fixture wants no other."""
    model = seen.model or ""
    return not model.startswith(BY_NAME) or place[0] == model.removeprefix(BY_NAME)


def _as_content(items: Iterable[object]) -> Iterable[object]:
    for item in items:
        match item:
            case {"type": "text", **rest}:
                yield {**rest, "type": "text", "text_elements": []}
            case _:
                yield item
