"""Flags, environment and defaults."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from proxy.errors import UsageError
from proxy.settings import SETTINGS, Settings, add_flags
from proxy.sources import load


def parsed(*argv: str, environment: dict[str, str] | None = None) -> Settings:
    parser = argparse.ArgumentParser()
    add_flags(parser, "serve")
    return load(vars(parser.parse_args(argv)), environment or {})


def test_without_anything_the_defaults_hold() -> None:
    assert parsed() == Settings()
    assert (Settings().host, Settings().port, Settings().backend) == ("127.0.0.1", 8787, "auto")


def test_a_flag_wins_over_its_environment_variable() -> None:
    environment = {"TAGCALL_PORT": "1", "TAGCALL_CALLS": "live", "TAGCALL_MODEL": "a,b"}
    settings = parsed("--port", "2", environment=environment)
    assert (settings.port, settings.calls, settings.model) == (2, "live", ("a", "b"))


def test_repeatable_flags_gather() -> None:
    assert parsed("--model", "a", "--model", "b").model == ("a", "b")
    assert parsed("--allow-origin", "https://x", "--allow-host", "h").allow_origin == ("https://x",)


def test_an_alias_is_a_name_and_a_model() -> None:
    pairs = (("notes", "gpt-5.5"), ("big", "a/b:c"))
    assert parsed("--alias", "notes=gpt-5.5", "--alias", "big = a/b:c").alias == pairs
    assert parsed(environment={"TAGCALL_ALIAS": "notes=gpt-5.5, big=a/b:c"}).alias == pairs


def test_switches_sizes_and_paths() -> None:
    settings = parsed("--reasoning-content", "--max-body", "1MiB", "--codex-home", "~/x", "--idle-timeout", "1.5")
    assert settings.reasoning_content is True
    assert settings.max_body == 1 << 20
    assert settings.codex_home == Path("~/x").expanduser()
    assert settings.idle_timeout == 1.5


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--port", "x"], "--port"),
        (["--port", "70000"], "70000"),
        (["--also-port", "0"], "'0' is not a port"),
        (["--calls", "some"], "whole, live"),
        (["--max-body", "much"], "16MiB"),
        (["--idle-timeout", "0"], "more than 0"),
        (["--idle-timeout", "nan"], "more than 0"),
        (["--idle-timeout", "inf"], "more than 0"),
        (["--max-body", "0"], "16MiB"),
        (["--max-body", "\u00b2MiB"], "is not a size"),
        (["--background-lease", "soon"], "is not a number of seconds"),
        (["--host", ""], "--host must not be empty"),
        (["--codex-home", ""], "--codex-home must not be empty"),
        (["--model", "m\udcc3"], "must be printable"),
        (["--upstream", "nonsense"], "is not a URL"),
        (["--upstream", "http://[bad/v1"], "is not a URL"),
        (["--upstream", "http://h:99999/v1"], "is not a URL"),
        (["--allow-origin", "*"], "is not an origin"),
        (["--api-key", ""], "--api-key must not be empty"),
        (["--model", " "], "--model must not be empty"),
        (["--alias", "notes"], "notes=gpt-5.5"),
        (["--alias", "=gpt-5.5"], "notes=gpt-5.5"),
        (["--alias", "a\x07=b"], "--alias"),
        (["--alias", "a=b", "--alias", "a=c"], "--alias a is given twice"),
        (["--log-format", "xml"], "console, json"),
    ],
)
def test_a_bad_value_is_named_in_one_sentence(argv: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parsed(*argv)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bad_variable_is_named_as_the_variable() -> None:
    with pytest.raises(UsageError, match="TAGCALL_PORT"):
        parsed(environment={"TAGCALL_PORT": "x"})


def test_every_setting_has_a_flag_and_a_variable() -> None:
    assert all(row.flag.startswith("--") and row.variable.startswith("TAGCALL_") for row in SETTINGS)
