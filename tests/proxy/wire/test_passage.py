from __future__ import annotations

from proxy.wire.passage import Passage


def test_paragraphs_and_parts_stand_one_blank_line_apart() -> None:
    passage = Passage()
    left = [passage.add("a", 1), passage.add("b", 1), passage.add("c", 2)]
    passage.broken = True
    left += [passage.add("d", 2), passage.add("e", 2)]
    assert left == ["a", "b", "\n\nc", "\n\nd", "e"]
    assert str(passage) == "".join(left)


def test_nothing_stands_in_front_of_the_first() -> None:
    assert Passage(broken=True).add("a", 3) == "a"
