"""Doctor without the second that it takes to ask a codex program of each of its models which tools they are given.

The answer is the program's own, whatever else is wrong with a machine. That it is asked, and right, is proved in
`tests/proxy/backends/codex/test_kind.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from proxy.backends.codex.text_only import tools_that_reach_the_model

_told: dict[tuple[str | None, tuple[str, ...]], dict[str, tuple[str, ...]]] = {}


async def _remembered(program: str | None, models: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
    asked = (program, tuple(models))
    if asked not in _told:
        _told[asked] = await tools_that_reach_the_model(program, models)
    return _told[asked]


def remember_tools(patch: pytest.MonkeyPatch) -> None:
    """From now on, until `patch` is undone, each program is asked once."""
    patch.setattr("proxy.backends.codex.examination.tools_that_reach_the_model", _remembered)
