"""The moving picture of the README: the demo's tool loop, drawn from a run of the real server.

Three scenes, one a request, each a column for the client and one for the model. A card is a few lines of text that
appear at their time; the whole is one SVG that plays by CSS, so that it moves wherever an image is shown.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from openai.types.responses import ResponseFunctionToolCall

from parser import CLOSE_TAG, OPEN_TAG
from proxy.cli.demo.loop import QUESTION
from proxy.cli.demo.recording import ModelTurn
from tests.support.demo_loop import Hop

# Pixels.
WIDTH, HEIGHT, MARGIN, GAP, LINE, CHARACTER, PADDING = 960, 480, 16, 90, 18, 7.2, 12
COLUMN = (WIDTH - 2 * MARGIN - GAP) / 2
# Characters of a line in a card.
COLUMNS = int((COLUMN - 2 * PADDING) / CHARACTER)
# Seconds: until the next card, for each line that a model writes, and until the next scene.
CARD, TYPED, REST = 1.1, 0.45, 2.2
# Lines of a card that are shown.
ROOM = 6
# Where a card stands, and the colour of its frame.
CLIENT, MODEL = "client", "model"
COLOURS = {CLIENT: "#4c8dff", MODEL: "#e0a030"}
HEADINGS = {CLIENT: "Your client speaks OpenAI", MODEL: "The model reads and writes text"}


@dataclass(frozen=True, slots=True)
class Card:
    """`typed`: its lines come one after another, as a model writes them."""

    side: str
    title: str
    lines: Sequence[str]
    typed: bool = False


def wrapped(text: str, most: int = ROOM) -> list[str]:
    """At most `most` lines of `text`, each as long as a card is wide."""
    lines = [part for line in text.splitlines() if line.strip() for part in textwrap.wrap(line, COLUMNS)]
    return lines if len(lines) <= most else [*lines[: most - 1], f"... {len(lines) - most + 1} more lines ..."]


def short(text: str) -> str:
    """The first line of `text`, cut to a card's width."""
    line = text.strip().splitlines()[0]
    return line if len(line) <= COLUMNS else line[: COLUMNS - 3] + "..."


def scene_of(hop: Hop, turn: ModelTurn, before: Hop | None) -> list[Card]:
    """What goes over the wire for one request, in its order."""
    if before is None:
        asked = Card(CLIENT, "POST /v1/responses, with 2 tools", wrapped(f"“{QUESTION}”"))
        shown = Card(MODEL, "is shown the tools, and the question", wrapped(offered(turn)))
    else:
        outputs = [f"function_call_output: {short(result)}" for result in before.results]
        asked = Card(CLIENT, "runs the tools and sends what they return", [short(line) for line in outputs])
        results = [f"[tool:call_{number}] {short(result)}" for number, result in enumerate(before.results, 1)]
        shown = Card(MODEL, "is shown the results", [short(line) for line in results])
    wrote = Card(MODEL, "writes text", wrapped("".join(turn.pieces), 8), typed=True)
    calls = [item for item in hop.response.output if isinstance(item, ResponseFunctionToolCall)]
    if not calls:
        return [asked, shown, wrote, Card(CLIENT, "receives the answer", wrapped(hop.response.output_text))]
    items = [f"function_call: {call.name}({call.arguments})" for call in calls]
    return [asked, shown, wrote, Card(CLIENT, "receives real calls", [short(item) for item in items])]


def offered(turn: ModelTurn) -> str:
    """The lines of the developer text that hold the tools, each cut."""
    lines = (turn.prompt.head or "").splitlines()
    begin, end = lines.index("<tools>"), lines.index("</tools>")
    return "\n".join([*map(short, lines[begin : end + 1]), f"user: {QUESTION}"])


def picture(scenes: Iterable[Sequence[Card]]) -> str:
    """The SVG of all scenes, which begins anew when it has ended."""
    shown: list[tuple[float, float, str]] = []  # from when, until when, what
    now = 0.2
    for cards in scenes:
        begin, parts, height = now, [], 64.0
        for card in cards:
            height, now, drawn = draw(card, height, now)
            parts += drawn
        now += REST
        shown += [(at, now, part) for at, part in parts]
        assert height < HEIGHT, f"the scene that begins at {begin} is too high: {height}"
    return "\n".join([_head(now), *(_timed(*row, whole=now, last=row[1] == now) for row in shown), "</svg>", ""])


