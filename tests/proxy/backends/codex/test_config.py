from __future__ import annotations

import tomllib
from pathlib import Path

from proxy.backends.codex.config import Provider, config_text


def test_an_upstream_gets_no_login_and_no_retries() -> None:
    config = tomllib.loads(config_text(Provider("http://127.0.0.1:1/v1"), 300))
    assert config["model_provider"] == "tagcall"
    assert config["model_providers"]["tagcall"] == {
        "name": "tagcall",
        "base_url": "http://127.0.0.1:1/v1",
        "wire_api": "responses",
        "requires_openai_auth": False,
        "request_max_retries": 0,
        "stream_max_retries": 0,
        "stream_idle_timeout_ms": 360_000,
    }


def test_codexs_own_service_gets_its_login_and_no_address() -> None:
    provider = tomllib.loads(config_text(Provider(), 300))["model_providers"]["tagcall"]
    assert provider["requires_openai_auth"] is True
    assert "base_url" not in provider


def test_codexs_own_provider_entry_can_be_kept() -> None:
    config = tomllib.loads(config_text(Provider(builtin=True), 300))
    assert "model_provider" not in config
    assert "model_providers" not in config


def test_paths_and_addresses_may_hold_any_character() -> None:
    odd = 'C:\\Users\\a "b" \x7f ä 🌱'
    config = tomllib.loads(config_text(Provider(odd), 300, catalog=Path(odd), skills_in=Path(odd)))
    assert config["model_providers"]["tagcall"]["base_url"] == odd
    assert config["model_catalog_json"] == odd
    assert [entry["enabled"] for entry in config["skills"]["config"]] == [False, False]
    assert all(entry["path"].startswith(odd) for entry in config["skills"]["config"])


def test_no_feature_is_left_on() -> None:
    config = tomllib.loads(config_text(Provider(), 300))
    assert set(config["features"].values()) == {False}
    assert config["approval_policy"] == "never"
    assert config["sandbox_mode"] == "read-only"
