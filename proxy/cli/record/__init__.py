"""`tagcall record DIR`: serve as usual, and write each turn as a fixture.

options    its flags besides those of `serve`
turns      what the backend says, heard where it passes
recorder   which turns and which answer belong to which request
recording  one request that is over, and what it came to
kept       a turn that the page has kept, likewise
document   one request as the files of a fixture
standalone a request that needs nothing from the store
scrub      without keys, people and private paths
secrets    what looks like a secret
shelf      the folder in which they stand
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from ...backends import make_backend, server_key
from ...errors import UsageError, reason_of
from ...server import read_keys
from ...settings import Settings
from ...turn import Habits
from ..serve import serve
from ..shaping import habit_as_recorded, shaping_settings
from .options import RecordOptions
from .recorder import Recorder
from .scrub import Scrubber
from .secrets import is_secret_variable
from .shelf import sweep


async def run_record(settings: Settings, options: RecordOptions) -> int:
    """As `run_serve`. The folder is made when it is not there."""
    folder = options.folder
    _prepare(folder)
    backend = make_backend(settings)
    scrubber = scrubber_for(settings, folder, options.redact)
    kind = settings.backend.partition(":")[0]
    shaping = shaping_settings(settings)
    async with Recorder(backend, kind, folder, scrubber, shaping, replace=options.replace) as recorder:
        more = f"  Each turn is written to {folder}. Read what was written before you give it to others.\n"
        # Learnt anew, so that a recording does not depend on what was asked before it. Each says what was known.
        habits = habit_as_recorded(settings) or Habits()
        return await serve(settings, recorder.backend, [recorder.middleware], more, habits)


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder)
    except OSError as error:
        raise UsageError(f"Nothing can be written to {folder} ({reason_of(error)})", "name another folder") from None


def scrubber_for(settings: Settings, folder: Path, patterns: Iterable[re.Pattern[str]] = ()) -> Scrubber:
    """One that knows this server's keys and places, and `folder`; `patterns` as in `Scrubber`."""
    return Scrubber(keys=_keys(settings), folders=_private_folders(settings, folder), patterns=patterns)


def _keys(settings: Settings) -> list[str]:
    named = (value for name, value in os.environ.items() if is_secret_variable(name, value))
    given = (server_key(settings), settings.inspect_key)
    return [*read_keys(settings), *(key for key in given if key), *named]


def _private_folders(settings: Settings, folder: Path) -> list[Path]:
    folders = [settings.codex_home.absolute(), folder.absolute(), Path.cwd()]
    try:
        return [Path.home(), *folders]
    except RuntimeError:  # nobody's process has none
        return folders
