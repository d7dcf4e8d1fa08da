"""What a scheduler has done since it started: its own share, for its row in the table of services and the metrics."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from evenflow.scheduler.advance import Progress

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Histogram:
    """Counts by upper bound in seconds; what is above the last bound is in ``count`` alone."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum_s = 0.0

    def add(self, value_s: float, count: int = 1) -> None:
        self._counts[bisect_left(BOUNDS_S, value_s)] += count
        self._sum_s += value_s * count

    def read(self) -> dict[str, Any]:
        buckets = {str(bound): sum(self._counts[: i + 1]) for i, bound in enumerate(BOUNDS_S)}
        return {"buckets": buckets, "count": sum(self._counts), "sum_s": round(self._sum_s, 6)}


class Tally:
    """Counts only rise. ``rounds`` are the turns that selected; ``startable_s`` is by how much tasks could have started earlier;
    ``repairs``, of lost wake-ups, must stay 0.
    """

    def __init__(self) -> None:
        names = ("turns", "rounds", "reports", "stale", "starts", "moves", "lanes_touched", "rows_read", "repairs")
        self._counts = dict.fromkeys(names, 0)
        self._startable, self._turn = Histogram(), Histogram()

    def add(self, progress: Progress, took_s: float) -> None:
        counts, started = self._counts, progress.started
        counts["turns"] += 1
        counts["rounds"] += progress.selected
        counts["reports"] += progress.reports
        counts["stale"] += progress.stale
        counts["starts"] += started.count
        counts["moves"] += progress.moves
        counts["lanes_touched"] += started.lanes_touched
        counts["rows_read"] += started.rows_read
        self._turn.add(took_s)
        for delay_s, count in started.delays:
            self._startable.add(delay_s + took_s, count)

    def repair(self, count: int) -> None:
        self._counts["repairs"] += count

    def read(self) -> dict[str, Any]:
        return {**self._counts, "startable_s": self._startable.read(), "turn_s": self._turn.read()}
