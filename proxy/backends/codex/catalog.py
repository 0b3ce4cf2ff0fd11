"""codex's model table, rewritten so that every model is one without tools.

Only this table takes the tools from the newer models. It has one catch: codex sends the base instructions of a foreign
table as they stand, while it takes out of its own what concerns tools that are off. So the text that codex would send
with its own table is measured, and written into ours.

A name is looked up by its longest prefix in the table, so the entry with the empty name serves all others. Any model
name may be asked for, and none brings a tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...rpc import RpcObject

# A model name that no table has: what is measured under it holds for every unknown name.
UNKNOWN = "tagcall-unknown-model"

# Tokens. So large that codex never shortens a prompt by asking the model for a summary first.
CONTEXT_WINDOW = 10_000_000

NO_TOOLS: Mapping[str, object] = {
    "shell_type": "disabled",
    "apply_patch_tool_type": None,
    "experimental_supported_tools": [],
    "tool_mode": None,
    "multi_agent_version": None,
    "supports_search_tool": False,
    "node_repl_disabled": True,
    "context_window": CONTEXT_WINDOW,
    "max_context_window": CONTEXT_WINDOW,
}

# As codex treats a name it does not know, where its table needs a value.
LIKE_UNKNOWN: Mapping[str, object] = {
    "slug": "",
    "display_name": "any other model",
    "description": None,
    "visibility": "hide",
    "priority": 1000,
    "upgrade": None,
    "default_reasoning_level": None,
    "supported_reasoning_levels": [],
    "default_reasoning_summary": "auto",
    "support_verbosity": False,
    "default_verbosity": None,
    "use_responses_lite": False,
    "supports_parallel_tool_calls": True,
    "additional_speed_tiers": [],
    "service_tiers": [],
}


def text_only_catalog(models: Sequence[Mapping[str, Any]], base_instructions: Mapping[str, str]) -> RpcObject:
    """The table for `model_catalog_json`. `models` is the program's own, `base_instructions` what it sends for each.

    A model that was not measured keeps the text of its entry; without a measurement under `UNKNOWN` names
    outside the table stay codex's own affair, which gives them no tool either.
    """
    entries = [{**model, **NO_TOOLS, **_instructions(base_instructions.get(str(model["slug"])))} for model in models]
    text = base_instructions.get(UNKNOWN)
    if text is not None and models:
        # A plain model is the nearest to an unknown one in all that is not listed here.
        nearest = next((model for model in models if not model.get("use_responses_lite")), models[-1])
        known = {key: value for key, value in LIKE_UNKNOWN.items() if key in nearest}
        entries.append({**nearest, **NO_TOOLS, **known, **_instructions(text)})
    return {"models": entries}


def verbosity_of(catalog: RpcObject) -> dict[str, bool]:
    """By the beginning of a model's name, whether codex tells it a verbosity. Raises LookupError or TypeError."""
    return {str(model["slug"]): bool(model.get("support_verbosity")) for model in catalog["models"]}


def _instructions(text: str | None) -> Mapping[str, object]:
    # The messages hold a template of the same text, which would win.
    return {} if text is None else {"base_instructions": text, "model_messages": None}
