"""`tagcall service`: there after login, gone when removed.

job        what is to run: the command, its environment, its folder
systemd    a user unit                  (Linux)
launchd    an agent                     (macOS)
scheduler  a task at logon              (Windows)
run        install, status, remove

What the system is told is written and shown; it is put in force only when that is said.
"""

from .run import run_service

__all__ = ["run_service"]
