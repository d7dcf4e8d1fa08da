"""The metrics as Prometheus collects them: what schedulers tell of themselves, and how full and how busy the system is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from evenflow.store.metrics import LaneCount, LimitUse, SchedulerDetail
from evenflow.store.views import Row

_COUNTERS = (  # key in the detail of a scheduler, name, meaning
    ("turns", "evenflow_scheduler_turns", "Transactions of this scheduler."),
    ("rounds", "evenflow_scheduler_rounds", "Transactions that selected."),
    ("starts", "evenflow_scheduler_starts", "Tries that it sent to workers."),
    ("moves", "evenflow_scheduler_moves", "Changes of a task instance's state."),
    ("lanes_touched", "evenflow_scheduler_lanes_touched", "Lanes that its rounds decided about."),
    ("rows_read", "evenflow_scheduler_rows_read", "Rows that its rounds read."),
    ("reports", "evenflow_scheduler_reports", "Reports that it applied."),
    ("stale", "evenflow_scheduler_stale_reports", "Reports of tries that are no longer current."),
    (
        "repairs",
        "evenflow_selection_repairs",
        "Lost wake-ups that a sweep has repaired. Above 0 is a defect.",
    ),
)
_HISTOGRAMS = (
    ("startable_s", "evenflow_task_startable_seconds", "For how long tasks could have started before they did."),
    ("turn_s", "evenflow_scheduler_turn_seconds", "How long a transaction of a scheduler takes."),
)
_QUEUES = (
    ("waiting", "evenflow_dispatch_waiting", "Tries that wait for a worker."),
    ("running", "evenflow_dispatch_running", "Tries that a worker has."),
    ("oldest_waiting_s", "evenflow_dispatch_oldest_waiting_seconds", "For how long the first of them has waited for a worker."),
)
_HEALTH = (
    ("inbox", "evenflow_reports_waiting", "Reports that no scheduler has applied yet."),
    ("oldest_report_s", "evenflow_reports_oldest_seconds", "Age of the oldest of them."),
    ("oldest_snapshot_s", "evenflow_database_oldest_snapshot_seconds", "Age of the oldest snapshot: an old one slows all rounds."),
    ("database_bytes", "evenflow_database_bytes", "Size of the database."),
)


@dataclass(frozen=True, slots=True)
class Standing(Collector):
    """The system at one moment, as rows of the store; :meth:`collect` is what prometheus_client asks for."""

    schedulers: Sequence[SchedulerDetail]
    services: Sequence[Row]
    limits: Sequence[LimitUse]
    queues: Sequence[Row]
    lanes: LaneCount
    health: Row

    def collect(self) -> Iterator[Metric]:
        yield from self._of_schedulers()
        yield self._of_services()
        yield _gauge("evenflow_limit_capacity", "Slots.", ("kind", "name"), [((x.kind, x.name), x.capacity) for x in self.limits])
        yield _gauge(
            "evenflow_limit_used", "Slots that are taken.", ("kind", "name"), [((x.kind, x.name), x.used) for x in self.limits]
        )
        for key, name, meaning in _QUEUES:
            yield _gauge(name, meaning, ("queue",), [((row["queue"],), row[key] or 0) for row in self.queues])
        lanes = [(("open",), self.lanes.open), (("parked",), self.lanes.parked), (("paused",), self.lanes.paused)]
        yield _gauge("evenflow_lanes", "Groups of ready tasks that wait for selection.", ("state",), lanes)
        yield _gauge("evenflow_tasks_ready", "Tasks that are ready and have not started.", (), [((), self.lanes.ready)])
        for key, name, meaning in _HEALTH:
            yield _gauge(name, meaning, (), [((), self.health[key] or 0)])

    def _of_schedulers(self) -> Iterator[Metric]:
        for key, name, meaning in _COUNTERS:
            counter = CounterMetricFamily(name, meaning, labels=("scheduler",))
            for scheduler, value in self._told(key):
                counter.add_metric((scheduler,), value)
            yield counter
        for key, name, meaning in _HISTOGRAMS:
            histogram = HistogramMetricFamily(name, meaning, labels=("scheduler",))
            for scheduler, value in self._told(key):
                _add_histogram(histogram, scheduler, value)
            yield histogram

    def _told(self, key: str) -> Iterator[tuple[str, Any]]:
        """By those that tell it: one that has just started tells nothing, and one of another version may know less."""
        return ((scheduler.name, scheduler.detail[key]) for scheduler in self.schedulers if key in scheduler.detail)

    def _of_services(self) -> Metric:
        youngest = {(row["kind"], row["name"]): row for row in self.services}
        samples = [(key, int(row["healthy"])) for key, row in youngest.items()]
        return _gauge("evenflow_service_healthy", "1 while its lease holds.", ("kind", "name"), samples)


def _gauge(name: str, meaning: str, labels: Sequence[str], samples: Sequence[tuple[Sequence[str], float]]) -> Metric:
    gauge = GaugeMetricFamily(name, meaning, labels=labels)
    for values, value in samples:
        gauge.add_metric(values, value)
    return gauge


def _add_histogram(histogram: HistogramMetricFamily, scheduler: str, told: dict[str, Any]) -> None:
    buckets = sorted(told["buckets"].items(), key=lambda bucket: float(bucket[0]))
    histogram.add_metric((scheduler,), [*buckets, ("+Inf", told["count"])], told["sum_s"])
