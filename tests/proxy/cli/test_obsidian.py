"""What a person is told to enter."""

from __future__ import annotations

import pytest

from proxy.cli.obsidian import client_settings, copilot_api
from proxy.plugins import GOOD_NAME, chatgpt_md_lacks
from proxy.server import base_url
from proxy.settings import Settings

URL = "http://127.0.0.1:8787/v1"


@pytest.mark.parametrize(
    ("model", "api"),
    [
        ("gpt-5.5", "Responses"),
        ("gpt-5", "Responses"),
        ("notes", "Chat Completions"),
        ("my-gpt-5", "Chat Completions"),
        ("gpt-6", "Chat Completions"),
    ],
)
def test_the_name_of_a_model_chooses_the_api(model: str, api: str) -> None:
    assert copilot_api(model) == api


def test_each_alias_is_told_with_its_api() -> None:
    told = client_settings(URL, Settings(alias=(("notes", "gpt-5.5"), ("gpt-5-notes", "other"))))
    assert "notes: Chat Completions, answered by gpt-5.5 (ChatGPT MD does not list it)\n" in told
    assert "gpt-5-notes: Responses, answered by other (ChatGPT MD gives it no tools)\n" in told
    assert f"--alias {GOOD_NAME}=MODEL" in told


def test_a_name_that_passes_every_plugins_filters_needs_no_advice() -> None:
    told = client_settings(URL, Settings(alias=((GOOD_NAME, "gpt-6"),)))
    assert f"{GOOD_NAME}: Responses, answered by gpt-6\n" in told
    assert "In ChatGPT MD: --alias" not in told


def test_who_answers_for_anthropics_models_is_told() -> None:
    told = client_settings(URL, Settings())
    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:8787," in told
    assert "claude-* is answered by the first model of the list; --alias 'claude-*=MODEL' chooses another" in told
    assert "claude-* is answered by gpt-5.5;" in client_settings(URL, Settings(model=("gpt-5.5",)))
    told = client_settings(URL, Settings(alias=(("*haiku*", "o3"), ("claude-*", "gpt-6"))))
    assert "claude-* is answered by gpt-6\n" in told
    assert "*haiku*" not in told


@pytest.mark.parametrize(("host", "here"), [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("192.0.2.2", "192.0.2.2")])
def test_an_address_that_stands_for_all_of_them_is_not_entered_anywhere(host: str, here: str) -> None:
    settings = Settings(host=host, api_key=("k",))
    told = client_settings(base_url(host, settings.port), settings)
    assert f"Base URL     http://{here}:8787/v1\n" in told
    assert ("From other machines: http://ADDRESS:8787/v1" in told) is (here != host)


@pytest.mark.parametrize(
    ("model", "lacking"),
    [
        ("gpt-5.2", None),
        ("gpt-5.2-2025-12-11", None),
        ("gpt-4o-20241120", None),
        ("gpt-4-0613", None),
        ("gpt-5.5", "gives it no tools"),
        ("gpt-5.2-mine", "gives it no tools"),
        ("gpt-6", "does not list it"),
        ("gpt-4o-realtime", "does not list it"),
    ],
)
def test_what_chatgpt_md_makes_of_a_name(model: str, lacking: str | None) -> None:
    assert chatgpt_md_lacks(model) == lacking


def test_a_key_is_named_but_never_shown() -> None:
    assert "anything" in client_settings(URL, Settings())
    told = client_settings(URL, Settings(api_key=("secret-key",)))
    assert "the key that tagcall was started with" in told
    assert "secret-key" not in told
