"""What a scheduler has done since it started, in its meter: its own share (R-HA1)."""

from __future__ import annotations

from collections.abc import Callable

from evenflow.core import metrics
from evenflow.core.observation import Meter, Teller
from evenflow.scheduler.advance import TurnOutcome
from evenflow.scheduler.isolation import SetAsideCount


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
        self._turned()

    def repair(self, count: int) -> None:
        """Of lost wake-ups; must stay 0."""
        self.meter.count(metrics.REPAIRS, count)

    def stall(self, count: int) -> None:
        """Limit classes of which nothing started though something could; must stay 0."""
        self.meter.count(metrics.STALLS, count)

    def isolated(self, found: SetAsideCount) -> None:
        """After a transaction that failed."""
        self.meter.count(metrics.ISOLATIONS)
        self.meter.count(metrics.SET_ASIDE, found.runs, "run")
        self.meter.count(metrics.SET_ASIDE, found.reports, "report")

    @property
    def repairs(self) -> float:
        return self.meter.value(metrics.REPAIRS)
