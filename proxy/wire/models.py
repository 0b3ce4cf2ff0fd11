"""The model list as OpenAI writes it, and the names by which its models can be asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..contracts import Model
from ..errors import RequestError
from .reader import shown


def model_object(model: Model) -> dict[str, object]:
    return {"id": model.id, "object": "model", "created": model.created, "owned_by": model.owned_by}


def model_list(models: Sequence[Model]) -> dict[str, object]:
    return {"object": "list", "data": [model_object(model) for model in models]}


def with_aliases(models: Sequence[Model], aliases: Mapping[str, str]) -> list[Model]:
    """Each alias as a model of its own, then `models`. An alias hides a model of its name."""
    by_id = {model.id: model for model in models}
    named = [
        replace(by_id[model], id=alias) if model in by_id else Model(alias, 0, "tagcall")
        for alias, model in aliases.items()
    ]
    return [*named, *(model for model in models if model.id not in aliases)]


def find_model(models: Sequence[Model], name: str) -> Model:
    """Raises `RequestError` when it is not listed."""
    for model in models:
        if model.id == name:
            return model
    raise RequestError(
        f"The model '{shown(name)}' does not exist or you do not have access to it.",
        status=404,
        code="model_not_found",
        param="model",
    )
