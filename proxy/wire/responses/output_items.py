"""The items of an answer as a Response writes them, in its events and in its `output`."""

from __future__ import annotations

from base64 import b64encode

from ..builder import WireEvent
from ..custom_tools import unwrap_input
from ..output import ItemStatus, OutputItem


def text_part(text: str) -> WireEvent:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def summary_part(text: str) -> WireEvent:
    return {"type": "summary_text", "text": text}


def item_object(item: OutputItem, status: ItemStatus, *, encrypted: bool = False) -> WireEvent:
    """In progress it holds nothing yet. `encrypted`: the client asked for `reasoning.encrypted_content`."""
    begun = status == "in_progress"
    head: WireEvent = {"id": item.id, "type": item.type}
    called: WireEvent = {"call_id": item.call_id, "name": item.name}
    namespace: WireEvent = {} if item.namespace is None else {"namespace": item.namespace}
    match item.type:
        case "message":
            return {**head, "status": status, "role": "assistant", "content": [] if begun else [text_part(item.text)]}
        case "function_call":
            return {**head, "status": status, "arguments": "" if begun else item.text, **called, **namespace}
        case "custom_tool_call":
            text = unwrap_input(item.text) if status == "completed" else ""
            return {**head, "status": status, **called, "input": text, **namespace}
        case "reasoning":  # without a status, as at OpenAI
            return {**head, "summary": []} if begun else {**head, **_summary(item.texts, encrypted=encrypted)}


def _summary(texts: list[str], *, encrypted: bool) -> WireEvent:
    summary: WireEvent = {"summary": [summary_part(text) for text in texts]}
    if encrypted:
        # There is nothing to hide and nothing to carry over, but clients that asked for it must find it. The line
        # end is for them: they take an empty one for none.
        summary["encrypted_content"] = b64encode(("\n\n".join(texts) + "\n").encode()).decode()
    return summary
