"""Options of a session with an app-server: its limits and its deadlines."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from ...errors import UsageError
from ...setting_values import text_of_file, user_path
from ..kind import BackendSettings
from .item_kinds import HARMLESS

# Times that a turn is interrupted before the app-server is doubted.
INTERRUPTS = 5


class Deadlines(Struct, frozen=True, kw_only=True):
    """Seconds."""

    greeting: float = 10.0
    """For each request before the first turn. A cold start takes up to 0.5."""
    request: float = 30.0
    """For starting a thread or a turn. A version that looks for models first took 3."""
    models: float = 20.0
    """For the list of models and for the quota. Nothing waits for these."""
    total: float = 3600.0
    """For a whole turn, however much it says."""
    interrupt: float = 1.0
    """For the end of an interrupted turn, each of `INTERRUPTS` times. 0.1 is usual."""
    refusal: float = 5.0
    """For a sign of life of a turn after a request that tagcall does not serve. Some versions wait for ever then."""
    quiet: float = 30.0
    """Silence of an app-server with turns, after which it is probed."""
    probe: float = 5.0
    """For any answer of an app-server that is doubted. Then it is killed."""


class LaneBounds(Struct, frozen=True, kw_only=True):
    """Bounds of idle lanes: how many, for how many seconds, and how many `characters` they hold together."""

    lanes: int = 64
    idle: float = 1800.0
    characters: int = 64 * 2**20


class SessionOptions(Struct, frozen=True, kw_only=True):
    """`cwd` is the folder of threads, on the app-server's machine; None leaves it to the app-server.

    `login_file` is codex's own; only its time and size are read. It is None if the login is somebody else's. `log_in`
    tells a person what to do if a login is missing, None means `tagcall login`. `base_instructions` replace codex's
    own; None leaves them as they are. After `thread_limit` threads, or with `memory_limit` bytes in RAM, a fresh
    process takes over: codex keeps about 1 MB of each thread. At most `spare_threads` wait for requests. With `lanes` a
    conversation keeps its thread within these bounds, if the version can do so. Items of the kinds `allowed_items` are
    passed over. With `results_as_outputs`, and lanes, results go out as outputs of tools. With
    `turns_outlive_connection` turns go on after a lost connection, and the next connection ends them. `idle_timeout` is
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
    """The bounds in the settings; None if conversations keep no lanes. Raises `UsageError`."""
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
            remedy = "name another file with --base-instructions"
            return text_of_file(user_path(file), f"The base instructions in {file}", remedy)
