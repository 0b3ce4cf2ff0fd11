"""The small app-server that plays fixtures, as a child process like the real one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..contracts import TextBackend
from ..errors import UsageError, reason_of
from ..setting_values import user_path
from .kind import BackendKind, BackendSettings, takes_results_as_users_only
from .remote import not_our_business


def replay_backend(
    folder: Path,
    *,
    speed: str = "fast",
    chunk: int = 0,
    played: Path | None = None,
    models: Sequence[str] = (),
    idle_timeout: float = 300.0,
    lanes: bool = True,
) -> TextBackend:
    """Plays the fixtures in `folder`.

    `speed` is `fast`, `recorded` for the pace at which the model once wrote, or the time between two pieces of
    text, as `20ms`. `chunk` cuts the text anew, into pieces of so many characters; 0 leaves it as it was recorded.
    With `lanes` conversations keep their thread, as they do at codex. The names of those that are played are added to
    `played`, a line each.
    """
    from ..rpc import ChildTransport, Launch, Transport  # noqa: PLC0415 -- other kinds do without
    from .codex import CodexBackend, LaneBounds, SessionOptions  # noqa: PLC0415 -- likewise

    # The child finds what this process finds, wherever that comes from: a wheel, a checkout, a zip application.
    root = Path(__file__).resolve().parents[2]
    more = [] if played is None else ["--played", str(played.absolute())]
    options = ["--speed", speed, "--chunk", str(chunk), *more]
    launch = Launch(
        [sys.executable, "-P", "-m", "proxy.replay", *options, str(folder.absolute())],
        {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *filter(None, sys.path)])},
    )

    async def connect() -> Transport:
        return await ChildTransport.start(launch)

    session = SessionOptions(idle_timeout=idle_timeout, lanes=LaneBounds() if lanes else None)
    return CodexBackend(connect, session, models=models, name="the replay")


def _make(settings: BackendSettings) -> TextBackend:
    from ..replay.fixture import load_fixtures  # noqa: PLC0415 -- likewise

    takes_results_as_users_only(settings)
    folder = user_path(settings.backend.partition(":")[2])
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder of fixtures", "give one with --backend replay:DIR")
    load_fixtures(folder)  # what is wrong with one is told before anything is started
    if settings.played is not None:
        try:
            settings.played.open("a").close()
        except OSError as error:
            raise UsageError(
                f"--played {settings.played} cannot be written ({reason_of(error)})", "name another file"
            ) from None
    return replay_backend(
        folder,
        speed=settings.speed,
        played=settings.played,
        models=settings.model,
        idle_timeout=settings.idle_timeout,
        lanes=settings.lanes == "on",
    )


REPLAY = BackendKind(help="recorded fixtures", address="DIR", make=_make, check_after=not_our_business, has_model=False)
