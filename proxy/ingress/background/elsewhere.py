"""Ends a response that no job of this process makes, or whose job did not record its end."""

from __future__ import annotations

from msgspec.structs import replace

from ...contracts import ResponseStore, Run, StoredResponse, WireObject
from ...errors import ApiError
from ...wire.responses.left_output import left_output
from .job import encoded

# Responses that are not over.
RUNNING = frozenset({"queued", "in_progress"})

# What becomes of a response when its server has gone.
ABANDONED = ApiError("The server ended before this response was finished.")


async def end_elsewhere(store: ResponseStore, stored: StoredResponse, run: Run | None, error: ApiError | None) -> bool:
    """Ends a response that no job of this process makes: cancelled without an error, else failed.

    False: it is not `run` any more that makes it, or it has ended.
    """
    told = None if run is None else await store.journal.events(run)
    ending = {**stored.response, "status": "cancelled"} if error is None else failed(stored.response, error)
    response = ending if told is None else {**ending, "output": left_output(told)}
    last = None if told is None else last_event(response, error, len(told))
    events = None if told is None or last is None else b"".join([*told, last])
    ended = await store.save(replace(stored, response=response), events=events, leased_by=run)
    if ended and run is not None and told is not None and last is not None:
        store.journal.append(run, len(told), [last], last=True)
        store.journal.end(run)
    return ended


def last_event(response: WireObject, error: ApiError | None, number: int) -> bytes:
    """That of a response which its own process did not end, or did not tell."""
    kind = response["status"] if response["status"] in {"completed", "incomplete"} else "failed"
    event = {"type": f"response.{kind}", "sequence_number": number, "response": response}
    return encoded([event if error is None else {**event, "error": error.error_object()}])[0]


def failed(response: WireObject, error: ApiError) -> WireObject:
    return {**response, "status": "failed", "error": {"code": "server_error", "message": error.message}}
