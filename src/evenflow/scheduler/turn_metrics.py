"""What a scheduler has done since it started, in its meter, its own share (R-HA1), and how much of its time went into waiting for
locks (R-HA14).
"""

from __future__ import annotations

from collections.abc import Callable

from evenflow.core import metrics
from evenflow.core.meter import Meter
from evenflow.core.service import ServiceKind
from evenflow.scheduler import observations as seen
from evenflow.scheduler.advance import TurnOutcome
from evenflow.store.db import sessions
from evenflow.store.db.rows import Conn
from evenflow.telemetry.observing import observe

LOOK_S = 0.25  # about 0.1 ms of the server each; after ten busy minutes a share of 2 % is known to within half a percent


class TurnMetrics:
    """``turned`` is called after each transaction."""

    def __init__(self, meter: Meter | None = None, turned: Callable[[], None] = lambda: None) -> None:
        self.meter = meter or Meter(ServiceKind.SCHEDULER, "", metrics.METRICS)
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


class Contention:
    """How much of a scheduler's time goes into waiting for locks, by looking at what its transactions do right now.

    PostgreSQL does not add up lock waits of a session, and asking it around every statement would cost more than they do. Looks at
    regular moments, from a thread and connection on which nothing waits for locks of runs, find each state as often as it lasts.
    ``pid`` is that of the session that takes turns, while there is one.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self.pid: int | None = None
        for state in sessions.STATES:
            meter.count(metrics.SAMPLES, 0, state)

    def look(self, conn: Conn) -> None:
        if self.pid is not None and (state := sessions.read_state(conn, self.pid)) is not None:
            self._meter.count(metrics.SAMPLES, 1, state)
