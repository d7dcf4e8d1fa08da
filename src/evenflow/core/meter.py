"""Metrics: each is declared once (:mod:`evenflow.core.metrics`), counted in a meter, and read by every sink.

Prometheus and StatsD only interpret readings. The threads of a process write its meter and another thread reads it, so a reading
may be a moment behind.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from evenflow.core.service import ServiceKind

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Labels = tuple[str, ...]  # values, in the order in which the metric declares them


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """``name`` is without the suffix ``_total`` that Prometheus gives to counters. ``tellers`` are the services that report
    it. A metric without tellers is the system's: an API server reads it from the database, and every one reads the same.
    """

    name: str
    kind: MetricKind
    tellers: frozenset[ServiceKind]
    meaning: str
    labels: tuple[str, ...] = ()

    @property
    def own_labels(self) -> tuple[str, ...]:
        """The labels before the declared ones: the service that reports."""
        return ("kind", "name") if self.tellers else ()


@dataclass(frozen=True, slots=True)
class Distribution:
    """``counts`` has one count for each upper bound of :data:`BOUNDS_S`, not cumulated; the last counts values above all bounds."""

    counts: tuple[int, ...]
    sum: float

    @property
    def count(self) -> int:
        return sum(self.counts)

    def __sub__(self, earlier: Distribution) -> Distribution:
        """Returns what was seen since ``earlier``."""
        return Distribution(
            tuple(now - then for now, then in zip(self.counts, earlier.counts, strict=True)), self.sum - earlier.sum
        )

    def quantile(self, share: float) -> float | None:
        """Returns the bound of the bucket in which ``share`` of all values is reached; None when there are none. Above all bounds
        it is the last one.
        """
        if not self.count:
            return None
        bucket = bisect_left(list(accumulate(self.counts)), share * self.count)
        return BOUNDS_S[min(bucket, len(BOUNDS_S) - 1)]


@dataclass(frozen=True, slots=True)
class Reading:
    """``labels`` are the values of the metric's own labels and of the labels that it declares."""

    metric: Metric
    labels: Labels
    value: float | Distribution


class _Histogram:
    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum = 0.0

    def seen(self) -> Distribution:
        return Distribution(tuple(self.counts), self.sum)


class Meter:
    """The numbers of one service. Counters and histograms without labels exist from the start, at 0."""

    def __init__(self, teller: ServiceKind, name: str, metrics: Iterable[Metric]) -> None:
        self._teller, self._own = teller, (str(teller), name)
        self._counts: dict[tuple[Metric, Labels], float] = {}
        self._histograms: dict[tuple[Metric, Labels], _Histogram] = {}
        self._gauges: dict[tuple[Metric, Labels], Callable[[], float]] = {}
        self._families: dict[Metric, Callable[[], Iterable[tuple[Labels, float]]]] = {}
        for metric in metrics:
            if teller in metric.tellers and not metric.labels:
                if metric.kind is MetricKind.COUNTER:
                    self._counts[metric, ()] = 0
                elif metric.kind is MetricKind.HISTOGRAM:
                    self._histograms[metric, ()] = _Histogram()

    def count(self, metric: Metric, by: float = 1, *labels: str) -> None:
        key = (metric, labels)
        self._counts[key] = self._counts.get(key, 0) + by

    def observe(self, metric: Metric, value: float, *labels: str, count: int = 1) -> None:
        """Notes that ``value`` was seen ``count`` times."""
        key = (metric, labels)
        if (histogram := self._histograms.get(key)) is None:
            histogram = self._histograms[key] = _Histogram()
        histogram.counts[bisect_left(BOUNDS_S, value)] += count
        histogram.sum += value * count

    def gauge(self, metric: Metric, read: Callable[[], float], *labels: str) -> None:
        """Calls ``read`` for each reading, from another thread; if it raises :class:`OSError`, that reading leaves the metric out.
        This also serves for counters that other code keeps.
        """
        self._counts.pop((metric, labels), None)
        self._gauges[metric, labels] = read

    def family(self, metric: Metric, read: Callable[[], Iterable[tuple[Labels, float]]]) -> None:
        """Works like :meth:`gauge`, for labels that come and go."""
        self._families[metric] = read

    def value(self, metric: Metric, *labels: str) -> float:
        """Returns the current value of a counter."""
        return self._counts.get((metric, labels), 0)

    def distribution(self, metric: Metric, *labels: str) -> Distribution:
        """Returns what a histogram has counted so far."""
        return self._histograms[metric, labels].seen()

    def read(self) -> list[Reading]:
        readings = [self._reading(metric, labels, value) for (metric, labels), value in self._counts.copy().items()]
        for (metric, labels), histogram in self._histograms.copy().items():
            readings.append(self._reading(metric, labels, histogram.seen()))
        for (metric, labels), read in self._gauges.copy().items():
            with suppress(OSError):
                readings.append(self._reading(metric, labels, read()))
        for metric, family in self._families.copy().items():
            readings += [self._reading(metric, labels, value) for labels, value in family()]
        return readings

    def _reading(self, metric: Metric, labels: Labels, value: float | Distribution) -> Reading:
        assert self._teller in metric.tellers, f"{metric.name} is not told by a {self._teller}"
        assert len(labels) == len(metric.labels), f"{metric.name} has the labels {metric.labels}"
        return Reading(metric, (*self._own, *labels), value)


def system_readings(metric: Metric, values: Iterable[tuple[Sequence[str], float]]) -> list[Reading]:
    """Returns the readings of a metric of the system."""
    return [Reading(metric, tuple(labels), value) for labels, value in values]
