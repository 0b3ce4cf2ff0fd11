from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import pytest

from prompts import (
    answer_now,
    arguments_misfit,
    call_forbidden,
    call_missing,
    named_call_missing,
    unusable_markup,
)

TEMPLATES = sorted((files("prompts") / "templates").iterdir(), key=lambda path: path.name)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_the_words_name_the_tags_only_through_the_grammar(template: Traversable) -> None:
    text = template.read_text("utf-8")
    assert "tool_call>" not in text


def test_the_reference_page_names_every_fault() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/prompts.md").read_text("utf-8")
    for fault in (unusable_markup, arguments_misfit, call_missing, named_call_missing, call_forbidden, answer_now):
        assert f"`{fault.__name__}`" in page


def test_no_passage_begins_with_what_could_complete_a_tag() -> None:
    """Untrusted text stands before them and may end in `<`."""
    for template in TEMPLATES:
        assert not re.match(r"[\s/]*tool_call", template.read_text("utf-8"), re.IGNORECASE)
