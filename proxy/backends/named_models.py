"""The models that `--model` names, in front of those that a backend lists."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..contracts import Model


def named_first(named: Sequence[Model], listed: Sequence[Model]) -> list[Model]:
    """Each once. A named one may be asked for whether or not the backend knows it."""
    known = {model.id: model for model in listed}
    names = {model.id for model in named}
    return [
        *(
            replace(model, listed=True, context=known[model.id].context) if model.id in known else model
            for model in named
        ),
        *(model for name, model in known.items() if name not in names),
    ]
