"""For which models results go out as outputs of tools, and not as messages of the user.

A model ranks the output of a tool below the words of its user. But a service may refuse outputs that answer none of its
own calls. That is remembered for a model once the same conversation was accepted with messages.
"""

from __future__ import annotations

import structlog
from cachetools import LRUCache
from structlog.typing import FilteringBoundLogger

log: FilteringBoundLogger = structlog.get_logger(__name__)

# Models of which a refusal is remembered.
MOST_MODELS = 256


class ToolOutputs:
    """`wanted`: by the owner, for every model."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._refusing: LRUCache[str, bool] = LRUCache(MOST_MODELS)

    def taken_by(self, model: str) -> bool:
        return self._wanted and model not in self._refusing

    def refused_by(self, model: str) -> None:
        if model not in self._refusing:
            log.warning("codex_refuses_tool_outputs", model=model, results_as="user")
        self._refusing[model] = True
