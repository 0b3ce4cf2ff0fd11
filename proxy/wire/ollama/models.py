"""Models as Ollama describes them. Many members mean nothing here, but some hosts raise without them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ...contracts import Model
from ..builder import WireEvent
from .ollama_builder import timestamp

# Three plain numbers, or VS Code says that the server is too old. Of the API that is served here.
VERSION = "0.13.0"

# Tokens that hosts may put into a prompt where nobody tells how many a model reads; what is too long is told.
CONTEXT = 131_072

# Without `tools` no host offers any.
CAPABILITIES = ("completion", "tools")

_FAMILY = "tagcall"
_DETAILS: WireEvent = {
    "parent_model": "",
    "format": "gguf",
    "family": _FAMILY,
    "families": [_FAMILY],
    "parameter_size": "unknown",
    "quantization_level": "unknown",
}

# Old hosts look for this word before they offer tools.
_TEMPLATE = "{{ .System }}{{ .Tools }}{{ .Prompt }}"


def _context(model: Model) -> int:
    return model.context or CONTEXT


def _details(model: Model) -> WireEvent:
    return {**_DETAILS, "context_length": _context(model)}


def _listed(model: Model) -> WireEvent:
    return {
        "name": model.id,
        "model": model.id,
        "modified_at": timestamp(model.created),
        "size": 1,
        "digest": hashlib.sha256(model.id.encode()).hexdigest(),
        "details": _details(model),
    }


def tags(models: Sequence[Model]) -> WireEvent:
    return {"models": [{**_listed(model), "capabilities": list(CAPABILITIES)} for model in models]}


def running(models: Sequence[Model]) -> WireEvent:
    """All are ready, for good."""
    more = {"expires_at": timestamp(32503680000), "size_vram": 1}
    return {"models": [{**_listed(model), **more, "context_length": _context(model)} for model in models]}


def details(model: Model) -> WireEvent:
    return {
        "capabilities": list(CAPABILITIES),
        "details": _details(model),
        "model_info": {
            "general.architecture": _FAMILY,
            "general.basename": model.id,
            "general.parameter_count": 1,
            f"{_FAMILY}.context_length": _context(model),
        },
        "modified_at": timestamp(model.created),
        "template": _TEMPLATE,
        "parameters": f"num_ctx {_context(model)}",
        "modelfile": f"FROM {model.id}",
        "license": "",
    }
