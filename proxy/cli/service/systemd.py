"""A unit of the user's own systemd. https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html"""

from __future__ import annotations

import os
import re

from ...setting_values import user_path
from .job import DESCRIPTION, NAME, STOP_TIMEOUT, Service, ServiceJob

UNIT = f"{NAME}.service"


def service(job: ServiceJob) -> Service:
    folder = user_path(os.environ.get("XDG_CONFIG_HOME") or "~/.config") / "systemd" / "user"
    return Service(
        folder / UNIT,
        unit(job).encode(),
        start=[
            ["systemctl", "--user", "daemon-reload"],
            ["systemctl", "--user", "enable", "--now", UNIT],
        ],
        status=["systemctl", "--user", "--no-pager", "status", UNIT],
        stop=[["systemctl", "--user", "disable", "--now", UNIT]],
        remark=f"Its log: journalctl --user --unit {UNIT}. "
        "To keep it running while you are not logged in: loginctl enable-linger.",
    )


def unit(job: ServiceJob) -> str:
    """Status 2 is what a person must change: starting anew would not mend it. Only the server gets SIGTERM, which ends
    its child itself."""
    environment = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in job.environment.items())
    command = " ".join(_quoted(word).replace("$", "$$") for word in job.argv)
    return f"""\
[Unit]
Description={DESCRIPTION}

[Service]
Type=exec
ExecStart={command}
WorkingDirectory=-{str(job.folder).replace("%", "%%")}
{environment}Restart=on-failure
RestartSec=5
RestartPreventExitStatus=2
KillMode=mixed
TimeoutStopSec={STOP_TIMEOUT}
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""


def _quoted(word: str) -> str:
    """One word of a unit file (systemd.syntax(7), "Quoting"), in which % begins a specifier."""
    word = word.replace("%", "%%")
    if re.fullmatch(r"[\w@%+=:,./-]+", word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
