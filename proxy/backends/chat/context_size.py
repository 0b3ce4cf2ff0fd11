"""How many tokens a model reads. Each kind of server tells it in another place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from ...errors import BackendError

# Where the size in use stands in what servers tell of a model: before the size that it was made for.
_MEMBERS = (
    ("meta", "n_ctx"), ("loaded_context_length",), ("max_model_len",), ("context_length",), ("max_context_length",),
)  # fmt: skip
# Beside OpenAI's API Ollama and LM Studio tell what is in use: path, its list, and the name of a model there.
_BESIDE = (("/api/ps", "models", "name"), ("/api/v0/models", "data", "id"))


async def sizes_in_use(look: Callable[[str], Awaitable[Any]], url: str) -> dict[str, int]:
    """By model, of those that the server at `url` tells beside OpenAI's API. `look` gives what stands at an address, or
    raises `BackendError`.
    """
    root = "{0.scheme}://{0.netloc}".format(urlsplit(url))
    sizes: dict[str, int] = {}
    for path, rows, name in _BESIDE:
        try:
            listed = await look(f"{root}{path}")
        except BackendError:
            continue
        found = listed.get(rows) if isinstance(listed, dict) else None
        for row in found if isinstance(found, list) else []:
            if isinstance(row, dict) and isinstance(row.get(name), str) and (size := size_of(row)):
                sizes.setdefault(row[name], size)
    return sizes


def size_of(row: Any) -> int | None:  # noqa: ANN401 -- whatever a server sends
    """That of a model in a list of models."""
    for path in _MEMBERS:
        value = row
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, int) and value > 0:
            return value
    return None
