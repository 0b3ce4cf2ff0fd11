"""Pure: text that was read together, as one delta for each message.

A fast model is read in blocks of some hundred deltas, and each later step costs time per delta.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...rpc import Message, RpcObject

TEXT_DELTA = "item/agentMessage/delta"


def join_deltas(messages: Sequence[Message]) -> list[Message]:
    """The same messages; deltas of one item with nothing of their thread in between are one, in the first's place.

    Anything but a notification stands between all that comes before and after it.
    """
    joined: list[Message] = []
    # The last delta of each thread behind which nothing of it has come: its texts, and whose they are.
    open_runs: dict[str, tuple[list[str], object, object]] = {}
    runs: list[tuple[list[str], RpcObject]] = []
    for message in messages:
        try:
            if message["method"] != TEXT_DELTA:
                _end_runs(message, open_runs)
                joined.append(message)
                continue
            # Nearly all have these, so none is asked whether it has.
            params = message["params"]
            thread, turn, item, text = params["threadId"], params["turnId"], params["itemId"], params["delta"]
            is_text = isinstance(text, str) and isinstance(thread, str)
            run = open_runs.get(thread)
        except (LookupError, TypeError):
            _end_runs(message, open_runs)
            joined.append(message)
            continue
        if not is_text or "id" in message:
            _end_runs(message, open_runs)
        elif run is not None and run[1] == turn and run[2] == item:
            run[0].append(text)
            continue
        else:
            open_runs[thread] = texts, _, _ = [text], turn, item
            runs.append((texts, params))
        joined.append(message)
    for texts, first in runs:
        first["delta"] = "".join(texts)
    return joined


def _end_runs(message: Message, open_runs: dict[str, tuple[list[str], object, object]]) -> None:
    """`message` stands between the deltas before and after it: those of its thread, if it is a notification."""
    if not open_runs:
        return
    if not isinstance(message, dict) or "id" in message:
        open_runs.clear()
    elif isinstance(params := message.get("params"), dict) and isinstance(thread := params.get("threadId"), str):
        open_runs.pop(thread, None)
