"""Readings in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from evenflow.core.meter import BOUNDS_S, Distribution, Metric, MetricKind, Reading

CONTENT_TYPE = CONTENT_TYPE_LATEST


def exposition(readings: Iterable[Reading]) -> bytes:
    """``readings`` of one metric may be scattered."""
    return generate_latest(_Readings(readings))


class _Readings(Collector):
    def __init__(self, readings: Iterable[Reading]) -> None:
        self._by_metric: dict[Metric, list[Reading]] = {}
        for reading in readings:
            self._by_metric.setdefault(reading.metric, []).append(reading)

    def collect(self) -> Iterator[Family]:
        for metric, readings in self._by_metric.items():
            yield _family(metric, readings)


def _family(metric: Metric, readings: list[Reading]) -> Family:
    labels = (*metric.own_labels, *metric.labels)
    match metric.kind:
        case MetricKind.COUNTER | MetricKind.GAUGE:
            numbers = (CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily)(
                metric.name, metric.meaning, labels=labels
            )
            for reading in readings:
                assert not isinstance(reading.value, Distribution)
                numbers.add_metric(reading.labels, reading.value)
            return numbers
        case MetricKind.HISTOGRAM:
            histograms = HistogramMetricFamily(metric.name, metric.meaning, labels=labels)
            for reading in readings:
                assert isinstance(reading.value, Distribution)
                bounds = (*(str(bound) for bound in BOUNDS_S), "+Inf")
                buckets = list(zip(bounds, accumulate(reading.value.counts), strict=True))
                histograms.add_metric(reading.labels, buckets, reading.value.sum)
            return histograms
