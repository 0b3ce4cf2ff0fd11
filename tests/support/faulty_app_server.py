"""An app-server that goes wrong as it is told, for tests that want a real child process.

    python faulty_app_server.py FAULT FOLDER app-server

It answers each turn with "one two". FAULT is a row of `FAULTS`; it is played in the first life only, or in each
with `FAULT:always`. FOLDER gets a file `life-N` for each life, with the pid in it, `answers`, a line for each answer
to a request of its own, and `stuck`, a byte for each time that it leaves its client waiting. Stands alone: it starts
fast and imports nothing of the project.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Message = dict[str, Any]
TEXT = ("one ", "two")
STDIN, STDOUT, STDERR = range(3)


class Server:
    """`before[method]` runs when a request came, `instead[method]` in place of its answer, `turn` makes a turn's lines.

    A line is a message, bytes that are written as they are, or something to do.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.before: dict[str, Callable[[], object]] = {}
        self.instead: dict[str, Callable[[Message], object]] = {}
        self.turn: Callable[[str], Iterator[Message | bytes | Callable[[], object]]] = usual_turn
        self.threads = 0
        self.running: dict[str, str] = {}
        self._read = b""

    # Lines

    def receive(self) -> Message:
        while b"\n" not in self._read:
            data = os.read(STDIN, 2**20)
            if not data:
                sys.exit(0)
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        message: Message = json.loads(line)
        return message

    def write(self, line: Message | bytes) -> None:
        data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
        while data:
            data = data[os.write(STDOUT, data) :]

    def serve(self) -> None:
        while True:
            message = self.receive()
            if "method" in message:
                self.handle(message)

    def handle(self, message: Message) -> None:
        method, params = message["method"], message.get("params") or {}
        self.before.get(method, lambda: None)()
        if method in self.instead:
            self.instead[method](message)
        elif "id" in message:
            self.write({"id": message["id"], "result": self.answer(method, params)})
            if method == "turn/start":
                self.play(params["threadId"])
            if method == "turn/interrupt" and params["threadId"] in self.running:
                self.end(params["threadId"], "interrupted")

    def answer(self, method: str, params: Message) -> Message:
        match method:
            case "initialize":
                return {"userAgent": "tagcall/0.169.0 (faulty)"}
            case "account/read":
                return {"account": None, "requiresOpenaiAuth": False}
            case "thread/start":
                self.threads += 1
                return {"thread": {"id": f"t{self.threads}", "ephemeral": True}}
            case "turn/start":
                self.running[params["threadId"]] = "1"
                return {"turn": {"id": "1"}}
            case _:
                return {"data": []}

    def play(self, thread: str) -> None:
        for line in self.turn(thread):
            if callable(line):
                line()
            else:
                self.write(line)
        self.running.pop(thread, None)

    def end(self, thread: str, status: str) -> None:
        self.write(notification("turn/completed", thread, turn={"id": self.running.pop(thread), "status": status}))

    def ask(self, method: str, thread: str) -> Message:
        """Ask the client, wait for its answer, and note it."""
        self.write({"id": 0, "method": method, "params": {"threadId": thread, "turnId": "1", "itemId": "i"}})
        while "method" in (answer := self.receive()):
            self.handle(answer)
        with (self.folder / "answers").open("a") as file:
            file.write(json.dumps({"method": method, **answer}) + "\n")
        return answer

    def leave_waiting(self) -> None:
        """Notes that what the client waits for will not come."""
        with (self.folder / "stuck").open("ab") as file:
            file.write(b".")

    def hang(self) -> None:
        """Alive, and nothing more: requests are read and not answered."""
        self.leave_waiting()
        while True:
            self.receive()


# The lines of a turn


def notification(method: str, thread: str, **params: object) -> Message:
    return {"method": method, "params": {"threadId": thread, "turnId": "1", **params}}


def item(method: str, thread: str, kind: str = "agentMessage", name: str = "m", **fields: object) -> Message:
    return notification(f"item/{method}", thread, item={"type": kind, "id": name, **fields})


def delta(thread: str, text: str, name: str = "m") -> Message:
    return notification("item/agentMessage/delta", thread, itemId=name, delta=text)


def completed(thread: str, status: str = "completed") -> Message:
    return notification("turn/completed", thread, turn={"id": "1", "status": status})


def will_retry(thread: str) -> Message:
    return notification("error", thread, willRetry=True, error={"message": "Reconnecting... 1/5"})


def message(thread: str, name: str = "m") -> Iterator[Message]:
    yield item("started", thread, name=name, text="")
    for text in TEXT:
        yield delta(thread, text, name)
    yield item("completed", thread, name=name, text="".join(TEXT))


def usual_turn(thread: str) -> Iterator[Message]:
    yield notification("turn/started", thread, turn={"id": "1"})
    yield item("started", thread, "userMessage", "u")
    yield item("completed", thread, "userMessage", "u")
    yield from message(thread)
    yield completed(thread)


BEFORE_TEXT, AFTER_TEXT, BEFORE_END, AFTER_END = 4, 5, 7, 8
"""Places in the usual turn, as the number of lines before them."""

# Faults

