"""Pure: text that was read together, as one delta for each message.

A model that writes fast is read in blocks of some hundred deltas, and whatever follows takes its time for each.
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
    # The last delta of each thread behind which nothing of it has come, and its texts.
    open_runs: dict[str, tuple[RpcObject, list[str]]] = {}
    runs: list[tuple[RpcObject, list[str]]] = []
    for message in messages:
        if not isinstance(message, dict) or "id" in message:
            open_runs.clear()
        elif isinstance(params := message.get("params"), dict) and isinstance(thread := params.get("threadId"), str):
            if message.get("method") == TEXT_DELTA and isinstance(text := params.get("delta"), str):
                if (
                    (run := open_runs.get(thread))
                    and (begun := run[0]).get("itemId") == params.get("itemId")
                    and begun.get("turnId") == params.get("turnId")
                ):
                    run[1].append(text)
                    continue
                open_runs[thread] = run = (params, [text])
                runs.append(run)
            else:
                open_runs.pop(thread, None)
        joined.append(message)
    for first, texts in runs:
        first["delta"] = "".join(texts)
    return joined
