"""The text backend that speaks to an app-server, and the codex program as one."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Self

import structlog
from structlog.typing import FilteringBoundLogger

from ...contracts import BackendEvent, Health, Load, Model, Prompt
from ...errors import BackendError, UsageError, reason_of
from ...rpc import ChildRecords, ChildTransport, Launch, RpcError, Transport
from ..answers import shutting_down
from ..named_models import named_first
from ..restart_policy import RestartPolicy
from ..supervision import START_FAILURES, Supervisor
from .config import Provider
from .home import LOGIN_FILE, KeptCatalog, empty_folder, prepare_home
from .item_kinds import HARMLESS
from .options import LaneBounds, SessionOptions
from .output_schema import output_schema
from .program import locate_program
from .quota import QuotaBook
from .running_turn import RunningTurn, TurnLostError
from .session import CodexSession, open_session
from .threads import Orphans
from .tool_outputs import ToolOutputs

log: FilteringBoundLogger = structlog.get_logger(__name__)

# Starts of one turn. The second follows only if the first was lost before it told anything.
ATTEMPTS = 2
# Seconds that a request for the models waits for the first list.
MODELS_WAIT = 5.0

# The advice if an `--upstream` wants a login.
WANTS_NONE = "name an --upstream that needs no login, because tagcall sends it none"

# Threads that codex may have ready, about 1 MB each.
SPARE_THREADS = 8

# The variables of our environment that codex may see. Those of the last line are for Windows, which has no sockets
# without SYSTEMROOT.
PASSED_ON = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TERM|XDG_\w+|RUST_LOG|CODEX_CA_CERTIFICATE"
    r"|SSL_CERT_(FILE|DIR)|(?i:\w+_proxy)"
    r"|SYSTEM(ROOT|DRIVE)|WINDIR|COMSPEC|PATHEXT|TE?MP|USER(NAME|PROFILE)|HOME(DRIVE|PATH)|(LOCAL)?APPDATA|PROGRAMDATA"
)


class CodexBackend:
    """A `TextBackend`. `connect` reaches an app-server anew each time it is called.

    `models` are listed first, whatever the app-server lists. Requests may have any other name all the same.
    `has_verbosity` says whether codex tells a model its verbosity.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Transport]],
        options: SessionOptions,
        *,
        models: Sequence[str] = (),
        name: str = "codex",
        has_verbosity: Callable[[str], bool] = lambda model: True,
        policy: RestartPolicy = RestartPolicy(),  # noqa: B008 -- frozen
    ) -> None:
        orphans: Orphans = []
        self._quota = QuotaBook()
        self._open = partial(open_session, connect, options, orphans, self._quota)
        self._allowed = options.allowed_items
        self._log_in = options.log_in
        self._keeps_lanes = options.lanes is not None
        self._outputs = ToolOutputs(wanted=options.results_as_outputs)
        self._has_verbosity = has_verbosity
        self._supervisor = Supervisor(self._opened, name, policy, (RpcError,))
        self._sessions: list[CodexSession] = []
        self._named = [Model(name, 0, "codex", listed=False) for name in models]
        self._listed: list[Model] = []
        self._listing = asyncio.Lock()
        self._tasks = asyncio.TaskGroup()
        self._supervision: asyncio.Task[None] | None = None
        self._closing = False
        self._turns: set[RunningTurn] = set()
        self._interrupts = 0

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._supervision = self._tasks.create_task(self._supervisor.run(), name="backend supervisor")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._closing = True
        if self._supervision is not None:
            self._supervision.cancel()
        # Only the turns are left, and they end with the session.
        await self._tasks.__aexit__(None, None, None)

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AsyncIterator[Sequence[BackendEvent]]]:
        if self._closing:
            raise shutting_down()
        outputs = self._outputs.taken_by(prompt.model)
        turn = RunningTurn(self._allowed, prompt.listener, self._log_in, outputs=outputs)
        self._tasks.create_task(self._own(turn, prompt), name="turn")
        try:
            # Lets the turn's task ask codex before anything else is prepared. That task starts another, hence twice.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            yield turn.events
        finally:
            self._interrupts += turn.awaited
            turn.leave()

    async def _own(self, turn: RunningTurn, prompt: Prompt) -> None:
        """Run the turn to its end at the backend, whether or not anyone still listens."""
        self._turns.add(turn)
        try:
            await self._run(turn, prompt)
        except BackendError as error:
            turn.fail(error)
        except Exception:  # one turn's bug must not end the others, which share its task group
            log.exception("turn_crashed")
            turn.fail(BackendError("tagcall made a mistake; its log has more.", status=500))
        finally:
            self._turns.discard(turn)
            turn.fail(shutting_down())

    async def _run(self, turn: RunningTurn, prompt: Prompt) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            session = self._lingering(turn, prompt) or await self._supervisor.current()
            try:
                await session.run_turn(turn, prompt)
            except TurnLostError as lost:
                if not turn.awaited:
                    return
                if self._closing:
                    raise shutting_down() from lost
                if turn.events.used or attempt == ATTEMPTS:
                    raise lost.failure from lost
                log.info("turn_started_again", why=lost.failure.code)
            else:
                if turn.outputs_refused and turn.events.used:
                    self._outputs.refused_by(prompt.model)
                return

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[CodexSession]:
        """A session, which is listed while it lives. At most one older session keeps its conversations."""
        async with self._open() as session:
            for older in self._sessions[:-1]:
                older.life.let_go()
            self._sessions.append(session)
            try:
                yield session
            finally:
                self._sessions.remove(session)

    def _lingering(self, turn: RunningTurn, prompt: Prompt) -> CodexSession | None:
        """An older session that holds the prompt's conversation, if there is one."""
        kept = (session for session in self._sessions if session.life.lingers)
        return next((session for session in kept if session.holds(turn, prompt)), None)

    def heeds(self, model: str) -> frozenset[str]:
        verbosity = {"verbosity"} if self._has_verbosity(model) else set[str]()
        # Without lanes the conversation goes out as one text, without phases.
        return frozenset({*verbosity, "phase"} if self._keeps_lanes else verbosity)

    @property
    def takes_items(self) -> bool:
        return self._keeps_lanes

    @property
    def keeps_conversations(self) -> bool:
        return self._keeps_lanes

    def holds(self, schema: str) -> bool:
        return output_schema(schema) is not None

    async def models(self) -> Sequence[Model]:
        try:
            session = await self._supervisor.current()
        except BackendError:
            if not (self._named or self._listed):
                raise
        else:
            await self._take_list(session)
        return named_first(self._named, self._listed)

    async def _take_list(self, session: CodexSession) -> None:
        if session.lists_aside:
            async with self._listing:
                if not self._listed:
                    with suppress(RpcError, *START_FAILURES):
                        async with self._open() as aside:
                            await aside.list_models()
                            self._listed = aside.models or []
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(MODELS_WAIT):
                await session.models_listed.wait()
        self._listed = session.models or self._listed

    async def health(self) -> Health:
        try:
            session = await self._supervisor.current()
            try:
                await session.check_login()
            except TurnLostError:
                session = await self._supervisor.current()
        except BackendError as error:
            return Health(error.without_trace())
        return Health(session.problem, session.version)

    def load(self) -> Load:
        backlog = sum(turn.events.backlog for turn in self._turns)
        return Load(len(self._turns), backlog, self._supervisor.starts, self._interrupts, self._quota.limits)


