"""What a scheduler has done since it started, in its meter: its own share (R-HA1)."""

from __future__ import annotations

from collections.abc import Callable

from evenflow.core import metrics
from evenflow.core.meter import Meter, Teller
from evenflow.scheduler import observations as seen
from evenflow.scheduler.advance import TurnOutcome
from evenflow.telemetry.observing import observe


class Tally:
    """``turned`` is called after each transaction."""

    def __init__(self, meter: Meter | None = None, turned: Callable[[], None] = lambda: None) -> None:
        self.meter = meter or Meter(Teller.SCHEDULER, "", metrics.METRICS)
        self._turned = turned

    def add(self, progress: TurnOutcome, took_s: float) -> None:
        """A transaction that was committed."""
        count, started = self.meter.count, progress.started
        count(metrics.TURNS)
        count(metrics.ROUNDS, progress.selected)
        count(metrics.PICKS, progress.picks)
        count(metrics.CONTENDED_PICKS, progress.contended)
        count(metrics.REPORTS, progress.reports)
        count(metrics.STALE_REPORTS, progress.stale)
        count(metrics.STARTS, started.count)
        count(metrics.MOVES, progress.moves)
        count(metrics.LANES_TOUCHED, started.lanes_touched)
        count(metrics.ROWS_READ, started.rows_read)
        self.meter.observe(metrics.TURN_SECONDS, took_s)
        for delay_s, starts in started.delays:
            self.meter.observe(metrics.STARTABLE_SECONDS, delay_s + took_s, count=starts)
        for delay_s in progress.direct_resumes:
            self.meter.observe(metrics.RESUME_SECONDS, delay_s + took_s)
        count(metrics.ORDINARY_RESUMES, progress.ordinary_resumes)
        for policy, tries in progress.overdue.items():
            observe(seen.tries_overdue(policy, tries), self.meter)
        self._turned()
