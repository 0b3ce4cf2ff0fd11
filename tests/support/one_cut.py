"""Replay at the cuts of the recording and in pieces of three characters, for tests that are about something else.

Each of its cuts takes a server and a process. That an answer is the same at all of them is proved in
`tests/proxy/cli/replay/test_run.py`, and for every fixture of the repository in `test_replay.py` beside it.
"""

from __future__ import annotations

import pytest


def replay_at_one_cut(patch: pytest.MonkeyPatch) -> None:
    """From now on, until `patch` is undone, in this process."""
    patch.setattr("proxy.cli.replay.run.CHUNKS", (3,))
