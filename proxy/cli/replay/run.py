"""Runs fixtures through the whole proxy (a real server, its replay app-server, real HTTP), and judges each answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import aiohttp
import orjson
from msgspec import Struct
from msgspec.structs import replace

from ...backends import replay_backend
from ...ingress.apis import turns_recorded
from ...ingress.routes import canonical_path
from ...replay.answers import (
    KEPT_HEADERS,
    FixtureAnswer,
    FixtureBody,
    FixtureEvent,
    FixtureStream,
    ReplayJson,
    load_answer,
    read_events,
    without_comments,
)
from ...replay.asks import BY_NAME, NOTHING_FITS
from ...replay.difference import differences
from ...replay.fixture import (
    BACKEND_FILE,
    TRANSCRIPT_FILE,
    Fixture,
    FixtureError,
    ReplayMessage,
    load_fixtures,
    load_messages,
    load_request,
    read_file,
)
from ...replay.normal import Names, error_alone, normal, without_usage
from ...replay.transcript import transcript
from ...server import running_server
from ...settings import Settings
from ...turn import FixedHabit, KeyHabit
from ..shaping import SHAPING, check_settings, habit_of

# Characters to which the model's text is cut anew: what a client gets must not depend on it. The last is any text
# whole, and 0 leaves the cuts as they were recorded.
CHUNKS = (1, 3, 7, 1 << 30)
AS_RECORDED = 0


class Case(Struct, frozen=True):
    """A fixture that can be run. `promised` is None as long as it promises nothing.

    `transcript` is what its lines say, `stale` that its file has something else.
    """

    fixture: Fixture
    folder: Path
    request: ReplayMessage
    promised: FixtureAnswer | None
    transcript: str
    stale: bool

    @property
    def estimated(self) -> bool:
        """Whether a turn was left before its model was done: its tokens are estimated then."""
        return any(turn.interrupted for turn in self.fixture.turns)


class Outcome(Struct, frozen=True):
    """`got` is the answer at the recorded cuts; the lines say how it differs from what was promised, and from the
    answers at other cuts.
    """

    case: Case
    got: FixtureAnswer
    against_promise: tuple[str, ...]
    against_cuts: tuple[str, ...]
    seconds: float

    @property
    def lines(self) -> tuple[str, ...]:
        return self.against_promise + self.against_cuts

    @property
    def good(self) -> bool:
        return not self.lines

    @property
    def answered(self) -> bool:
        """Whether its own fixture was what answered: else what came is no answer that anybody could promise."""
        match error_alone(self.got):
            case {"message": str(message)}:
                return not message.startswith(NOTHING_FITS)
            case _:
                return True


def load_cases(folder: Path) -> tuple[list[Case], list[str]]:
    """What can be run, and the names of what was written for playing only. Raises `FixtureError`."""
    cases: list[Case] = []
    unasked: list[str] = []
    for name, fixture in load_fixtures(folder).items():
        place = folder / name if (folder / name).is_dir() else folder
        request = load_request(place)
        if request is None:
            unasked.append(name)
        else:
            check_settings(fixture, place)
            _check_path(fixture, place)
            said = transcript(load_messages(place))
            cases.append(Case(fixture, place, request, load_answer(place), said, _is_stale(place, said)))
    return cases, unasked


def _check_path(fixture: Fixture, place: Path) -> None:
    if canonical_path(fixture.path) not in (recorded := turns_recorded()):
        paths = " or ".join(f"/v1{path}" for path in recorded)
        raise FixtureError(f'{place / BACKEND_FILE}: its "path" is {fixture.path}, but only {paths} can be run.')


def _is_stale(case: Path, said: str) -> bool:
    """Whether a fixture has a transcript that is not that of its lines."""
    file = case / TRANSCRIPT_FILE
    return file.is_file() and read_file(file) != said.encode().replace(b"\r\n", b"\n")


# Where a fixture is asked for: the settings that it needs, what was known of the model, and the cuts.
_Way: TypeAlias = tuple[tuple[tuple[str, str | bool], ...], KeyHabit, int]


class Servers:
    """One server for each way in which something is asked, all over the same fixtures. Made by `open_servers`."""

    def __init__(self, urls: Mapping[_Way, str], http: aiohttp.ClientSession) -> None:
        self._urls = urls
        self._http = http

    async def ask(self, case: Case, chunk: int) -> FixtureAnswer:
        """The answer to a fixture's request, at those cuts, in its normal form."""
        url = self._urls[_way(case.fixture, chunk)].removesuffix("/v1") + case.fixture.path
        # Which fixture is meant; whether it answers what is asked is still for it to say.
        model = f"{BY_NAME}{case.fixture.name}"
        async with self._http.post(url, json=case.request | {"model": model}) as response:
            data = await response.read()
            if response.content_type == "text/event-stream":
                answer: FixtureAnswer = FixtureStream(read_events(without_comments(data)))
            else:
                headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
                answer = FixtureBody(response.status, headers, orjson.loads(data))
        return normal(_with_model(answer, model, case.request.get("model")), Names(case.request))


