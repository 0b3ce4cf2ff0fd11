"""A pytest plugin: recorded answers for the tests of a project that speaks to an OpenAI endpoint.

    def test_my_agent(tagcall_server):
        client = OpenAI(base_url=tagcall_server("tests/fixtures"), api_key="any")

    pytest --tagcall-record=once     records what the tests ask, through a backend that runs
    pytest --tagcall-block-network   proves that nothing else is asked

Installed, this module is called `tagcall_pytest`, and no other of tagcall is on the path: a project may have a
`proxy` of its own. So it imports nothing of tagcall; the server is a process of its own, which ends with the tests,
however they end. docs/howto/replay-in-ci.md
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

import pytest

# `-P` keeps the project's own folders out of the way. The read ends with whoever holds the other end.
_CHILD = """\
import os, signal, sys, threading
def leave():
    os.read(0, 1)
    signal.raise_signal(signal.SIGTERM)
threading.Thread(target=leave, daemon=True).start()
from tagcall import run
sys.exit(run())
"""
# What the first line of `tagcall serve` says before its base URL, and what a second one says if that is of no use.
_READY = "tagcall is ready on "
_BUT = "but every request will get this error: "
# What `tagcall record` says of each request, as `outcome` of a JSON line, beside `fixture`.
_OUTCOMES = ("recorded", "changed", "as before")
_NOT_RECORDED = "not recorded"
# How a line begins that says what a replay did not play.
_UNANSWERED = "No fixture answers"

# The file that every fixture has.
_MARK = "backend.jsonl"

# Seconds for a server to leave; requests that still run keep it.
_FAREWELL = 5.0
# And for a recorder, which has to write down what was asked last.
_LAST_WRITES = 30.0

_MODES = ("none", "once", "all", "prune")
# A server for tests takes any key.
_KEYS = ("TAGCALL_API_KEY", "TAGCALL_API_KEY_FILE")
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy"})


class TagcallServer(Protocol):
    """The type of the fixture `tagcall_server`."""

    def __call__(self, fixtures_dir: str | os.PathLike[str], *, speed: str = "fast", fresh: bool = False) -> str:
        """The base URL of a server that answers from the fixtures in a folder, relative to pytest's rootdir.

        All tests that name the same folder and speed share one server, unless they want a `fresh` one: of
        fixtures that answer the same request each server plays one after the other. `speed` is `fast`,
        `recorded`, or the time between two pieces of text, as `20ms`. While it records, one server answers all.
        """


class NetworkBlockedError(RuntimeError):
    """A test that may not do so wanted to speak to another machine."""


class TagcallHooks:
    """The hooks that a `conftest.py` may have."""

    def pytest_tagcall_redact(self, config: pytest.Config) -> Iterable[str]:
        """Regular expressions for what is not to be recorded: what fits goes, or only the first group of it."""
        raise NotImplementedError


@dataclass(slots=True)
class _Folder:
    """What became of the fixtures in one: their names by what was said of them, and what was not played or recorded."""

    recording: bool = False
    used: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def note(self, played: Iterable[str]) -> None:
        """Lines of `--played`."""
        for line in dict.fromkeys(played):
            if not line.startswith(_UNANSWERED):
                self.used[line] = "played"
            elif line not in self.failed:
                self.failed.append(line)


@dataclass(slots=True)
class _Session:
    """`proxies` are those of the environment while the network is blocked: a recorder may need them."""

    folders: dict[str, _Folder] = field(default_factory=dict)
    proxies: dict[str, str] = field(default_factory=dict)


_SESSION = pytest.StashKey[_Session]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tagcall", "recorded answers of an OpenAI endpoint")
    group.addoption(
        "--tagcall-record",
        choices=_MODES,
        default="none",
        help="none: play what is recorded. once: record folders that have no fixture yet. all: record everything "
        "again and replace the fixtures. prune: play, then remove the fixtures that no test asked for. [none]",
    )
    group.addoption(
        "--tagcall-backend",
        metavar="BACKEND",
        help="the backend to record, as for `tagcall record --backend`",
    )
    group.addoption(
        "--tagcall-block-network",
        action="store_true",
        help="let all tests reach this machine only; the marker tagcall_block_network does so for one test",
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(TagcallHooks)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SESSION] = _Session()
    config.addinivalue_line(
        "markers",
        "tagcall_block_network(allowed_hosts=()): let the test reach only this machine and these hosts.",
    )
    if config.getoption("tagcall_record") in {"once", "all"} and config.getoption("numprocesses", None):
        raise pytest.UsageError("--tagcall-record records in one process: run it with -n0.")


@pytest.fixture(scope="session")
def tagcall_server(pytestconfig: pytest.Config) -> Iterator[TagcallServer]:
    """`tagcall_server(fixtures_dir)` is the base URL of an OpenAI endpoint that answers from fixtures."""
    mode: str = pytestconfig.getoption("tagcall_record")
    session = pytestconfig.stash[_SESSION]
    shared: dict[tuple[Path, str], str] = {}
    with tempfile.TemporaryDirectory(prefix="tagcall-") as notes, ExitStack() as servers:

        def base_url(fixtures_dir: str | os.PathLike[str], *, speed: str = "fast", fresh: bool = False) -> str:
            folder = pytestconfig.rootpath / fixtures_dir
            if str(folder) not in session.folders:
                empty = not _names(folder)
                if empty and mode in {"none", "prune"}:
                    pytest.fail(f"There is no fixture in {folder}: record them with --tagcall-record=once.", False)
                session.folders[str(folder)] = _Folder(recording=mode == "all" or (mode == "once" and empty))
            use = session.folders[str(folder)]
            key = (folder, "" if use.recording else speed)
            if key in shared and (use.recording or not fresh):
                return shared[key]
            server = _recorder(folder, use, pytestconfig) if use.recording else _player(folder, speed, use, notes)
            url = servers.enter_context(server)
            if not fresh or use.recording:
                shared[key] = url
            return url

        yield base_url


def _names(folder: Path) -> list[str]:
    """The fixtures in a folder, which may be one itself."""
    if (folder / _MARK).is_file():
        return [folder.absolute().name]
    return sorted(file.parent.name for file in folder.glob(f"[!.]*/{_MARK}"))


@contextmanager
def _player(folder: Path, speed: str, use: _Folder, notes: str) -> Iterator[str]:
    played = Path(tempfile.mkdtemp(dir=notes)) / "played"
    words = ["serve", "--config", "none", "--backend", f"replay:{folder}", "--speed", speed, "--played", str(played)]
    words += ["--call-key-secret", f"{played}.key"]  # nothing is left in a home
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TAGCALL_")}
    played.touch()
    with _errors() as errors, _running(words, environment, errors, _FAREWELL) as url:
        yield url
    use.note(played.read_text("utf-8").splitlines())


@contextmanager
def _recorder(folder: Path, use: _Folder, config: pytest.Config) -> Iterator[str]:
    """Its backend is that of the options, else that of the environment and of `tagcall.toml`."""
    backend = config.getoption("tagcall_backend")
    words = ["record", str(folder), "--replace", "--host", "127.0.0.1", "--log-format", "json"]
    words += [f"--backend={backend}"] if backend else []
    words += [f"--redact={pattern}" for pattern in _patterns(config)]
    environment = {name: value for name, value in os.environ.items() if name not in _KEYS}
    environment |= config.stash[_SESSION].proxies
    with _errors() as errors:
        with _running(words, environment, errors, _LAST_WRITES) as url:
            yield url
        told = list(_lines(errors))
    use.used |= {line["fixture"]: line["outcome"] for line in told if line.get("outcome") in _OUTCOMES}
    use.failed += [line["event"] for line in told if line.get("outcome") == _NOT_RECORDED]


def _patterns(config: pytest.Config) -> Iterator[str]:
    """A text alone would be read letter by letter, and a compiled pattern would hide nothing."""
    for found in config.hook.pytest_tagcall_redact(config=config):
        patterns = list(found) if isinstance(found, Iterable) else [found]
        if isinstance(found, str) or not all(isinstance(pattern, str) for pattern in patterns):
            wanted = "let it return a list of texts, each a regular expression"
            pytest.fail(f"pytest_tagcall_redact returned {found!r}: {wanted}.", pytrace=False)
        yield from patterns


def _errors() -> IO[str]:
    return tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")


@contextmanager
def _running(words: list[str], environment: dict[str, str], errors: IO[str], farewell: float) -> Iterator[str]:
    """The base URL of a server of these `words`. What it says on standard error goes to a file."""
    words = [*words, "--port", "0", "--store", "memory", "--log-level", "error"]
    with subprocess.Popen(  # noqa: S603 -- this interpreter
        [sys.executable, "-P", "-c", _CHILD, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        encoding="utf-8",
        env=environment,
    ) as child:
        assert child.stdout is not None  # noqa: S101 -- a pipe
        line, more = child.stdout.readline(), child.stdout.readline()
        if not line.startswith(_READY):
            child.wait()
            pytest.fail(_said(errors).strip() or "tagcall did not start", pytrace=False)
        try:
            if more.startswith(_BUT):
                pytest.fail(more.removeprefix(_BUT).strip(), pytrace=False)
            yield line.removeprefix(_READY).strip()
        finally:
            _end(child, farewell)


def _lines(errors: IO[str]) -> Iterator[dict[str, Any]]:
    """What a server has said, line by line; what is no JSON, as a trace of Python is none, is an event of that text."""
    errors.seek(0)
    for line in errors:
        try:
            told = json.loads(line)
        except ValueError:
            told = None
        yield told if isinstance(told, dict) and "event" in told else {"event": line.rstrip("\n")}


def _said(errors: IO[str]) -> str:
    return "\n".join(str(line["event"]) for line in _lines(errors))


def _end(child: subprocess.Popen[str], farewell: float) -> None:
    assert child.stdin is not None  # noqa: S101 -- a pipe
    child.stdin.close()
    try:
        child.wait(farewell)
    except subprocess.TimeoutExpired:
        child.kill()


# What is told at the end


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of pytest-xdist hands over what it knows."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        folders = session.config.stash[_SESSION].folders
        output["tagcall"] = {name: [*folder.used, *folder.failed] for name, folder in folders.items()}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # noqa: ANN401 -- xdist's
    folders = node.config.stash[_SESSION].folders
    for name, played in getattr(node, "workeroutput", {}).get("tagcall", {}).items():
        folders.setdefault(name, _Folder()).note(played)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return  # of pytest-xdist: it knows of its own tests alone
    # Skipped is not run, and deselected is what plugins leave to other machines.
    ran = exitstatus == 0 and not any(terminalreporter.stats.get(name) for name in ("skipped", "deselected"))
    lines = [
        line
        for name, folder in sorted(config.stash[_SESSION].folders.items())
        for line in _told(Path(name), folder, config, whole=ran and _is_whole(config, Path(name)))
    ]
    if lines:
        terminalreporter.section("tagcall")
        for line in lines:
            terminalreporter.write_line(line)


def _told(place: Path, folder: _Folder, config: pytest.Config, *, whole: bool) -> Iterator[str]:
    root = config.rootpath
    shown = place.relative_to(root) if place.is_relative_to(root) else place
    if folder.used and folder.recording:
        counts = Counter(folder.used.values())
        yield f"{shown}: " + ", ".join(f"{counts[outcome]} {outcome}" for outcome in _OUTCOMES)
        yield from (f"  {outcome} {name}" for name, outcome in sorted(folder.used.items()) if outcome != "as before")
    yield from (f"{shown}: {line}" for line in folder.failed)
    if any(line.startswith(_UNANSWERED) for line in folder.failed):
        yield f"{shown}: --tagcall-record=all records it; with --lf, only the requests of the tests that failed."
    # Of what could not be recorded the fixture, if there is one, was asked for.
    if whole and not folder.failed and (unused := [name for name in _names(place) if name not in folder.used]):
        if config.getoption("tagcall_record") == "prune" and not (place / _MARK).is_file():
            for name in unused:
                shutil.rmtree(place / name)
            yield f"{shown}: removed {', '.join(unused)}, for which nobody asked"
        else:
            yield f"{shown}: nobody asked for {', '.join(unused)}"


def _is_whole(config: pytest.Config, place: Path) -> bool:
    """Whether all tests were to run that may ask for what is at `place`; of a choice nobody expects that they do.

    Those are the tests in the folders round it, unless the project says where its tests are.
    """
    names = ("keyword", "markexpr", "lf", "deselect", "collectonly", "ignore", "ignore_glob")
    if any(config.getoption(name, None) for name in names):
        return False
    if config.args_source is config.ArgsSource.TESTPATHS:
        return True
    return any(place.resolve().is_relative_to((config.invocation_params.dir / word).resolve()) for word in config.args)


# The network


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    marker = item.get_closest_marker("tagcall_block_network")
    if marker is None and not item.config.getoption("tagcall_block_network"):
        return (yield)
    hosts = marker.kwargs.get("allowed_hosts", ()) if marker else ()
    with _closed_network(frozenset(hosts), item.config.stash[_SESSION]):
        return (yield)


@contextmanager
def _closed_network(allowed: frozenset[str], session: _Session) -> Iterator[None]:
    """What Python's sockets reach is this machine and the `allowed` hosts, and nothing by way of a proxy."""
    addresses = set(allowed)
    connect, connect_ex, resolve = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def check(host: object) -> None:
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        if isinstance(name, str) and name not in addresses and not _is_here(name):
            raise NetworkBlockedError(f"Network is disabled: this test wanted {name}.")

    def guarded(real: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
        def act(self: socket.socket, address: Any) -> Any:  # noqa: ANN401 -- as it is there
            if isinstance(address, tuple):  # else it is a Unix socket
                check(address[0])
            return real(self, address)

        return act

    def resolved(host: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- as it is there
        check(host)
        found = resolve(host, *args, **kwargs)
        addresses.update(str(address[0]) for *_, address in found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded(connect))
        patch.setattr(socket.socket, "connect_ex", guarded(connect_ex))
        patch.setattr(socket, "getaddrinfo", resolved)
        session.proxies = {name: value for name, value in os.environ.items() if name.lower() in _PROXIES}
        for name in session.proxies:
            patch.delenv(name)
        yield
    session.proxies = {}


def _is_here(host: str) -> bool:
    if host in {"", "localhost"}:
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