def codex_backend(
    *,
    home: Path,
    program: str | None,
    upstream: str | None = None,
    builtin_provider: bool = False,
    models: Sequence[str] = (),
    idle_timeout: float = 300.0,
    base_instructions: str | None = None,
    lanes: LaneBounds | None = None,
    allowed_items: frozenset[str] = HARMLESS,
    results_as_outputs: bool = False,
    thread_limit: int = 500,
    memory_limit: int = 2**30,
    env: Mapping[str, str] | None = None,
) -> CodexBackend:
    """The codex program as a child, in the private CODEX_HOME `home`. Raises `UsageError` when there is none.

    `upstream` is a Responses endpoint that codex uses, without any login; by default it uses its own service.
    `env` replaces this process's environment for the child.
    """
    locate_program(program)
    provider = Provider(upstream, builtin_provider)
    # A home of its own: 0.89 sends the login of its home to every upstream, whatever the provider's entry says.
    home = home.absolute() if upstream is None else home.absolute() / "upstream"
    environment = codex_environment(home, os.environ if env is None else env)

    catalog = KeptCatalog(home)

    async def connect() -> Transport:
        # Looked up at each start: an update may have moved it.
        path = locate_program(program)
        try:
            await prepare_home(home, path, provider, idle_timeout, environment)
        except OSError as error:
            said = f"{home} cannot be written ({reason_of(error)})"
            raise UsageError(f"{said}: name a folder of yours with --codex-home DIR") from None
        catalog.read()
        return await ChildTransport.start(Launch([str(path), "app-server"], environment, empty_folder(home), records))

    records = ChildRecords(home / "children")
    options = SessionOptions(
        idle_timeout=idle_timeout,
        cwd=str(empty_folder(home)),
        login_file=home / LOGIN_FILE,
        log_in=None if upstream is None else WANTS_NONE,
        spare_threads=SPARE_THREADS,
        base_instructions=base_instructions,
        lanes=lanes,
        allowed_items=allowed_items,
        results_as_outputs=results_as_outputs,
        thread_limit=thread_limit,
        memory_limit=memory_limit,
    )
    return CodexBackend(connect, options, models=models, has_verbosity=catalog.has_verbosity)


def codex_environment(home: Path, env: Mapping[str, str]) -> Mapping[str, str]:
    """The environment of codex: what it needs to run and to reach its service, and no keys that happen to be set."""
    passed = {name: value for name, value in env.items() if PASSED_ON.fullmatch(name)}
    return {"RUST_LOG": "error", **passed, "CODEX_HOME": str(home)}
