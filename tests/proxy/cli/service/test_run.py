"""`tagcall service` on each system, whose own command is a script that writes down how it was called."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from proxy.cli.main import main
from proxy.cli.service import launchd, run, scheduler, systemd
from proxy.cli.service.job import Service, ServiceJob

# What asks the system, and the end of the file's path.
COMMANDS = {"systemd": "systemctl", "launchd": "launchctl", "scheduler": "schtasks"}
MAKERS: Mapping[str, Callable[[ServiceJob], Service]] = {
    "systemd": systemd.service, "launchd": launchd.service, "scheduler": scheduler.service
}  # fmt: skip


@pytest.fixture(params=COMMANDS)
def calls(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the calls of the system's command stand. The home is not the person's own."""
    programs = tmp_path / "bin"
    programs.mkdir()
    said = tmp_path / "calls"
    for name in (COMMANDS[request.param], "tagcall"):
        (programs / name).write_text(f'#!/bin/sh\necho "$(basename $0) $*" >> {said}\n', "utf-8")
        (programs / name).chmod(0o755)
    monkeypatch.setattr(run, "SYSTEMS", {sys.platform: MAKERS[request.param]})
    monkeypatch.setattr(sys, "argv", ["tagcall"])
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    return said


def files(calls: Path) -> list[Path]:
    return [path for path in (calls.parent / "home").rglob("*") if path.is_file()]


def test_what_is_installed_is_written_and_shown_and_not_started(
    calls: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["service", "install", "--", "--port", "8788", "--alias", "my notes=gpt-5.5"]) == 0
    (file,) = files(calls)
    assert file.stat().st_mode & 0o777 == 0o600
    printed = capsys.readouterr().out
    assert str(file) in printed
    assert "8788" in printed
    assert "my notes=gpt-5.5" in printed
    assert (
        'Nothing runs yet. Start it with `tagcall service install --start -- --port 8788 --alias "my notes=gpt-5.5"`'
        in printed
    )
    assert not calls.exists()


def test_it_is_started_when_that_is_said_asked_for_and_removed(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", "status"]) == 1
    assert main(["service", "remove"]) == 0
    assert not calls.exists()
    assert main(["service", "install", "--start"]) == 0
    assert "after each login" in capsys.readouterr().out
    started = calls.read_text("utf-8")
    assert started
    assert main(["service", "status"]) == 0
    assert main(["service", "remove"]) == 0
    assert files(calls) == []
    assert calls.read_text("utf-8") != started


def test_one_that_runs_is_ended_before_it_is_started_anew(calls: Path) -> None:
    main(["service", "install", "--start"])
    once = calls.read_text("utf-8").splitlines()
    calls.unlink()
    main(["service", "install", "--start"])
    again = calls.read_text("utf-8").splitlines()
    assert again[-len(once) :] == once
    assert len(again) > len(once)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--api-key", "secret-key"], "--api-key-file"),
        (["--backend", "vllm", "--backend-key", "secret-key"], "--backend-key-file"),
        (["--inspect-key", "secret-key"], "/tagcall.toml, as `inspect_key = "),
        (["--host", "0.0.0.0"], "set a key"),
        (["--backend", "magic"], "--backend magic is unknown"),
        (["--port", "99999"], "is not a port"),
    ],
)
def test_what_would_not_start_or_would_show_a_key_is_not_installed(
    flags: list[str], said: str, calls: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["service", "install", "--", *flags]) == 2
    assert said in capsys.readouterr().err
    assert files(calls) == []


def test_a_key_of_the_environment_is_not_installed_and_one_of_tagcall_toml_is_no_hindrance(
    calls: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TAGCALL_INSPECT_KEY", "secret-key")
    assert main(["service", "install"]) == 2
    assert "Others could read a key" in capsys.readouterr().err
    monkeypatch.delenv("TAGCALL_INSPECT_KEY")
    written = calls.parent / "home" / ".config" / "tagcall" / "tagcall.toml"
    written.parent.mkdir(parents=True)
    written.write_text('api_key = "secret-key"\ninspect_key = "secret-page"\n', "utf-8")
    assert main(["service", "install"]) == 0
    (file,) = (file for file in files(calls) if file != written)
    assert b"secret" not in file.read_bytes()


def test_a_home_that_cannot_be_written_is_told(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (calls.parent / "home").write_text("a file", "utf-8")
    assert main(["service", "install", "--", "--port", "8788"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("tagcall: The service cannot be written to ")
    assert re.search(r"\(Not a directory\): start the server with `.*serve --port 8788` meanwhile\.\n$", told)


def test_a_checkout_and_an_unknown_system_are_told(
    calls: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/proxy/cli/__main__.py"])
    assert main(["service", "install"]) == 2
    assert "installed tagcall" in capsys.readouterr().err
    monkeypatch.setattr(run, "SYSTEMS", {})
    assert main(["service", "status"]) == 2
    assert sys.platform in capsys.readouterr().err


def test_a_system_that_does_not_start_it_is_told_of(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS.values():
        if (program := calls.parent / "bin" / name).exists():
            program.write_text("#!/bin/sh\nexit 3\n", "utf-8")
    assert main(["service", "install", "--start", "--", "--port", "8788"]) == 3
    told = capsys.readouterr()
    assert " failed: the service is written, but does not run yet: " in told.err
    assert told.err.endswith("serve --port 8788` meanwhile.\n")
    assert "It runs" not in told.out


def test_a_system_without_its_command_is_told(
    calls: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in COMMANDS.values():
        (calls.parent / "bin" / name).unlink(missing_ok=True)
    monkeypatch.setenv("PATH", str(calls.parent / "bin"))
    assert main(["service", "install", "--start"]) == 2
    assert "is missing" in capsys.readouterr().err


def test_the_command_is_found_again_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "Ann Smith" / "tagcall"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.chdir(program.parent)
    monkeypatch.setattr(sys, "argv", ["./tagcall"])
    assert run.own_command() == [str(program)]
    assert subprocess.run(run.own_command(), check=False).returncode == 0


def test_a_service_exports_spans_where_its_user_does_and_no_key_stands_in_its_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "own_command", lambda: ["tagcall"])
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "Authorization=Basic my-key")
    environment = run.job([]).environment
    assert environment["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://127.0.0.1:4318"
    assert "my-key" not in str(environment)
