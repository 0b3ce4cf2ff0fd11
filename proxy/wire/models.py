"""The model list as OpenAI writes it."""

from __future__ import annotations

from collections.abc import Sequence

from ..contracts import Model


def model_object(model: Model) -> dict[str, object]:
    return {"id": model.id, "object": "model", "created": model.created, "owned_by": model.owned_by}


def model_list(models: Sequence[Model]) -> dict[str, object]:
    return {"object": "list", "data": [model_object(model) for model in models]}
