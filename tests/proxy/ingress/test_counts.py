"""Counters and histograms as plain numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from proxy.ingress.counts import Counts, Durations

BOUNDS = (0.5, 1, 2.5)


def test_each_set_of_label_values_has_its_own_count() -> None:
    counts = Counts("turns", "Turns.", ("outcome", "lane"))
    counts.add("done", "fresh")
    counts.add("done", "fresh", by=2)
    counts.add("left", "fresh")
    assert counts.counted == {("done", "fresh"): 3, ("left", "fresh"): 1}


@given(st.lists(st.sampled_from([0.0, *BOUNDS, 3.0]) | st.floats(0, 10)))
def test_buckets_are_those_of_prometheus_own_histogram(observed: list[float]) -> None:
    durations = Durations("seconds", "Seconds.", BOUNDS)
    theirs = Histogram("seconds", "Seconds.", buckets=BOUNDS, registry=CollectorRegistry())
    for seconds in observed:
        durations.observe(seconds)
        theirs.observe(seconds)
    [family] = theirs.collect()
    buckets = [(each.labels["le"], each.value) for each in family.samples if each.name == "seconds_bucket"]
    assert [*durations.buckets()] == buckets
    assert [durations.sum] == [each.value for each in family.samples if each.name == "seconds_sum"]