def draw(card: Card, top: float, now: float) -> tuple[float, float, list[tuple[float, str]]]:
    """Where the next card begins, when, and the parts of this one, each with its time."""
    left = MARGIN if card.side == CLIENT else MARGIN + COLUMN + GAP
    height = LINE * (len(card.lines) + 1) + PADDING
    parts = [
        (
            now,
            f'<rect x="{left}" y="{top}" width="{COLUMN}" height="{height}" rx="6" fill="#1d2330" '
            f'stroke="{COLOURS[card.side]}"/>'
            f'<text class="title {card.side}" x="{left + PADDING}" y="{top + LINE}">{card.title}</text>'
            + _arrow(card, top + height / 2),
        )
    ]
    inside = False
    for number, line in enumerate(card.lines, 2):
        at = now + (0.5 + TYPED * (number - 2) if card.typed else 0.15)
        kind = "tag" if inside or OPEN_TAG in line else "line"
        inside = (inside or OPEN_TAG in line) and CLOSE_TAG not in line
        parts.append((at, _text(kind, line, left + PADDING, top + LINE * number)))
    return top + height + 12, max(now + CARD, parts[-1][0] + CARD / 2), parts


def _text(kind: str, line: str, x: float, y: float) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" textLength="{len(line) * CHARACTER:.1f}">{escape(line)}</text>'


def _arrow(card: Card, y: float) -> str:
    """From the card's column, or to it: clients send and models write, all else is received."""
    left, right = MARGIN + COLUMN + 8, MARGIN + COLUMN + GAP - 8
    leaves = not card.title.startswith(("receives", "is shown"))
    begin, end = (left, right) if (card.side == CLIENT) == leaves else (right, left)
    tip = -7 if end > begin else 7
    return (
        f'<path d="M{begin} {y}H{end}M{end + tip} {y - 5}L{end} {y}L{end + tip} {y + 5}" '
        f'stroke="{COLOURS[card.side]}" fill="none"/>'
    )


def _head(seconds: float) -> str:
    columns = {CLIENT: MARGIN, MODEL: MARGIN + COLUMN + GAP}
    headings = "".join(
        f'<text class="heading {side}" x="{x}" y="40">{HEADINGS[side]}</text>' for side, x in columns.items()
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"
  aria-label="A tool loop: the client sends tools, the model writes calls as text, the client receives real calls">
<style>
text {{ font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #d5dbe8; white-space: pre }}
text.tag {{ fill: #d78cff }}
text.title {{ font-weight: bold }}
text.heading, text.middle {{ font: bold 15px system-ui, sans-serif }}
text.client {{ fill: {COLOURS[CLIENT]} }}
text.model {{ fill: {COLOURS[MODEL]} }}
g.last {{ opacity: 1 }}
g:not(.last) {{ opacity: 0 }}
g {{ animation-duration: {seconds:.2f}s; animation-iteration-count: infinite }}
@media (prefers-reduced-motion) {{ g {{ animation: none !important }} }}
</style>
<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#12161f"/>{headings}
<text class="middle" x="{WIDTH / 2}" y="40" text-anchor="middle">tagcall</text>"""


def _timed(begin: float, end: float, part: str, *, whole: float, last: bool) -> str:
    start, stop = 100 * begin / whole, 100 * end / whole
    name = f"t{begin:.2f}-{end:.2f}".replace(".", "_")
    frames = (
        f"0%,{start:.2f}%{{opacity:0}}{start + 0.6:.2f}%,{stop - 0.3:.2f}%{{opacity:1}}{stop:.2f}%,100%{{opacity:0}}"
    )
    return (
        f"<style>@keyframes {name}{{{frames}}}</style>"
        f'<g style="animation-name:{name}"{" class=" + chr(34) + "last" + chr(34) if last else ""}>{part}</g>'
    )
