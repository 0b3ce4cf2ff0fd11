"""What a session with an app-server is told from outside: its limits, and how long it waits for what."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from ...errors import UsageError, reason_of
from ..kind import BackendSettings
from .item_kinds import HARMLESS

# How often a turn is interrupted before the app-server is doubted.
INTERRUPTS = 5


class Deadlines(Struct, frozen=True, kw_only=True):
    """Seconds."""

    greeting: float = 10.0
    """For each request before the first turn; a cold start takes up to 0.5."""
    request: float = 30.0
    """For starting a thread or a turn; 3 were seen of a version that looks for models first."""
    models: float = 20.0
    """For the list of models and for the quota, which nothing waits for."""
    total: float = 3600.0
    """For a whole turn, however much it says."""
    interrupt: float = 1.0
    """For an interrupted turn to be reported as ended, each of `INTERRUPTS` times; 0.1 is usual."""
    refusal: float = 5.0
    """For a sign of life of a turn after a request that is not served: some versions wait for ever then."""
    quiet: float = 30.0
    """Without a single line of an app-server that has turns, after which it is probed."""
    probe: float = 5.0
    """For any answer at all from an app-server that is doubted; then it is killed."""


class LaneBounds(Struct, frozen=True, kw_only=True):
    """Of idle lanes: how many, for how many seconds, and how many `characters` they hold at codex together."""

    lanes: int = 64
    idle: float = 1800.0
    characters: int = 64 * 2**20


class SessionOptions(Struct, frozen=True, kw_only=True):
    """`cwd` is where threads run, in the app-server's eyes; None leaves that to it.

    `login_file` is codex's own, of which only the time is looked at; None where the login is somebody else's. `log_in`
    is what a person does about one that is missing, None where it is `tagcall login`. `base_instructions` replace
    codex's own; None leaves them as they are. After `thread_limit` threads, or with `memory_limit` bytes in RAM, a
    fresh process takes over: codex keeps about 1 MB of each thread. At most `spare_threads` wait for requests. With
    `lanes`, where the version can, a conversation keeps its thread within these bounds. Items of the kinds
    `allowed_items` are passed over. With `results_as_outputs`, and lanes, results go out as outputs of tools.
    With `turns_outlive_connection` a lost connection leaves turns behind that the next one ends. `idle_timeout` is
    in seconds without a line for a turn.
    """

    idle_timeout: float = 300.0
    deadlines: Deadlines = Deadlines()
    cwd: str | None = None
    login_file: Path | None = None
    log_in: str | None = None
    base_instructions: str | None = None
    thread_limit: int = 500
    memory_limit: int = 2**30
    spare_threads: int = 0
    lanes: LaneBounds | None = None
    turns_outlive_connection: bool = False
    allowed_items: frozenset[str] = HARMLESS
    results_as_outputs: bool = False


def lane_bounds(settings: BackendSettings) -> LaneBounds | None:
    """Those of the settings; None where conversations keep no lanes. Raises `UsageError`."""
    if settings.lanes == "off":
        if settings.results_as == "tool":
            raise UsageError("--results-as tool needs lanes", "leave out --lanes off")
        return None
    return LaneBounds(lanes=settings.lane_limit, idle=settings.lane_idle, characters=settings.lane_bytes)


def read_base_instructions(setting: str | None) -> str | None:
    """The text that `--base-instructions` means. Raises `UsageError`."""
    match setting:
        case None:
            return None
        case "none":
            return ""
        case file:
            try:
                return Path(file).expanduser().read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(
                    f"The base instructions in {file} cannot be read ({reason_of(error)})",
                    "name another file with --base-instructions",
                ) from None
