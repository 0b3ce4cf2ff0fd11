"""A task of the Windows Task Scheduler. https://learn.microsoft.com/windows/win32/taskschd/task-scheduler-schema"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ...errors import UsageError
from .job import DESCRIPTION, NAME, Service, ServiceJob

NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"

SETTINGS = {
    "MultipleInstancesPolicy": "IgnoreNew",
    "DisallowStartIfOnBatteries": "false",
    "StopIfGoingOnBatteries": "false",
    "ExecutionTimeLimit": "PT0S",  # none
    "Enabled": "true",
}
RESTART = {"Interval": "PT1M", "Count": "3"}


def service(job: ServiceJob) -> Service:
    """Raises `UsageError` for what a task has no place for: it runs in the environment that the user logs on with."""
    if given := sorted(name for name in job.environment if name.startswith("TAGCALL_")):
        raise UsageError(f"{', '.join(given)} has no effect on a task: give the flag behind `--`.")
    file = Path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local").expanduser() / NAME / "service.xml"
    user = "\\".join(filter(None, (os.environ.get("USERDOMAIN"), os.environ.get("USERNAME"))))
    return Service(
        file,
        task(job, user),
        start=[
            ["schtasks", "/Create", "/TN", NAME, "/XML", str(file), "/F"],
            ["schtasks", "/Run", "/TN", NAME],
        ],
        status=["schtasks", "/Query", "/TN", NAME, "/V", "/FO", "LIST"],
        stop=[["schtasks", "/End", "/TN", NAME], ["schtasks", "/Delete", "/TN", NAME, "/F"]],
        remark="Its window shows the log. If you close the window, the server ends.",
    )


def task(job: ServiceJob, user: str) -> bytes:
    """UTF-16, as schtasks exports it."""
    root = Element("Task", {"version": "1.2", "xmlns": NAMESPACE})
    _add(root, "RegistrationInfo", {"Description": DESCRIPTION})
    _add(SubElement(root, "Triggers"), "LogonTrigger", {"Enabled": "true", "UserId": user})
    principal = {"UserId": user, "LogonType": "InteractiveToken", "RunLevel": "LeastPrivilege"}
    _add(SubElement(root, "Principals"), "Principal", principal).set("id", "Author")
    _add(_add(root, "Settings", SETTINGS), "RestartOnFailure", RESTART)
    program, *arguments = job.argv
    actions = SubElement(root, "Actions", {"Context": "Author"})
    command = {
        "Command": program,
        "Arguments": subprocess.list2cmdline(arguments),
        "WorkingDirectory": str(job.folder),
    }
    _add(actions, "Exec", command)
    indent(root)
    document: bytes = tostring(root, encoding="utf-16", xml_declaration=True)
    return document


def _add(parent: Element, name: str, texts: dict[str, str]) -> Element:
    element = SubElement(parent, name)
    for child, text in texts.items():
        SubElement(element, child).text = text
    return element
