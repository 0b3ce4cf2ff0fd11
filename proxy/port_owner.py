"""Finds the program that has a port, so that a person knows what to end."""

from __future__ import annotations


def owner_of(port: int) -> str | None:
    """The program that listens on a TCP port of this machine, as the words of a sentence; None where it is not told.

    Some systems tell it of one's own processes alone, and some of none.
    """
    import psutil  # noqa: PLC0415 -- 3 MB, for a server that does not start

    try:
        listening = (row for row in psutil.net_connections("tcp") if row.status == psutil.CONN_LISTEN)
        pid = next((row.pid for row in listening if row.laddr[1:] == (port,) and row.pid is not None), None)
        return None if pid is None else f"{psutil.Process(pid).name()}, process {pid}"
    except (psutil.Error, OSError):
        return None
