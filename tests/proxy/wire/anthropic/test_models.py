"""The model list as Anthropic's clients read it."""

from __future__ import annotations

from anthropic.types import ModelInfo

from proxy.contracts import Model
from proxy.wire.anthropic.models import anthropic_model, anthropic_models


def test_a_model_is_what_the_official_client_knows() -> None:
    model = ModelInfo.model_validate(anthropic_model(Model("gpt-5.5", 0, "openai")))
    assert (model.id, model.display_name, model.lifecycle) == ("gpt-5.5", "gpt-5.5", "active")
    assert model.created_at.isoformat() == "1970-01-01T00:00:00+00:00"
    assert anthropic_model(Model("m", 86_400, "x")) == {
        "type": "model", "id": "m", "display_name": "m", "created_at": "1970-01-02T00:00:00Z",
        "max_input_tokens": None, "max_tokens": None, "lifecycle": "active",
    }  # fmt: skip
    assert anthropic_model(Model("m", 0, "x", context=8192))["max_input_tokens"] == 8192


def test_all_of_them_are_one_page() -> None:
    listed = anthropic_models([Model(name, 0, "x") for name in "abc"])
    assert (listed["has_more"], listed["first_id"], listed["last_id"]) == (False, "a", "c")
    assert anthropic_models([]) == {"data": [], "has_more": False, "first_id": None, "last_id": None}