Line = Message | bytes | Callable[[], object]
Fault = Callable[[Server], None]


def at(place: int, *lines: Line) -> Fault:
    """The usual turn with these lines at a place in it."""

    def arrange(server: Server) -> None:
        def turn(thread: str) -> Iterator[Line]:
            usual = list(usual_turn(thread))
            yield from (*usual[:place], *lines, *usual[place:])

        server.turn = turn

    return arrange


def whole(make: Callable[[str], Iterator[Line]]) -> Fault:
    """Another turn in place of the usual one."""

    def arrange(server: Server) -> None:
        server.turn = make

    return arrange


def on(method: str, act: Callable[[], object]) -> Fault:
    def arrange(server: Server) -> None:
        server.before[method] = act

    return arrange


def silent_on(method: str, *others: str) -> Fault:
    def arrange(server: Server) -> None:
        server.instead[method] = lambda message: server.leave_waiting()
        for other in others:
            server.instead[other] = lambda message: None

    return arrange


def result_of(method: str, result: object) -> Fault:
    def arrange(server: Server) -> None:
        server.instead[method] = lambda message: server.write({"id": message["id"], "result": result})

    return arrange


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(status: int) -> Callable[[], object]:
    return lambda: os._exit(status)


def stop_reading(server: Server) -> Callable[[], None]:
    def stop() -> None:
        server.leave_waiting()
        sleep_on()

    return stop


def close_stdout() -> None:
    os.close(STDOUT)
    sleep_on()


def sleep_on() -> None:
    while True:
        time.sleep(60)


def flood_stderr() -> None:
    for _ in range(32):
        os.write(STDERR, b"noise sk-secretsecret\n" * 4000)


def flooding(server: Server) -> None:
    on("thread/start", flood_stderr)(server)
    at(BEFORE_TEXT, flood_stderr)(server)


def overloaded(method: str, times: int) -> Fault:
    def arrange(server: Server) -> None:
        left = iter(range(times))

        def refuse_for_a_while(message: Message) -> None:
            if next(left, None) is None:
                del server.instead[method]
                server.handle(message)
            else:
                server.write({"id": message["id"], "error": {"code": -32001, "message": "overloaded"}})

        server.instead[method] = refuse_for_a_while

    return arrange


def answer_last(server: Server) -> None:
    def start(message: Message) -> None:
        server.play(message["params"]["threadId"])
        server.write({"id": message["id"], "result": {"turn": {"id": "1"}}})

    server.instead["turn/start"] = start


def answer_never(server: Server) -> None:
    server.instead["turn/start"] = lambda message: server.play(message["params"]["threadId"])


def asking(method: str, *, then_hang: bool = False) -> Fault:
    def arrange(server: Server) -> None:
        def turn(thread: str) -> Iterator[Line]:
            yield from list(usual_turn(thread))[:BEFORE_TEXT]
            yield lambda: server.ask(method, thread)
            if then_hang:
                yield lambda: served_until_interrupted(server, thread)
            yield from list(usual_turn(thread))[BEFORE_TEXT:]

        server.turn = turn

    return arrange


def served_until_interrupted(server: Server, thread: str) -> None:
    server.leave_waiting()
    while thread in server.running:
        server.handle(server.receive())
    server.serve()


def mute(place: int) -> Fault:
    """The turn says no more, and everything else goes on."""

    def arrange(server: Server) -> None:
        def turn(thread: str) -> Iterator[Line]:
            yield from list(usual_turn(thread))[:place]
            yield lambda: served_until_interrupted(server, thread)

        server.turn = turn

    return arrange


def hang_at(place: int) -> Fault:
    return lambda server: at(place, server.hang)(server)


def twice(thread: str) -> Iterator[Line]:
    for line in usual_turn(thread):
        yield line
        if "delta" not in line["params"]:  # a text that comes twice cannot be told from a text that says so
            yield line


def lines_of_others(thread: str) -> Iterator[Line]:
    yield delta("t99", "not ours")
    yield {"method": "something/new", "params": {"threadId": thread}}
    yield {"method": "codex/event/agent_message", "params": {"conversationId": thread, "msg": {}}}
    yield {"method": "item/started", "params": {"threadId": thread, "turnId": "1", "item": "no object"}}
    yield {"method": "turn/completed", "params": {"threadId": thread}}
    yield {"method": "item/agentMessage/delta", "params": []}
    yield {"id": 4711, "result": {"nobody": "asked"}}
    yield {"id": None, "error": {"code": -32600, "message": "what?"}}
    yield from usual_turn(thread)
    yield delta(thread, "late")
    yield item("completed", thread, name="late", text="late")
    yield completed(thread)


def retried(
    *, told: bool, name: str, announced: bool, completed_first: bool = False
) -> Callable[[str], Iterator[Line]]:
    """The stream to the model breaks and begins again, under the same item or as another one."""

    def turn(thread: str) -> Iterator[Line]:
        first = list(message(thread))
        yield from first[: 4 if completed_first else 2 if told else 1]
        if announced:
            yield will_retry(thread)
        yield from message(thread, name)
        yield completed(thread)

    return turn


