"""tagcall and the relay as processes, over the same app-server. CPU time and memory are those of the process alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proxy.rpc.processes import resident_bytes

ROOT = Path(__file__).resolve().parents[2]
READY = re.compile(rb"ready on http://127\.0\.0\.1:(\d+)")
# Seconds.
LEAVES_WITHIN = 30.0


@dataclass(frozen=True, slots=True)
class Contestant:
    name: str
    pid: int
    port: int
    cold_start: float
    """Seconds from the command to the line that says that it listens; the app-server is started meanwhile."""

    def cpu(self) -> float:
        """Seconds of CPU time so far, of all its threads; its children's are not in it."""
        # The kernel's number for another process's CPU clock (MAKE_PROCESS_CPUCLOCK): finer than /proc's ticks.
        return time.clock_gettime((~self.pid << 3) | 2)

    def megabytes(self) -> float:
        return (resident_bytes(self.pid) or 0) / 2**20


def interrupts_in(folder: Path) -> Path:
    """Where that app-server notes the times at which turns are interrupted."""
    return folder / "interrupts"


def app_server_program(folder: Path) -> Path:
    """The simulated app-server as a program of its own, in `folder`."""
    program = folder / "app-server"
    script = Path(__file__).with_name("app_server.py")
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{script}" "{interrupts_in(folder)}" "$@"\n', "utf-8")
    program.chmod(0o700)
    return program


@contextmanager
def tagcall(folder: Path, *flags: str) -> Iterator[Contestant]:
    """`tagcall serve` with its default settings but for where things are; `folder` keeps its files."""
    command = ["-m", "proxy.cli", "serve", "--port", "0", "--backend", "codex"]
    command += ["--codex", str(app_server_program(folder)), "--codex-home", str(folder / "home")]
    command += ["--store", f"sqlite:{folder / 'responses.sqlite'}", *flags]
    with _running("tagcall", command, folder) as contestant:
        yield contestant


@contextmanager
def relay(folder: Path) -> Iterator[Contestant]:
    with _running("relay", ["-m", "tests.bench.relay", str(app_server_program(folder))], folder) as contestant:
        yield contestant


@contextmanager
def over_chat(folder: Path) -> Iterator[tuple[Contestant, Contestant]]:
    """`tagcall serve` and the relay for such servers, both in front of one Chat Completions server."""
    with _running("chat server", ["-m", "tests.bench.chat_server"], folder) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        command = ["-m", "proxy.cli", "serve", "--port", "0", "--backend", url]
        command += ["--store", f"sqlite:{folder / 'responses.sqlite'}"]
        with (
            _running("tagcall", command, folder) as ours,
            _running("chat relay", ["-m", "tests.bench.chat_relay", url], folder) as floor,
        ):
            yield ours, floor


@contextmanager
def _running(name: str, command: list[str], folder: Path) -> Iterator[Contestant]:
    # An installed program has its byte code; here the first start writes it.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # Nor has it rich, which the linters bring and structlog loads wherever it is, with 3 MB.
    missing = folder / "not installed"
    missing.mkdir(exist_ok=True)
    (missing / "rich.py").write_text("raise ImportError\n", "utf-8")
    path = os.pathsep.join(map(str, (missing, ROOT)))
    env |= {"PYTHONPYCACHEPREFIX": str(folder / "byte code"), "PYTHONPATH": path}
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    )
    try:
        assert process.stdout is not None
        while not (ready := READY.search(said := process.stdout.readline())):
            if not said:
                raise RuntimeError(f"{name} does not start: {' '.join(command)}")
        yield Contestant(name, process.pid, int(ready[1]), time.perf_counter() - begun)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(LEAVES_WITHIN)
