"""The model list as OpenAI writes it, and the names by which you can ask for its models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ..contracts import Model
from ..errors import RequestError
from .reader import shown


def model_object(model: Model) -> dict[str, object]:
    return {"id": model.id, "object": "model", "created": model.created, "owned_by": model.owned_by}


def model_list(models: Sequence[Model]) -> dict[str, object]:
    return {"object": "list", "data": [model_object(model) for model in models]}


def is_pattern(alias: str) -> bool:
    """Whether an alias stands for many names."""
    return "*" in alias


def model_behind(name: str, aliases: Mapping[str, str]) -> str | None:
    """The model of the alias for `name`: of the one with just this name, else of the first pattern that it fits."""
    if name in aliases:
        return aliases[name]
    return next((model for alias, model in aliases.items() if is_pattern(alias) and _fits(name, alias)), None)


def _fits(name: str, pattern: str) -> bool:
    """Whether `pattern`, in which `*` stands for any characters, is all of `name`."""
    first, *rest = pattern.split("*")
    if not name.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        if (at := name.find(part, at)) < 0:
            return False
        at += len(part)
    return len(name) - at >= len(rest[-1]) and name.endswith(rest[-1])


def with_aliases(models: Sequence[Model], aliases: Mapping[str, str]) -> list[Model]:
    """Each alias as a model of its own, but for patterns, then `models`. An alias hides a model of its name."""
    by_id = {model.id: model for model in models}
    named = [
        replace(by_id[model], id=alias) if model in by_id else Model(alias, 0, "tagcall")
        for alias, model in aliases.items()
        if not is_pattern(alias)
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
