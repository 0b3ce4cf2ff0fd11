"""What a policy is tried with: each profile with each way in which calls leave, and answers in pieces of each size."""

from __future__ import annotations

from itertools import product

import pytest

from prompts import PROFILES
from proxy.turn import CallRelease, TurnOptions
from tests.proxy.turn.playing import keyless_model

MODES = [
    keyless_model(release=release, profile=profile) for profile, release in product(PROFILES.values(), CallRelease)
]


@pytest.fixture(params=MODES, ids=lambda mode: f"{mode.profile.name}-{mode.release.value}")
def mode(request: pytest.FixtureRequest) -> TurnOptions:
    chosen: TurnOptions = request.param
    return chosen


@pytest.fixture(params=[0, 1, 5])
def chunk(request: pytest.FixtureRequest) -> int:
    size: int = request.param
    return size
