"""In an answer that has to be JSON nothing else leaves beside its calls."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from parser import Tool, ToolRegistry
from prompts import ChoiceMode, ToolChoice
from proxy.contracts import OutputFormat, TurnFinished
from proxy.turn import CallRelease, StreamJson, TurnOptions
from tests.proxy.turn.playing import READ_A, ask, keyless_model, play
from tests.support.memory_backend import USAGE

SCHEMA = '{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false}'
FIT = '{"x": 1}'
BESIDE_TOOLS = ask(output_format=OutputFormat(SCHEMA, "point"))
WHOLE = keyless_model()
LIVE = keyless_model(release=CallRelease.LIVE)
EARLY = keyless_model(stream_json=StreamJson.EARLY)


@pytest.mark.parametrize("options", [WHOLE, LIVE, EARLY], ids=["whole", "live", "early"])
@pytest.mark.parametrize("mode", [ChoiceMode.AUTO, ChoiceMode.REQUIRED])
@pytest.mark.parametrize("chunk", [0, 6])
@pytest.mark.parametrize(("before", "behind"), [("I look.\n", ""), ("", "\nThat was it."), ("I look.\n", " Done.")])
async def test_text_that_is_no_such_json_does_not_leave(
    before: str, behind: str, chunk: int, mode: ChoiceMode, options: TurnOptions
) -> None:
    """The official client's `.parse` raises on any message whose text is not the JSON."""
    request = replace(BESIDE_TOOLS, choice=ToolChoice(mode))
    outcome = await play(before + READ_A + behind, request=request, options=options, chunk=chunk)
    assert outcome.text == ""
    assert len(outcome.calls) == 1
    assert outcome.end == TurnFinished(USAGE)
    assert outcome.report.counts["taken_out"] == {"beside_calls": 1}
    assert outcome.report.warnings == ["Text beside a call was left out: it is not the JSON that was asked for."]


@pytest.mark.parametrize("chunk", [0, 6])
async def test_json_leaves_with_them(chunk: int) -> None:
    outcome = await play(f"{FIT}\n{READ_A}\n", request=BESIDE_TOOLS, chunk=chunk)
    assert outcome.text.strip() == FIT
    assert len(outcome.calls) == 1
    assert not outcome.report.counts["taken_out"]


async def test_so_it_is_beside_a_call_that_leaves_though_it_does_not_fit() -> None:
    registry = ToolRegistry([Tool("read_note", "Read a note.", '{"type": "object", "required": ["way"]}')])
    outcome = await play(f"I look.\n{READ_A}", "", request=replace(BESIDE_TOOLS, registry=registry))
    assert outcome.text == ""
    assert len(outcome.calls) == 1


async def test_without_such_a_format_all_text_leaves() -> None:
    assert (await play(f"I look.\n{READ_A}")).text == "I look.\n"
