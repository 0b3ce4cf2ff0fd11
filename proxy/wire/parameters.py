"""Parameters that several APIs have: what they may be."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import RequestError
from .json_body import JsonObject, JsonValue
from .reader import Reader, wrong_type

# Wide enough for every name in use; what is no name at all is not worth a turn.
MODEL_NAME = re.compile(r"[^\s\x00-\x1f\x7f](?:.{0,254}[^\s\x00-\x1f\x7f])?")

# How hard the model is to think.
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

# How long its answers are to be.
VERBOSITIES = ("low", "medium", "high")

# How fast an answer is to come, and at what price. The first two are what comes when nothing is asked for.
SERVICE_TIERS = ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")

# Items of one input, or messages, and items of a Realtime conversation.
MAX_ITEMS = 10_000

# Members that `metadata` may have.
MAX_METADATA = 16


def parse_tier(request: Reader) -> str | None:
    """`service_tier` of a request, checked, where it is not the usual one."""
    tier = request.choice("service_tier", SERVICE_TIERS)
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
    return tuple(name for name, idle in WISHES.items() if request.get(name) not in (None, *idle))


def parse_metadata(request: Reader) -> JsonObject:
    """`metadata` of a request, checked; none is an empty one."""
    metadata = request.object("metadata")
    if metadata is None:
        return {}
    if len(metadata.raw) > MAX_METADATA:
        raise RequestError(
            f"Invalid 'metadata': too many properties. Expected an object with at most {MAX_METADATA} properties, but "
            f"got an object with {len(metadata.raw)} properties instead.",
            code="object_above_max_properties",
            param="metadata",
        )
    for key in metadata.raw:
        if len(key) > 64:
            raise RequestError(
                f"Invalid 'metadata': property name too long. Expected a string with maximum length 64, but got a "
                f"string with length {len(key)} instead.",
                code="string_above_max_length",
                param="metadata",
            )
        if metadata.get(key) is None:
            raise wrong_type(metadata.at(key), "a string", None)
        metadata.string(key, max_length=512)
    return metadata.raw
