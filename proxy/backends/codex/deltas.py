"""Pure: text that was read together, as one delta for each message.

A model that writes fast is read in blocks of some hundred deltas, and whatever follows takes its time for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...rpc import Notification, RpcEvent, RpcObject

TEXT_DELTA = "item/agentMessage/delta"


def join_deltas(events: Sequence[RpcEvent]) -> list[RpcEvent]:
    """The same events; deltas of one message with nothing of their thread in between are one, in the first's place.

    Anything but a notification stands between all that comes before and after it.
    """
    joined: list[RpcEvent] = []
    runs: list[tuple[RpcObject, list[str]]] = []
    open_runs: dict[str, tuple[RpcObject, list[str]]] = {}
    for event in events:
        if isinstance(event, Notification):
            params = event.params
            thread = params.get("threadId")
            if isinstance(thread, str):
                if event.method == TEXT_DELTA and isinstance(text := params.get("delta"), str):
                    run = open_runs.get(thread)
                    if run is not None and _same_message(run[0], params):
                        run[1].append(text)
                        continue
                    open_runs[thread] = run = (params, [text])
                    runs.append(run)
                else:
                    open_runs.pop(thread, None)
        else:
            open_runs.clear()
        joined.append(event)
    for first, texts in runs:
        first["delta"] = "".join(texts)
    return joined


def _same_message(one: RpcObject, other: RpcObject) -> bool:
    return bool(one.get("itemId") == other.get("itemId") and one.get("turnId") == other.get("turnId"))
