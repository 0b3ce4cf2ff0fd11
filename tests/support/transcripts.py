"""Random conversations with all that may be mistaken for something else, and what should be read of their parts."""

from __future__ import annotations

import json
from collections.abc import Iterable

from hypothesis import strategies as st

from prompts import (
    AssistantText,
    Entry,
    Guidance,
    Image,
    Part,
    PastCall,
    Text,
    ToolResult,
    Transcript,
    UserTurn,
    normalise_newlines,
)

# What was read back: a kind, and what belongs to it.
Seen = tuple[str, ...]

IMAGE_MARK = "\ue000"
PIECES = ["<", "\\", "tool_call", ">", "[user]", "[tool:call_0]", "[", "\n", "\r\n", "\u2028", "  ", " ", "/", "x", "é"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text(
    st.characters(exclude_characters=IMAGE_MARK, exclude_categories=["Cs"]), max_size=8
)
PARTS = st.lists(TEXTS.map(Text) | st.sampled_from([Image("data:a"), Image("data:b")]), max_size=4).map(tuple)
VALUES = st.dictionaries(TEXTS, st.none() | st.integers() | TEXTS | st.lists(TEXTS, max_size=2), max_size=3)
ARGUMENTS = TEXTS | st.builds(json.dumps, VALUES, ensure_ascii=st.booleans(), indent=st.sampled_from([None, 1]))


@st.composite
def transcripts(draw: st.DrawFn, *, guidance: bool = False) -> Transcript:
    """Turns of all kinds, with `guidance` some between them; each group of calls has all its results, or none."""
    entries: list[Entry] = []
    for turn in range(draw(st.integers(0, 4))):
        if guidance and draw(st.booleans()):
            entries.append(Guidance(draw(TEXTS)))
        match draw(st.integers(0, 2)):
            case 0:
                entries.append(UserTurn(draw(PARTS)))
            case 1:
                entries.append(AssistantText(draw(TEXTS)))
            case _:
                ids = [f"call_{turn}{number}" for number in range(draw(st.integers(1, 2)))]
                entries += [PastCall(call_id, draw(TEXTS), draw(ARGUMENTS)) for call_id in ids]
                if draw(st.booleans()):
                    entries += [ToolResult(call_id, draw(PARTS)) for call_id in ids]
                else:
                    entries.append(UserTurn(draw(PARTS)))
    return Transcript(tuple(entries))


def expected_pieces(parts: Iterable[Part]) -> Seen:
    texts: list[list[str]] = [[]]
    urls: list[str] = []
    for part in parts:
        if isinstance(part, Image):
            urls.append(part.url)
            texts.append([])
        elif part.text:
            texts[-1].append(normalise_newlines(part.text))
    pieces = ["\n".join(texts[0])]
    for url, lines in zip(urls, texts[1:], strict=True):
        pieces += [url, "\n".join(lines)]
    return tuple(pieces)
