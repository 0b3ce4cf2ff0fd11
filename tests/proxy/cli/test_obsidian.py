"""What a person is told to enter."""

from __future__ import annotations

import pytest

from proxy.cli.obsidian import client_settings, copilot_api
from proxy.settings import Settings

URL = "http://127.0.0.1:8787/v1"


@pytest.mark.parametrize(
    ("model", "api"),
    [("gpt-5.5", "Responses"), ("gpt-5", "Responses"), ("notes", "Chat Completions"), ("my-gpt-5", "Chat Completions")],
)
def test_the_name_of_a_model_chooses_the_api(model: str, api: str) -> None:
    assert copilot_api(model) == api


def test_each_alias_is_told_with_its_api() -> None:
    told = client_settings(URL, Settings(alias=(("notes", "gpt-5.5"), ("gpt-5-notes", "other"))))
    assert "notes: Chat Completions, answered by gpt-5.5\n" in told
    assert "gpt-5-notes: Responses, answered by other\n" in told


def test_a_key_is_named_but_never_shown() -> None:
    assert "anything" in client_settings(URL, Settings())
    told = client_settings(URL, Settings(api_key=("secret-key",)))
    assert "the key that tagcall was started with" in told
    assert "secret-key" not in told
