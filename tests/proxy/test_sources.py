"""Where settings come from, and that what protects cannot be misread."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.cli.main import main
from proxy.errors import UsageError
from proxy.setting_values import BOOLEANS
from proxy.settings import SETTINGS, Settings
from proxy.sources import DEFAULT, gather, load


def written(folder: Path, text: str) -> Path:
    file = folder / "tagcall.toml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(("word", "value"), BOOLEANS.items())
def test_a_switch_is_said_in_any_case_of_letters(word: str, value: bool) -> None:
    for text in (word, word.upper(), word.title(), f" {word} "):
        assert load({}, {"TAGCALL_REASONING_CONTENT": text}).reasoning_content is value


@pytest.mark.parametrize("variable", [row.variable for row in SETTINGS if row.is_switch])
def test_no_switch_can_be_misread(variable: str) -> None:
    with pytest.raises(UsageError, match=rf"{variable}: 'enabled' is neither on nor off"):
        load({}, {variable: "enabled"})


@given(st.text(min_size=1).filter(lambda text: text.strip().lower() not in BOOLEANS))
def test_what_is_neither_on_nor_off_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"TAGCALL_REASONING_CONTENT: .* is neither on nor off"):
        load({}, {"TAGCALL_REASONING_CONTENT": text.replace("\n", " ") or " "})


@pytest.mark.parametrize("name", ["TAGCALL_REASONING_CONTEND", "TAGCALL_APIKEY", "TAGCALL_API_KEYS", "TAGCALL_Port"])
def test_a_name_that_is_nearly_one_is_refused_and_the_one_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=rf"^{name} is not a setting: did you mean TAGCALL_\w+\?$"):
        gather({}, {name: "1"})


def test_another_name_is_told() -> None:
    assert gather({}, {"TAGCALL_COLOUR_OF_THE_SKY": "1"}).warnings == (
        "TAGCALL_COLOUR_OF_THE_SKY is not a setting and has no effect.",
    )


def test_blanks_round_the_values_of_a_list_are_no_part_of_them() -> None:
    settings = load({}, {"TAGCALL_MODEL": " first, second ,third", "TAGCALL_ALLOW_HOST": "notes.lan , other.lan"})
    assert settings.model == ("first", "second", "third")
    assert settings.allow_host == ("notes.lan", "other.lan")


KUBERNETES = {
    "TAGCALL_SERVICE_HOST": "10.0.0.1",
    "TAGCALL_SERVICE_PORT": "8787",
    "TAGCALL_SERVICE_PORT_HTTP": "8787",
    "TAGCALL_PORT": "tcp://10.0.0.1:8787",
    "TAGCALL_PORT_8787_TCP": "tcp://10.0.0.1:8787",
    "TAGCALL_PORT_8787_TCP_PROTO": "tcp",
    "TAGCALL_PORT_8787_TCP_PORT": "8787",
    "TAGCALL_PORT_8787_TCP_ADDR": "10.0.0.1",
}


def test_what_kubernetes_and_the_tests_set_is_passed_over() -> None:
    sources = gather({}, {**KUBERNETES, "TAGCALL_TEST_CODEX": "x"})
    assert sources.warnings == ()
    assert sources.settings == Settings()
    assert set(sources.origins.values()) == {DEFAULT}


def test_a_flag_wins_over_a_variable_and_that_over_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, 'port = 1\ncalls = "live"\nhost = "::1"\nmodel = ["a", "b"]\nloop-guard = true\n')
    sources = gather({"port": "3"}, {"TAGCALL_PORT": "2", "TAGCALL_CALLS": "whole"}, file)
    settings = sources.settings
    assert (settings.port, settings.calls, settings.host, settings.model) == (3, "whole", "::1", ("a", "b"))
    assert settings.loop_guard is True
    assert [sources.origins[name] for name in ("port", "calls", "host", "store")] == [
        "--port", "TAGCALL_CALLS", f"host in {file}", DEFAULT
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = [1]", "takes one value"),
        ("port = 'x'", "must be a number"),
        ("port = true", "a value, not a switch"),
        ("reasoning-content = 'enabled'", "neither on nor off"),
        ("reasoning-content = 3", "must be true or false"),
        ("reasoning-contend = true", "did you mean reasoning_content?"),
        ("[serve]\nport = 1", "[serve] in"),
        ("[serve]\nport = 1", "is a table: write settings at the top of the file, in no table."),
        ("port = 1979-05-27", "must be text, a number"),
        ("call_key = 'off'\ncall-key = 'auto'", "is given twice"),
        ("port = ", "is not TOML"),
    ],
)
def test_a_bad_file_is_one_sentence_that_names_it(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(UsageError) as refused:
        gather({}, {}, file)
    assert said in str(refused.value)
    assert str(file) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_mark_of_its_byte_order_is_no_part_of_a_file(tmp_path: Path) -> None:
    """Editors on Windows write one."""
    assert gather({}, {}, written(tmp_path, "\ufeffport = 3\n")).settings.port == 3


def test_a_file_that_is_named_must_be_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["settings", "--config", str(tmp_path / "none.toml")]) == 2
    assert capsys.readouterr().err.endswith(
        "none.toml cannot be read (No such file or directory): "
        "name another file with --config, or none with --config none.\n"
    )


def test_settings_says_what_is_in_force_and_whence_without_secrets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tagcall").mkdir()
    file = written(tmp_path / "tagcall", 'api-key = "hush"\nstore = "redis://me:hush@host:1"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TAGCALL_PORT", "8788")
    assert main(["settings", "--alias", "notes=gpt-5.5"]) == 0
    printed = capsys.readouterr().out
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in printed.splitlines()}
    assert set(rows) == {row.flag for row in SETTINGS}
    assert rows["--port"] == "8788 TAGCALL_PORT"
    assert rows["--alias"] == "notes=gpt-5.5 --alias"
    assert rows["--api-key"] == f"(set) api_key in {file}"
    assert rows["--store"] == f"redis://...@host:1 store in {file}"
    assert rows["--host"] == "127.0.0.1 default"
    assert rows["--base-path"] == "none default"
    assert rows["--max-body"] == "16MiB default"
    assert "hush" not in printed
    assert main(["settings", "--config", "none"]) == 0
    assert str(file) not in capsys.readouterr().out