def _way(fixture: Fixture, chunk: int) -> _Way:
    return tuple(sorted(fixture.settings.items())), habit_of(fixture), chunk


def _with_model(answer: FixtureAnswer, asked: str, meant: ReplayJson) -> FixtureAnswer:
    def renamed(value: ReplayJson) -> ReplayJson:
        match value:
            case dict():
                return {key: meant if inner == asked else renamed(inner) for key, inner in value.items()}
            case list():
                return [renamed(inner) for inner in value]
            case _:
                return value

    match answer:
        case FixtureStream(events):
            return FixtureStream(tuple(FixtureEvent(event.name, renamed(event.data)) for event in events))
        case FixtureBody():
            return replace(answer, body=renamed(answer.body))


@asynccontextmanager
async def open_servers(folder: Path, cases: Sequence[Case]) -> AsyncIterator[Servers]:
    ways = {_way(case.fixture, chunk) for case in cases for chunk in (AS_RECORDED, *CHUNKS)}
    async with AsyncExitStack() as stack:
        urls = {way: await stack.enter_async_context(_server(folder, *way)) for way in sorted(ways, key=str)}
        # However long its text is: the server ends each answer itself.
        timeout = aiohttp.ClientTimeout(total=None)
        yield Servers(urls, await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout)))


@asynccontextmanager
async def _server(
    folder: Path, shaping: tuple[tuple[str, Any], ...], habit: KeyHabit, chunk: int
) -> AsyncIterator[str]:
    settings = Settings(port=0, backend=f"replay:{folder}", store="memory", **{**SHAPING, **dict(shaping)})
    async with running_server(settings, replay_backend(folder, chunk=chunk), habits=FixedHabit(habit)) as url:
        yield url


async def run_cases(
    folder: Path, cases: Sequence[Case], *, jobs: int, on_outcome: Callable[[Outcome], None]
) -> list[Outcome]:
    """Runs all cases, `jobs` at a time. The outcomes are in the order of the cases."""
    places = asyncio.Semaphore(jobs)

    async def run(case: Case, servers: Servers) -> Outcome:
        async with places:
            outcome = await _run_case(case, servers)
        on_outcome(outcome)
        return outcome

    async with open_servers(folder, cases) as servers, asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(case, servers), name=case.fixture.name) for case in cases]
    return [task.result() for task in tasks]


async def _run_case(case: Case, servers: Servers) -> Outcome:
    loop = asyncio.get_running_loop()
    begin = loop.time()
    got = await servers.ask(case, AS_RECORDED)
    against_cuts: list[str] = []
    for chunk in CHUNKS:
        other = await servers.ask(case, chunk)
        if differing := differences(_comparable(case, got), _comparable(case, other)):
            size = "one piece" if chunk == CHUNKS[-1] else f"pieces of {chunk}"
            against_cuts += [f"the answer is another when the model's text comes in {size}", *_indented(differing)]
    stale = [f"{TRANSCRIPT_FILE} is not what {BACKEND_FILE} says (--update writes it)"] if case.stale else []
    return Outcome(case, got, (*_against_promise(case, got), *stale), tuple(against_cuts), loop.time() - begin)


def _against_promise(case: Case, got: FixtureAnswer) -> list[str]:
    if case.promised is None:
        return ["it promises no answer yet (--update writes the one that came)"]
    # Also of a file that was written by hand.
    promised = normal(case.promised, Names(case.request))
    # A slow backend's error comes in a stream that was opened meanwhile; what is played fast has a status.
    if (error := error_alone(promised)) is not None and error == error_alone(got):
        return []
    return differences(_comparable(case, promised), _comparable(case, got))


def _comparable(case: Case, answer: FixtureAnswer) -> FixtureAnswer:
    return without_usage(answer) if case.estimated else answer


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]
