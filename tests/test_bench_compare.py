"""What a comparison of two commits reads in their reports."""

from __future__ import annotations

from tests.bench.compare import best, figures, told
from tests.bench.report import difference, head, ratio

REPORT = "\n".join(
    [
        "The proxy, and a bare relay",
        head(),
        str(ratio("memory after the first answer", 52.5, 35, "MB", 1.5)),
        str(ratio("  with 64 streams", 60, 40, "MB")),
        str(difference("first piece", 0.31, 0.2, "ms")),
        str(ratio("  pieces a second; every byte came", 150_000, 300_000, "", 0.4, at_least=True)),
        "",
        "The same in front of a Chat Completions server",
        str(ratio("memory after the first answer", 50, 35, "MB")),
    ]
)
RELAY, CHAT = "The proxy, and a bare relay\n", "The same in front of a Chat Completions server\n"


def test_a_figure_is_known_by_its_table_and_the_row_that_it_belongs_to() -> None:
    assert figures(REPORT) == {
        f"{RELAY}memory after the first answer, MB": 52.5,
        f"{RELAY}memory after the first answer, MB: with 64 streams, MB": 60,
        f"{RELAY}first piece, ms": 0.31,
        f"{RELAY}first piece, ms: pieces a second; every byte came": 150_000,
        f"{CHAT}memory after the first answer, MB": 50,
    }


def test_the_least_of_the_runs_counts_and_of_a_rate_the_most() -> None:
    run, other = {"x\ncost": 2.0, "x\npieces a second": 5.0}, {"x\ncost": 1.0, "x\npieces a second": 4.0}
    assert best([run, other]) == {"x\ncost": 1.0, "x\npieces a second": 5.0}


def test_rows_that_both_have_are_told_with_what_they_come_to() -> None:
    lines = list(told({"x\ncost": 2.0, "x\ngone": 1.0}, {"x\ncost": 3.0, "x\nnew": 1.0}, "bfa0445"))
    assert lines[0].split() == ["x", "bfa0445", "now"]
    assert [line.split() for line in lines[1:]] == [["cost", "2", "3", "1.50", "x"]]
