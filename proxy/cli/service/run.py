"""`tagcall service install|status|remove`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...advice import command
from ...backends import find_kind
from ...errors import UsageError
from ...folders import config_folder
from ...logs import tell
from ...one_run import to_keep
from ...server import read_keys
from ...setting_values import user_path
from ...settings import SETTINGS
from ...sources import Sources
from ..settings import SECRET
from . import launchd, scheduler, systemd
from .job import Service, ServiceJob

# `sys.platform` -> what makes the service of a job there.
SYSTEMS: Mapping[str, Callable[[ServiceJob], Service]] = {
    "linux": systemd.service,
    "darwin": launchd.service,
    "win32": scheduler.service,
}

# What of the environment a service gets as well: it starts with hardly any, and codex is found by PATH. The headers of
# OpenTelemetry hold keys, and others can read the service's file.
PASSED_ON = re.compile(
    r"PATH|XDG_(DATA|CONFIG)_HOME|TAGCALL_(?!TEST_)\w+|OTEL_(?!\w*HEADERS)\w+|SSL_CERT_(FILE|DIR)|(?i:\w+_proxy)"
)


def run_service(action: str, flags: Sequence[str], sources: Sources, *, start: bool) -> int:
    """One action; `flags` are those of `tagcall serve` among the `sources`. Returns the exit status."""
    make = SYSTEMS.get(sys.platform)
    if make is None:
        raise UsageError(f"tagcall cannot install a service on {sys.platform}: have the system run `tagcall serve`.")
    if action == "install":
        _check(sources)
    elif flags:
        raise UsageError(f"Flags of `tagcall serve` are for {command('service install')}", f"{action} takes none")
    service = make(job(flags) if action == "install" else ServiceJob(["tagcall"], {}, user_path("~")))
    match action:
        case "install":
            return _install(service, flags, start=start)
        case "status":
            return _status(service)
        case _:
            return _remove(service)


def _check(sources: Sources) -> None:
    """What `serve` would refuse when nobody looks, and what must not stand in a file."""
    for row in SETTINGS:
        if row.name in SECRET and sources.origins[row.name] in {row.flag, row.variable}:
            place = f"a file of its own, and name that with {row.flag}-file"
            if row.name == "inspect_key":
                place = f'{config_folder() / "tagcall.toml"}, as `inspect_key = "KEY"`'
            raise UsageError("Others could read a key in the service's file", f"write it into {place}")
    read_keys(sources.settings)
    find_kind(sources.settings.backend)


def job(flags: Sequence[str]) -> ServiceJob:
    """`tagcall serve` with these flags, as it was called and where it was called."""
    environment = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
    return ServiceJob([*own_command(), "serve", *flags], environment, Path.cwd())


def own_command() -> list[str]:
    """How this program is started anew, from anywhere."""
    if (install := to_keep()) is not None:
        raise UsageError(
            "A service needs an installed tagcall", f"run `{install}`, then run this again with the installed one"
        )
    if Path(sys.argv[0]).stem == "tagcall" and (found := shutil.which(sys.argv[0])):
        return [str(Path(found).absolute())]
    raise UsageError("Only an installed tagcall can be a service: start it by the command `tagcall`.")


def _install(service: Service, flags: Sequence[str], *, start: bool) -> int:
    serve = command(subprocess.list2cmdline(["serve", *flags]))
    if start and service.file.exists():
        _end(service)  # of what ran until now
    try:
        service.file.parent.mkdir(parents=True, exist_ok=True)
        service.file.write_bytes(service.text)
        service.file.chmod(0o600)
    except OSError as error:
        told = f"The service cannot be written to {service.file} ({error.strerror})"
        raise UsageError(told, f"start the server with {serve} meanwhile") from None
    print(f"Written to {service.file}:\n\n{_shown(service.text)}", flush=True)
    if not start:
        again = command(f"service install --start{' -- ' if flags else ''}{subprocess.list2cmdline(flags)}")
        print(f"Nothing runs yet. Start it with {again}, or with these commands:\n")
        print("".join(f"    {subprocess.list2cmdline(words)}\n" for words in service.start))
        print(service.remark)
        return 0
    for words in service.start:
        if status := _run(words):
            failed = f"`{subprocess.list2cmdline(words)}` failed: the service is written, but does not run yet"
            tell(f"tagcall: {failed}: start the server with {serve} meanwhile.")
            return status
    print(f"It runs, and will start after each login. {service.remark}")
    return 0


def _status(service: Service) -> int:
    if not service.file.exists():
        print("No service is installed.")
        return 1
    print(f"Installed: {service.file}", flush=True)
    return _run(service.status)


def _remove(service: Service) -> int:
    if not service.file.exists():
        print("No service is installed.")
        return 0
    _end(service)
    service.file.unlink()
    print(f"Removed: {service.file}. Login and stored answers stay.")
    return 0


def _end(service: Service) -> None:
    for words in service.stop:
        _run(words)  # what does not run cannot be stopped, and goes all the same


def _run(command: Sequence[str]) -> int:
    """Its exit status; what it says is for the person who called us."""
    program = shutil.which(command[0])
    if program is None:
        raise UsageError(f"{command[0]} is missing. This system needs it for services.")
    return subprocess.run([program, *command[1:]], check=False).returncode  # noqa: S603 -- the system's own


def _shown(text: bytes) -> str:
    return text.decode("utf-16" if text.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8")
