from __future__ import annotations

from structlog.testing import capture_logs

from proxy.rpc import Tally


def test_all_are_counted_and_the_first_of_each_kind_is_a_warning() -> None:
    tally = Tally("line_skipped")
    with capture_logs() as logs:
        for kind in ("junk", "junk", "overlong", "junk"):
            tally.add(kind, bytes=1)
    assert tally.counts == {"junk": 3, "overlong": 1}
    assert [(entry["kind"], entry["log_level"]) for entry in logs] == [
        ("junk", "warning"),
        ("junk", "debug"),
        ("overlong", "warning"),
        ("junk", "debug"),
    ]
