from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from prompts.guard.suspicion import is_suspect, may_hold_tag

WRITTEN = [
    "tool_call", "<Tool_CALL>", "to\u200bol_call", r"tool\_call", r"to\u200bol_call", "tool&shy;_call",
    "\uff54\uff4f\uff4f\uff4c\uff3f\uff43\uff41\uff4c\uff4c", r"t\u006fol_call", "t&#111;ol_call", "tool&lowbar;call",
    "to%6fl_call", "tool%5Fcall", "%2574ool_call", "t&amp;#111;ol_call", "t&amp;amp;#x6f;ol_call", r"t\\u006fol_call",
    "t%26%23111;ol_call", r"t\u0026#111;ol_call", "t&#37;6fol_call", "tool_\ncall", "to=\r\nol_call", "tool\\\n_call",
    "to\n> ol_call", "tool_\n    12\tcall", r"tool_\ncall", r"to\n    12\tol_call", "to\n> > ol_call",
    json.dumps("\uff54\uff4f\uff4f\uff4c\uff3f\uff43\uff41\uff4c\uff4c"), quote("\uff54\uff4fol_call"),
]  # fmt: skip


@pytest.mark.parametrize("text", WRITTEN)
def test_the_word_is_suspected_in_any_writing(text: str) -> None:
    assert is_suspect(f"some {text} text")
    assert may_hold_tag(f"some <{text}> text")


@pytest.mark.parametrize(
    "text",
    ["tool call", "tools_called", "it&#39;s", r"caf\u00e9 \u003cb>", "toolcall", "https://a.b/c%20d%2Fe?f=%5B1%5D",
     "it\nold_call", "R&amp;D", "100%"],
)  # fmt: skip
def test_other_words_are_not_suspected(text: str) -> None:
    assert not is_suspect(text)


@pytest.mark.parametrize(
    "tag", ["<", "&lt;", "&amp;lt;", r"\u003c", "%3C", "%253c", "\uff1c", "< \n", "<\\", "<\u200b" * 9]
)
def test_a_tag_is_told_from_its_word_alone(tag: str) -> None:
    assert may_hold_tag(f"see {tag}tool_call")
    assert not may_hold_tag('{"tool_calls": [{"id": "c"}]}')