def deaf(server: Server) -> None:
    """Nothing but SIGKILL ends it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    at(AFTER_TEXT, stop_reading(server))(server)


def big_delta(thread: str) -> Iterator[Line]:
    yield notification("turn/started", thread, turn={"id": "1"})
    yield delta(thread, "x" * 10_000_000)
    yield completed(thread)


REQUESTS = (
    "item/commandExecution/requestApproval",
    "item/fileChange/requestApproval",
    "execCommandApproval",
    "applyPatchApproval",
    "item/permissions/requestApproval",
    "item/tool/requestUserInput",
    "mcpServer/elicitation/request",
    "item/tool/call",
    "currentTime/read",
)

FAULTS: dict[str, Fault] = {
    "none": lambda server: None,
    # It ends
    "killed at start": lambda server: die(),
    "exit 0 at start": lambda server: os._exit(0),
    "killed at initialize": on("initialize", die),
    "killed at account": on("account/read", die),
    "killed at thread": on("thread/start", die),
    "killed at turn": on("turn/start", die),
    "killed before text": at(BEFORE_TEXT, die),
    "killed after text": at(AFTER_TEXT, die),
    "killed before end": at(BEFORE_END, die),
    "killed after end": at(AFTER_END, die),
    "exit 0 at thread": on("thread/start", leave(0)),
    "exit 0 before text": at(BEFORE_TEXT, leave(0)),
    "exit 0 after text": at(AFTER_TEXT, leave(0)),
    # It is there and does not react
    "hangs at initialize": silent_on("initialize"),
    "hangs at thread": silent_on("thread/start", "thread/loaded/list"),
    "hangs at turn": silent_on("turn/start", "thread/loaded/list"),
    "loses the answer to thread": silent_on("thread/start"),
    "loses the answer to turn and its lines": silent_on("turn/start"),
    "loses the answer to turn": answer_never,
    "answers turn last": answer_last,
    "hangs before text": hang_at(BEFORE_TEXT),
    "hangs after text": hang_at(AFTER_TEXT),
    "turn mute before text": mute(BEFORE_TEXT),
    "turn mute after text": mute(AFTER_TEXT),
    "reads no more": lambda server: at(AFTER_TEXT, stop_reading(server))(server),
    "reads nothing": lambda server: on("initialize", stop_reading(server))(server),
    "closes stdout before text": at(BEFORE_TEXT, close_stdout),
    "closes stdout after text": at(AFTER_TEXT, close_stdout),
    "deaf": deaf,
    # It writes what nobody expects
    "result without a thread": result_of("thread/start", {}),
    "result without a turn": result_of("turn/start", {"turn": None}),
    "garbage": at(BEFORE_TEXT, b"garbage\n", b"{\n", b"[]\n", b"null\n", b"\n", b"\x00\x01\n", b'{"id":1}\n'),
    "invalid UTF-8": at(BEFORE_TEXT, b'{"method":"\xff\xfe"}\n', b"\xc3\n"),
    "half a line, then killed": at(BEFORE_TEXT, b'{"method":"item/agentMess', die),
    "half a line after text, then killed": at(AFTER_TEXT, b'{"method":"item/agentMess', die),
    "half a line, then the rest": at(BEFORE_TEXT, b'{"method":', lambda: time.sleep(0.01), b'"x"}\n'),
    "10 MB of text": whole(big_delta),
    "10 MB of junk": at(BEFORE_TEXT, b"x" * 10_000_000 + b"\n"),
    "65 MiB of junk": at(BEFORE_TEXT, *[b"x" * 2**20] * 65, b"\n"),
    "lines of others and late ones": whole(lines_of_others),
    "lines twice": whole(twice),
    "stderr flood": flooding,
    # The model's stream begins again
    "retry before text": whole(retried(told=False, name="m", announced=True)),
    "retry before text, another item": whole(retried(told=False, name="m2", announced=True)),
    "retry after text": whole(retried(told=True, name="m", announced=True)),
    "retry after text, another item": whole(retried(told=True, name="m2", announced=True)),
    "retry after text, unannounced": whole(retried(told=True, name="m", announced=False)),
    "retry after text, unannounced, another item": whole(retried(told=True, name="m2", announced=False)),
    "retry after the message": whole(retried(told=True, name="m", announced=False, completed_first=True)),
    # It asks, or has too much to do
    **{f"asks {method}": asking(method) for method in REQUESTS},
    "asks what nobody knows": asking("something/new"),
    "asks what nobody knows and hangs": asking("something/new", then_hang=True),
    "overloaded at thread": overloaded("thread/start", 3),
    "overloaded at turn": overloaded("turn/start", 3),
    "overloaded for ever": overloaded("thread/start", 1000),
}


def main() -> None:
    fault, folder = sys.argv[1], Path(sys.argv[2])
    if sys.argv[3:] != ["app-server"]:
        return  # asked for its version, or for its models
    life = sum(1 for _ in folder.glob("life-*"))
    (folder / f"life-{life}").write_text(str(os.getpid()))
    server = Server(folder)
    name, _, always = fault.partition(":")
    if life == 0 or always:
        FAULTS[name](server)
    server.serve()


if __name__ == "__main__":
    main()
