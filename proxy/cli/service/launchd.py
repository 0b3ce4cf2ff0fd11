"""An agent of the user's launchd: launchd.plist(5), launchctl(1)."""

from __future__ import annotations

import os
import plistlib
from pathlib import Path

from .job import NAME, STOP_TIMEOUT, Service, ServiceJob

LABEL = f"local.{NAME}"
# Seconds between two starts of a server that fails.
THROTTLE = 30


def service(job: ServiceJob) -> Service:
    home = Path.home()
    file = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    log = home / "Library" / "Logs" / f"{NAME}.log"
    domain = f"gui/{os.getuid()}"
    return Service(
        file,
        plistlib.dumps(agent(job, log)),
        start=[["launchctl", "bootstrap", domain, str(file)]],
        status=["launchctl", "print", f"{domain}/{LABEL}"],
        stop=[["launchctl", "bootout", f"{domain}/{LABEL}"]],
        remark=f"Its log: {log}.",
    )


def agent(job: ServiceJob, log: Path) -> dict[str, object]:
    return {
        "Label": LABEL,
        "ProgramArguments": list(job.argv),
        "EnvironmentVariables": dict(job.environment),
        "WorkingDirectory": str(job.folder),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": THROTTLE,
        "ExitTimeOut": STOP_TIMEOUT,
        "Umask": 0o077,
        "StandardOutPath": str(log),
        "StandardErrorPath": str(log),
    }
