"""What each system is told, held against its own tools where they are here, and its documented words."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from proxy.cli.service import launchd, scheduler, systemd
from proxy.cli.service.job import ServiceJob
from proxy.errors import UsageError

ODD = ["--alias", 'my "own" $notes 100%=gpt-5.5', "--base-instructions", "C:\\Users\\Ann Smith\\text.md"]


def job(folder: Path, **environment: str) -> ServiceJob:
    program = folder / "Ann Smith" / "tagcall"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    return ServiceJob([str(program), "serve", *ODD], environment, folder)


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is not here")
    unit = tmp_path / systemd.UNIT
    unit.write_text(systemd.unit(job(tmp_path, PATH="/usr/bin:/opt/My Programs", TAGCALL_MODEL='a "b" 50%')), "utf-8")
    done = subprocess.run(
        [verify, "--user", "--man=no", "--recursive-errors=one", "verify", unit],
        env={"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert systemd.UNIT not in done.stderr, done.stderr


def test_a_unit_means_the_words_that_it_was_made_of(tmp_path: Path) -> None:
    lines = dict(line.split("=", 1) for line in systemd.unit(job(tmp_path, A="100% b")).splitlines() if "=" in line)
    assert lines["ExecStart"] == (
        f'"{tmp_path}/Ann Smith/tagcall" serve --alias "my \\"own\\" $$notes 100%%=gpt-5.5" --base-instructions '
        '"C:\\\\Users\\\\Ann Smith\\\\text.md"'
    )
    assert lines["Environment"] == '"A=100%% b"'


# launchd.plist(5); whether it takes a text, a number, a list and so on.
DOCUMENTED = {
    "Label": str, "ProgramArguments": list, "EnvironmentVariables": dict, "WorkingDirectory": str, "RunAtLoad": bool,
    "KeepAlive": dict, "ThrottleInterval": int, "ExitTimeOut": int, "Umask": int, "StandardOutPath": str,
    "StandardErrorPath": str,
}  # fmt: skip


def test_launchd_gets_keys_that_it_documents_and_the_words_as_they_are(tmp_path: Path) -> None:
    work = job(tmp_path, PATH="/usr/bin")
    agent = plistlib.loads(plistlib.dumps(launchd.agent(work, tmp_path / "log")))
    assert {key: type(value) for key, value in agent.items()} == DOCUMENTED
    assert agent["ProgramArguments"] == work.argv
    assert agent["EnvironmentVariables"] == {"PATH": "/usr/bin"}
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["Umask"] == 0o077


def test_the_task_scheduler_gets_one_task_at_logon(tmp_path: Path) -> None:
    text = scheduler.task(job(tmp_path), "HOME\\ann")
    assert text.decode("utf-16").startswith("<?xml")
    task = fromstring(text)  # noqa: S314 -- our own
    assert task.tag == f"{{{scheduler.NAMESPACE}}}Task"
    # The schema fixes this order (taskschd.xsd, taskType).
    parts = [part.tag.partition("}")[2] for part in task]
    assert parts == ["RegistrationInfo", "Triggers", "Principals", "Settings", "Actions"]
    found = {element.tag.partition("}")[2]: element.text for element in task.iter()}
    assert found["UserId"] == "HOME\\ann"
    assert found["Command"] == f"{tmp_path}/Ann Smith/tagcall"
    assert found["Arguments"] == subprocess.list2cmdline(["serve", *ODD])
    assert found["ExecutionTimeLimit"] == "PT0S"


def test_a_task_has_no_place_for_settings_of_the_environment(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="TAGCALL_MODEL"):
        scheduler.service(job(tmp_path, TAGCALL_MODEL="m"))
