"""The model list as Anthropic writes it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ...contracts import Model


def anthropic_model(model: Model) -> dict[str, object]:
    """How much a model may write is not known here, and how much it may read only where its server tells."""
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.id,
        "created_at": datetime.fromtimestamp(model.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
        "max_input_tokens": model.context,
        "max_tokens": None,
    }


def anthropic_models(models: Sequence[Model]) -> dict[str, object]:
    """All of them, on one page."""
    ids = [model.id for model in models]
    return {
        "data": [anthropic_model(model) for model in models],
        "has_more": False,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
    }
