"""What hosts are told of a model's context, wherever they look for it."""

from __future__ import annotations

import pytest

from proxy.contracts import Model
from proxy.wire.ollama.models import CONTEXT, details, running, tags


@pytest.mark.parametrize(("told", "context"), [(8192, 8192), (None, CONTEXT)])
def test_a_context_is_as_large_as_the_models_server_tells(told: int | None, context: int) -> None:
    model = Model("m", 0, "x", context=told)
    shown, listed, loaded = (repr(each) for each in (details(model), tags([model]), running([model])))
    assert shown.count(f"context_length': {context}") == 2
    assert f"num_ctx {context}" in shown
    assert listed.count(f"context_length': {context}") == 1
    assert loaded.count(f"context_length': {context}") == 2
