"""The parameters of the Responses API and of Chat Completions: what each may be, in one table for both.

What has a form of its own is checked where it is read: the model's name, what is said, tools, formats and `stop`.
tests/proxy/wire/test_published_parameters.py holds the tables against the official client's types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import RequestError
from .json_body import JsonObject, JsonValue
from .reader import Reader, shown, wrong_type
from .shape import Shapes, check, flag, members, number, one_of, some_of, text, whole

# Wide enough for every name in use; what is no name at all is not worth a turn.
MODEL_NAME = re.compile(r"[^\s\x00-\x1f\x7f](?:.{0,254}[^\s\x00-\x1f\x7f])?")

# How hard the model is to think.
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

# How long its answers are to be.
VERBOSITIES = ("low", "medium", "high")

# How fast an answer is to come, and at what price. The first two are what comes when nothing is asked for.
SERVICE_TIERS = ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")

# What `reasoning.summary` may say, and `reasoning.generate_summary` before it.
SUMMARIES = ("auto", "concise", "detailed")

# What `include` may list.
INCLUDES = (
    "code_interpreter_call.outputs", "computer_call_output.output.image_url", "file_search_call.results",
    "message.input_image.image_url", "message.output_text.logprobs", "reasoning.encrypted_content",
    "web_search_call.action.sources", "web_search_call.results",
)  # fmt: skip

# What `prompt_cache_retention` may say.
CACHE_RETENTIONS = ("in_memory", "in-memory", "24h")

# Items of one input, or messages, and items of a Realtime conversation.
MAX_ITEMS = 10_000

# Members that `metadata` may have.
MAX_METADATA = 16


def _metadata(request: Reader, name: str) -> None:
    metadata = request.object(name)
    if metadata is None:
        return
    if len(metadata.raw) > MAX_METADATA:
        raise RequestError(
            f"Invalid '{name}': too many properties. Expected an object with at most {MAX_METADATA} properties, but "
            f"got an object with {len(metadata.raw)} properties instead.",
            code="object_above_max_properties",
            param=name,
        )
    for key in metadata.raw:
        if len(key) > 64:
            raise RequestError(
                f"Invalid '{name}': property name too long. Expected a string with maximum length 64, but got a "
                f"string with length {len(key)} instead.",
                code="string_above_max_length",
                param=name,
            )
        if metadata.get(key) is None:
            raise wrong_type(metadata.at(key), "a string", None)
        metadata.string(key, max_length=512)


def _logit_bias(request: Reader, name: str) -> None:
    bias = request.object(name)
    for token in bias.raw if bias else ():
        if not (token.isascii() and token.isdigit()):
            raise RequestError(
                f"Invalid '{name}': '{shown(token)}' is not a token id.", code="invalid_value", param=name
            )
        if bias:
            bias.number(token, minimum=-100, maximum=100)


# What is meant by both APIs in the same words.
SHARED: Shapes = {
    "metadata": _metadata,
    "parallel_tool_calls": flag,
    "prompt_cache_key": text(64),
    "prompt_cache_retention": one_of(*CACHE_RETENTIONS),
    "safety_identifier": text(128),
    "service_tier": one_of(*SERVICE_TIERS),
    "store": flag,
    "stream": flag,
    "temperature": number(0, 2),
    "top_logprobs": whole(0, 20),
    "top_p": number(0, 1),
    "user": text(),
}

RESPONSES: Shapes = {
    **SHARED,
    "access_programs": members(cyber=one_of("standard", "daybreak_blue", "daybreak_red")),
    "background": flag,
    "background_options": members(completion_window=one_of("soonest", "2h", "8h"), continuation_id=text()),
    "image": members(context_compression=one_of("auto", "enabled", "disabled")),
    "include": some_of(*INCLUDES),
    "instructions": text(),
    "max_output_tokens": whole(16),
    "max_tool_calls": whole(1),
    "prompt_cache_options": members(
        comparison_response_id=text(),
        mode=one_of("implicit", "explicit"),
        prewarm=flag,
        ttl=one_of("30m", "12h"),
    ),
    "reasoning": members(
        context=one_of("auto", "current_turn", "all_turns"),
        effort=one_of(*EFFORTS),
        generate_summary=one_of(*SUMMARIES),
        mode=text(),
        summary=one_of(*SUMMARIES),
    ),
    "stream_options": members(include_obfuscation=flag),
    "text": members(verbosity=one_of(*VERBOSITIES)),
    "truncation": one_of("auto", "disabled"),
}

CHAT: Shapes = {
    **SHARED,
    "frequency_penalty": number(-2, 2),
    "logit_bias": _logit_bias,
    "logprobs": flag,
    "max_completion_tokens": whole(1),
    "max_tokens": whole(1),
    "modalities": some_of("text", "audio"),
    "n": whole(1, 128),
    "prediction": members(type=one_of("content")),
    "presence_penalty": number(-2, 2),
    "prompt_cache_options": members(mode=one_of("implicit", "explicit"), ttl=one_of("30m")),
    "reasoning_effort": one_of(*EFFORTS),
    "seed": whole(-(2**63), 2**63 - 1),
    "stream_options": members(include_obfuscation=flag, include_usage=flag),
    "verbosity": one_of(*VERBOSITIES),
    "web_search_options": members(
        search_context_size=one_of("low", "medium", "high"),
        user_location=members(
            approximate=members(city=text(), country=text(), region=text(), timezone=text()),
            type=one_of("approximate"),
        ),
    ),
}

# What clients send to the one API by a name of the other, and its name here, as far as OpenAI says it. It would not be
# heeded, and an answer that is no JSON, or longer than was asked for, does not tell why.
MOVED_FROM_CHAT: Mapping[str, str | None] = {
    "max_completion_tokens": "max_output_tokens",
    "max_tokens": None,
    "messages": "input",
    "reasoning_effort": "reasoning.effort",
    "response_format": "text.format",
}
MOVED_FROM_RESPONSES: Mapping[str, str | None] = dict.fromkeys(("input", "max_output_tokens", "reasoning", "text"))


def check_parameters(request: Reader, shapes: Shapes, moved: Mapping[str, str | None]) -> None:
    """Raises `RequestError` for a parameter that has not its shape, and for one that is `moved`."""
    for name in request.among(moved):
        here = moved[name]
        if request.get(name) is None:
            continue
        if here is None:
            raise RequestError(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
        raise RequestError(
            f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to '{here}'. Try again "
            "with the new parameter. See the API documentation for more information: "
            "https://platform.openai.com/docs/api-reference/responses/create.",
            code="unsupported_parameter",
        )
    check(request, shapes)


def parse_tier(request: Reader) -> str | None:
    """`service_tier` of a request, where it is not the usual one."""
    tier = request.string("service_tier")
    return None if tier in SERVICE_TIERS[:2] else tier


# What changes an answer, where a backend heeds it -> the values that ask for nothing.
WISHES: Mapping[str, tuple[JsonValue, ...]] = {
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "presence_penalty": (0,),
    "seed": (),
    "temperature": (1,),
    "top_logprobs": (0,),
    "top_p": (1,),
    "verbosity": (),
    "web_search_options": (),
}


def wishes(request: Reader) -> tuple[str, ...]:
    """The names of those that a request has."""
    return tuple(name for name in request.among(WISHES) if request.get(name) not in (None, *WISHES[name]))


def parse_metadata(request: Reader) -> JsonObject:
    """`metadata` of a request, checked; none is an empty one."""
    if (metadata := request.object("metadata")) is None:
        return {}
    _metadata(request, "metadata")
    return metadata.raw
