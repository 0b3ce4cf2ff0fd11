from __future__ import annotations

from proxy.backends.session_life import SessionLife
from tests.support.virtual_clock import on_a_virtual_clock


@on_a_virtual_clock
async def test_a_worn_session_is_over_with_its_last_turn() -> None:
    life = SessionLife()
    with life.turn():
        with life.turn():
            life.retire()
            assert not life.usable
            assert life.busy
        assert not is_over(life)
    assert is_over(life)


@on_a_virtual_clock
async def test_a_worn_session_without_turns_is_over_at_once() -> None:
    life = SessionLife()
    assert life.usable
    life.retire()
    assert is_over(life)


@on_a_virtual_clock
async def test_an_end_does_not_wait_for_turns() -> None:
    life = SessionLife()
    with life.turn():
        life.finish()
        assert is_over(life)
        assert not life.usable


def is_over(life: SessionLife) -> bool:
    """Asked without waiting."""
    waiting = life.finished()
    try:
        waiting.send(None)
    except StopIteration:
        return True
    waiting.close()
    return False
