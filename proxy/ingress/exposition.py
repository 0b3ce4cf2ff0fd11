"""GET /metrics: the numbers of a server in Prometheus' text format. Loading this takes 20 ms and 1 MB."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from aiohttp import web
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from ..contracts import Load
from ..quota import MAIN_LIMIT, Quota
from .metrics import METRICS, OTHER, Metrics


async def metrics(request: web.Request) -> web.StreamResponse:
    registry = CollectorRegistry()
    registry.register(MetricsCollector(request.app[METRICS]))
    return web.Response(
        body=generate_latest(registry), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
    )


class MetricsCollector(Collector):
    """All numbers, as they are when somebody asks."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        for counts in self._metrics.counters:
            counter = CounterMetricFamily(counts.name, counts.what, labels=counts.labels)
            for values, count in counts.counted.items():
                counter.add_metric(values, count)
            yield counter
        for durations in self._metrics.histograms:
            yield HistogramMetricFamily(
                durations.name, durations.what, buckets=[*durations.buckets()], sum_value=durations.sum
            )
        for gauge in self._metrics.gauges:
            yield GaugeMetricFamily(gauge.name, gauge.what, gauge.value())
        yield from _load(self._metrics.load())


def _load(load: Load) -> Iterator[Metric]:
    yield GaugeMetricFamily("tagcall_backend_open_turns", "Turns that the backend has not ended.", load.open_turns)
    yield GaugeMetricFamily("tagcall_backend_backlog", "Characters that wait for their client.", load.backlog)
    yield CounterMetricFamily("tagcall_backend_starts", "Starts of the backend.", load.starts)
    yield CounterMetricFamily("tagcall_backend_interrupts", "Turns that were left before their end.", load.interrupts)
    yield from _quota(load.quota)


def _quota(quota: Collection[Quota]) -> Iterator[GaugeMetricFamily]:
    """No sample of what nobody was told. Of the limits that have a name of their own only what is worst."""
    exhausted = GaugeMetricFamily("tagcall_quota_exhausted", "Whether a limit is used up: 1 or 0.", labels=["limit"])
    told = GaugeMetricFamily(
        "tagcall_quota_told_timestamp_seconds", "When the backend last told of the limit.", labels=["limit"]
    )
    left = GaugeMetricFamily(
        "tagcall_quota_left_ratio", "The part of the limit that is left, from 0 to 1.", labels=["limit", "window"]
    )
    resets = GaugeMetricFamily(
        "tagcall_quota_resets_timestamp_seconds", "When the whole limit is available again.", labels=["limit", "window"]
    )
    for label in (MAIN_LIMIT, OTHER):
        limits = [each for each in quota if (each.limit == MAIN_LIMIT) is (label == MAIN_LIMIT)]
        if not limits:
            continue
        exhausted.add_metric([label], max(each.exhausted for each in limits))
        told.add_metric([label], max(each.told_at for each in limits))
        windows = sorted((window for each in limits for window in each.windows), key=lambda each: -each.left_percent)
        for name, window in {window.name: window for window in windows}.items():
            left.add_metric([label, name], window.left_percent / 100)
            if window.resets_at is not None:
                resets.add_metric([label, name], window.resets_at)
    yield from (exhausted, told, left, resets)
