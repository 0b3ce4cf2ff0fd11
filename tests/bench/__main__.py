"""What tagcall costs, beside the least that a program in its place would: `make bench`. Figures, not tests.

    client  --HTTP-->  tagcall | relay  --JSON-RPC-->  app_server

app_server   plays turns by recipe, as a child process
relay        JSON-RPC to SSE and nothing else: the floor
chat_server  plays turns by recipe as a Chat Completions server; chat_relay: the floor in front of it
contestants  both of them as processes: start, CPU time, memory
client       many streams at once, and when each piece of text came
deltas       rows about text that streams
starts       rows about starting: the process, an answer; and about memory
leaving      rows about clients that leave
answers      a row about text on its way through a turn
watched      rows about somebody who looks on
lanes        rows about conversations that keep their thread
requests     rows about reading a request, and about growth with its size
going_on     a row about a conversation that goes on, by its length
peers        another parser on the same texts, on its own: `make bench-peers`
report       a row: two figures, what they come to, and its goal

A goal that is missed is marked, no more. docs/reference/performance.md says how to read the figures.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.parser import bench as parser_bench

from . import answers, deltas, going_on, lanes, leaving, requests, starts, watched
from .contestants import over_chat, relay, tagcall
from .report import Row, head


def show(rows: Iterable[Row]) -> None:
    for row in rows:
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()


def main() -> None:
    if sys.platform != "linux":
        sys.exit("The CPU time of another process is read as on Linux.")
    sys.stdout.write("The parser, and a parser that looks for `<`\n")
    parser_bench.main()
    sys.stdout.write(f"\nThe proxy, and a bare relay\n{head()}\n")
    with tempfile.TemporaryDirectory() as ours_in, tempfile.TemporaryDirectory() as floor_in:
        folder, floor_folder = Path(ours_in), Path(floor_in)
        show(starts.cold_starts(lambda: tagcall(folder), lambda: relay(floor_folder)))
        with tagcall(folder) as ours, relay(floor_folder) as floor:
            show(starts.memory(ours, floor))
            show(starts.first_deltas(ours, floor, floor_folder))
            show(lanes.continued(ours, floor))
            show(deltas.rows(ours, floor))
            show(requests.growth(ours))
            show(leaving.rows(ours, folder))
    with tempfile.TemporaryDirectory() as chat_in, over_chat(Path(chat_in)) as (ours, floor):
        sys.stdout.write(f"\nThe same in front of a Chat Completions server\n{head()}\n")
        show(deltas.rows(ours, floor))
        sys.stdout.write("\n")
    show(answers.rows())
    show(requests.sending())
    show(going_on.rows())
    sys.stdout.write(f"\nWith a page that looks on, and without\n{head('watched', 'alone')}\n")
    with tempfile.TemporaryDirectory() as watched_in, tempfile.TemporaryDirectory() as alone_in:
        show(watched.rows(Path(watched_in), Path(alone_in)))
    sys.stdout.write(f"\nConversations that keep their thread, and those that do not\n{head('lanes on', 'off')}\n")
    with tempfile.TemporaryDirectory() as lanes_in:
        show(lanes.billed(Path(lanes_in)))
        show(lanes.beside_off(Path(lanes_in)))


if __name__ == "__main__":
    main()
