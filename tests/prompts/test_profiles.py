from __future__ import annotations

from prompts import FRONTIER, PROFILES, SMALL


def test_profiles_are_found_by_their_names() -> None:
    assert dict(PROFILES) == {"frontier": FRONTIER, "small": SMALL}
