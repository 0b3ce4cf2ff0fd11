"""The requests to codex, and the answers to its own requests: nothing is granted.

In a text-only thread codex asks nothing. Its questions get well-formed answers all the same, because some versions wait
for ever after an error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

from prompts import Image, Item, Part, Text

from ...contracts import Prompt
from ...rpc import RpcObject, UnknownMethodError
from ...version import own_version
from .output_schema import output_schema

# Names of tools that every service takes, and what stands for another.
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
NAMELESS = "tool"


def client_info() -> Mapping[str, str]:
    return {"name": "tagcall", "title": "tagcall", "version": own_version()}


IGNORED_NOTIFICATIONS = (
    "item/reasoning/summaryPartAdded",
    "remoteControl/status/changed",
    "thread/readState/changed",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
)


def greeting() -> RpcObject:
    """Of `initialize`. Versions that know no capabilities ignore them."""
    capabilities = {"experimentalApi": True, "optOutNotificationMethods": list(IGNORED_NOTIFICATIONS)}
    return {"clientInfo": client_info(), "capabilities": capabilities}


def thread_params(prompt: Prompt, cwd: str | None, base_instructions: str | None) -> RpcObject:
    """Of `thread/start`, but for `environments`, which not every version takes."""
    optional = {
        # 0.89 sends an empty text as a message of its own.
        "developerInstructions": prompt.developer or None,
        "baseInstructions": base_instructions,
        "cwd": cwd,
        "config": None if prompt.verbosity is None else {"model_verbosity": prompt.verbosity},
    }
    return {
        "model": prompt.model,
        "approvalPolicy": "never",
        "sandbox": "read-only",
        "ephemeral": True,
        **{name: value for name, value in optional.items() if value is not None},
    }


def turn_params(thread_id: str, prompt: Prompt, parts: Iterable[Part], *, tiered: bool = False) -> RpcObject:
    """Of `turn/start` with `parts` as its input. What it does not name codex takes from the turn before.

    `tiered`: its thread was told a service tier, which null takes back.
    """
    optional = {
        "effort": prompt.effort,
        "serviceTier": prompt.tier,
        "outputSchema": None if prompt.output_schema is None else output_schema(prompt.output_schema),
    }
    return {
        "threadId": thread_id,
        "input": [_input_item(part) for part in parts],
        "summary": prompt.summary or "none",
        **({"serviceTier": None} if tiered else {}),
        **{name: value for name, value in optional.items() if value is not None},
    }


def _input_item(part: Part) -> RpcObject:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(url, "original"):
            return {"type": "image", "url": url, "detail": "original"}
        case Image(url):  # 0.133 refuses low and auto, and 0.163 leaves out an image of low detail
            return {"type": "image", "url": url}


def inject_params(thread_id: str, items: Iterable[Item], *, outputs: bool = False) -> RpcObject:
    """Of `thread/inject_items`: messages that the model sees as if they had been said on the thread.

    With `outputs` results are outputs of tools. They name no call: to the service the model has made none.
    """
    return {"threadId": thread_id, "items": [*_messages(items, outputs=outputs)]}


def is_asked(item: Item, *, outputs: bool) -> bool:
    """Whether an item is of the user, as the model sees it, so that it may stand in a turn's input."""
    return item.role == "user" and not (outputs and item.tool is not None)


def _messages(items: Iterable[Item], *, outputs: bool) -> Iterator[RpcObject]:
    # What a turn's input holds is one message as well: so a conversation looks the same on any thread.
    for asks, run in groupby(items, key=partial(is_asked, outputs=outputs)):
        if asks:
            yield _message("user", [part for item in run for part in item.parts])
            continue
        for item in run:
            for said in item.phased:
                phase = {} if said.phase is None else {"phase": said.phase}
                yield {**_message(item.role, [Text(said.text)]), **phase}
            if item.tool is not None:
                yield _output(item.tool, item.parts)
            elif not item.phased:
                yield _message(item.role, item.parts)


def _message(role: str, parts: Iterable[Part]) -> RpcObject:
    text = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": _content(text, parts)}


def _output(tool: str, parts: Sequence[Part]) -> RpcObject:
    match parts:
        case [Text(text)]:
            output: str | list[RpcObject] = text
        case _:
            output = _content("input_text", parts)
    name = tool if TOOL_NAME.fullmatch(tool) else NAMELESS
    return {"type": "function_call_output", "name": name, "output": output}


def _content(text: str, parts: Iterable[Part]) -> list[RpcObject]:
    return [{"type": text, "text": part.text} if isinstance(part, Text) else _image(part) for part in parts]


def _image(image: Image) -> RpcObject:
    # Without its detail an injected image differs from one of a turn's input.
    detail = "original" if image.detail == "original" else "high"
    return {"type": "input_image", "image_url": image.url, "detail": detail}


ANSWERS: Mapping[str, Callable[[], RpcObject]] = {
    "item/commandExecution/requestApproval": lambda: {"decision": "decline"},
    "item/fileChange/requestApproval": lambda: {"decision": "decline"},
    "execCommandApproval": lambda: {"decision": "denied"},
    "applyPatchApproval": lambda: {"decision": "denied"},
    "item/permissions/requestApproval": lambda: {"permissions": {}},
    "item/tool/requestUserInput": lambda: {"answers": {}},
    "mcpServer/elicitation/request": lambda: {"action": "decline"},
    "item/tool/call": lambda: {"contentItems": [], "success": False},
    "currentTime/read": lambda: {"currentTimeAt": int(time.time())},
}


def answer_request(method: str, params: RpcObject) -> object:
    """The result for a request of the app-server. Raises `UnknownMethodError` for one that is not in the table."""
    known = ANSWERS.get(method)
    if known is None:
        raise UnknownMethodError(method)
    return known()
