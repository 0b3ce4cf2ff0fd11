"""For all tests: nothing leaves this machine, CI is repeatable, and the summary says which codex programs ran."""

from __future__ import annotations

import functools
import gc
import os
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, Phase, settings
from structlog.dev import ConsoleRenderer, plain_traceback

from proxy import server
from proxy.home import habits_file
from proxy.settings import default_call_key_secret
from proxy.turn import FixedHabit, KeyHabit
from tests.support.backends import BACKENDS_UNDER_TEST, TestBackend
from tests.support.clock import Clock
from tests.support.codex_programs import TestProgram, child_environment, installed_programs
from tests.support.patience import no_deadlines, wait_for_codex
from tests.support.scripted_model import ScriptedModel, served

TESTS = Path(__file__).parent
# The rooms whose mutants only their own tests are to kill.
PURE = ("parser/", "proxy/schema/", "proxy/turn/", "proxy/wire/")

# As structlog has it of itself, but for a traceback with the values of each frame, which takes a second to draw.
LOG = [*structlog.get_config()["processors"][:-1], ConsoleRenderer(colors=False, exception_formatter=plain_traceback)]

_Cached = type(functools.cache(object))
_FROM_PYPI = installed_programs()[0]

# What is loaded for the tests stays, so nobody looks through it for garbage until it is there. Then a collection is
# seldom wanted: who looks for garbage in a test collects it.
gc.disable()
SELDOM = 20_000

# Time is no property of the code: a busy machine must not fail a test. In CI the examples are always the same.
EXAMPLES = int(os.environ.get("TAGCALL_TEST_EXAMPLES", "20"))
settings.register_profile("here", deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("here"), derandomize=True)
# With a mutant a test runs some hundred times: few examples, none of them shrunk or kept.
settings.register_profile(
    "mutants",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=20,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
SAME = os.environ.get("CI") or os.environ.get("TAGCALL_TEST_SAME_EXAMPLES")
settings.load_profile("mutants" if "MUTANT_UNDER_TEST" in os.environ else "ci" if SAME else "here")


@pytest.fixture(autouse=True, scope="session")
def _closed_network() -> None:
    """Children inherit a proxy that is not there: what would leave this machine fails at once. They trust nobody."""
    os.environ |= {name: value for name, value in child_environment(".").items() if name not in {"HOME", "PATH"}}


@functools.cache
def _caches() -> list[functools._lru_cache_wrapper[object]]:
    modules = [
        module for name, module in sys.modules.items() if name.partition(".")[0] in {"parser", "prompts", "proxy"}
    ]
    return [value for module in modules for value in vars(module).values() if isinstance(value, _Cached)]


@pytest.fixture(autouse=True, scope="session")
def _own_data_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No file of the person who runs the tests is touched, also where a default names one."""
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True, scope="session")
def _no_deadlines() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        no_deadlines(patch)
        yield


@pytest.fixture
def stack() -> TestBackend:
    """What tagcall has behind it, in front of `model`: a real codex program, unless a test asks for others as well."""
    return BACKENDS_UNDER_TEST[0]


@pytest.fixture
async def model(monkeypatch: pytest.MonkeyPatch, stack: TestBackend) -> AsyncIterator[ScriptedModel]:
    """What `stack` asks."""
    wait_for_codex(monkeypatch)
    async with served(stack.model()) as model:
        yield model


@pytest.fixture
async def clock() -> AsyncIterator[Clock]:
    """That of the loop, for this test."""
    with Clock() as clock:
        yield clock


@pytest.fixture(autouse=True, scope="session")
def _habits(_own_data_folder: None) -> Iterator[Path]:
    """A server of a test's own process knows of its models that they never write the key, as their scripts do not.

    Yields the file in which one of another process keeps what it has learnt.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "KeptHabits", lambda path: FixedHabit(KeyHabit.NEVER))
        yield habits_file(default_call_key_secret())


# One fixture for all of it, since every test pays for each.
@pytest.fixture(autouse=True)
def _as_if_alone(_habits: Path) -> Iterator[None]:
    """Of what the test before has done nothing is left: no file, no log to a stream that has ended with it."""
    _habits.unlink(missing_ok=True)
    structlog.configure(processors=[*LOG])
    if "MUTANT_UNDER_TEST" in os.environ:  # what is in a cache would hide a change
        for cache in _caches():
            cache.cache_clear()
    yield
    structlog.reset_defaults()


# One of a mark's words stands in every file that has a test with it, so a suite that is chosen by marks reads no other
# file. A test has `codex` by its parameters: their types stand there.
MARKS = ("agents", "browser", "clients", "growth", "hypothesis", "install", "llama", "redis", "whole")
NAMED = {**{mark: {mark} for mark in MARKS}, "codex": {TestBackend.__name__, TestProgram.__name__}}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """To read 350 files takes longer than some of the suites."""
    # What is not wanted may be named after what is.
    wanted = re.sub(r" and not (\w+|\(.*?\))", "", config.option.markexpr)
    chosen = set(re.findall(r"\b(?!and\b|or\b)\w+", wanted))
    if collection_path.suffix != ".py" or not chosen or not chosen <= NAMED.keys():
        return None
    return all(NAMED[mark].isdisjoint(_words(collection_path)) for mark in chosen) or None


@functools.cache
def _words(file: Path) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+|[A-Z][A-Za-z]+", file.read_text("utf-8")))


def pytest_collection_finish() -> None:
    """Who looks for garbage need not look through all that the run itself holds."""
    gc.freeze()
    gc.set_threshold(SELDOM)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The core has the codex program from PyPI; what a test does with another is for `make test-codex`."""
    if os.environ.get("MUTANT_UNDER_TEST", "").replace(".", "/").startswith(PURE):
        # Thousands of tests of the shell come by there as well, each of them slow.
        items[:] = [item for item in items if item.path.relative_to(TESTS).as_posix().startswith(PURE)]
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and any(map(_is_another_codex, callspec.params.values())):
            item.add_marker("codex")
        for mark in NAMED.keys() & _marks(item):
            if NAMED[mark].isdisjoint(_words(item.path)):
                words = " nor ".join(sorted(NAMED[mark]))
                raise pytest.UsageError(f"{item.nodeid} is marked {mark}, and {words} does not stand in its file")


def _marks(item: pytest.Item) -> Iterator[str]:
    yield from (mark.name for mark in item.iter_markers())
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        yield "hypothesis"  # who marks it so comes later


def _is_another_codex(value: object) -> bool:
    program = value.codex if isinstance(value, TestBackend) else value
    return isinstance(program, TestProgram) and program.version != _FROM_PYPI.version


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    passed = Counter[str]()
    for report in terminalreporter.getreports("passed"):
        if report.when == "call":
            passed.update(set(re.findall(r"(?<=[\[-])\d+\.\d+\.\d+(?=[\]-])", report.nodeid)))
    programs = [f"{program.version} ({passed[program.version]} tests)" for program in installed_programs()]
    terminalreporter.write_line(f"with the real codex program: {', '.join(programs)}")
