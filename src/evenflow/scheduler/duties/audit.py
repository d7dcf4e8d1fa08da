"""Safety nets under the events that open lanes and begin runs, and the proof that they are not needed.

There should be nothing to find. A finding is repaired, so that nothing waits for ever because of a bug, and counted in a metric
that must stay 0.

The sweep finds lost wake-ups. Each second it looks at one lane of some queues of parked lanes and at some DAGs that have queued
runs, and continues where it stopped: its cost does not grow with the backlog.

The watchdog finds stalls (R-HA11): whenever a startable task exists, something starts within 2 s. Every scheduler looks, always.
The next round starts from the best open lane of a limit class that has room, or parks that lane. So this lane does not stay as it
is for long. If the same version of the same row is there after 2 s, and the limit class had room at every look, nothing of the
limit class has started in between, whatever the reason. The watchdog tells that with its evidence, and repairs it by a full round
that remembers nothing. A look costs some index probes for each limit class that has open lanes, and does not grow with the
backlog."""

from __future__ import annotations

import time
from collections.abc import Callable

from evenflow.core.limits import LIMIT_CLASSES_WATCHED, STALL_S
from evenflow.core.meter import Meter
from evenflow.explaining import audit
from evenflow.scheduler import observations as seen
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import inbox, runs, selection
from evenflow.telemetry.observing import observe

QUEUES_PER_SWEEP = 500  # about 6 ms; with 100,000 runs at their limits each is seen every 200 s
DAGS_PER_SWEEP = 500  # about 8 ms; of 10,000 that have queued runs each is seen every 20 s
START = (0, 2**31 - 1)  # before the first queue: open lanes and those of paused DAGs are in none


class Sweep:
    """Where it stopped is kept from one look to the next. Any number of schedulers may sweep."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._after = START
        self._dag_before = ""

    def perform(self, conn: Conn) -> None:
        """Looks at the next queues and DAGs. The looks take no lock: they would find nothing in any committed state."""
        looked = self._look_at_queues(conn)
        if not any(queue.lost for queue in looked) or self._open(conn):
            self._after = next(
                ((q.limit_id, q.base_id) for q in looked if q.last), START
            )  # else a round is under way: again from here
        dags = self._look_at_dags(conn)
        if not any(dag.forgotten for dag in dags) or self._wake(conn):
            self._dag_before = next((dag.dag_id for dag in dags if dag.last), "")

    def _look_at_queues(self, conn: Conn) -> list[audit.LostWakeup]:
        return audit.find_lost_wakeups(conn, after=self._after, most=QUEUES_PER_SWEEP).all()

    def _look_at_dags(self, conn: Conn) -> list[audit.WaitingDag]:
        return audit.find_forgotten_runs(conn, after=self._dag_before, most=DAGS_PER_SWEEP).all()

    def _open(self, conn: Conn) -> bool:
        """Lanes. Under the executor's lock, so that no round decides meanwhile. Whether it was free."""
        with conn.transaction():
            if not inbox.try_executor(conn).all()[0][0]:
                return False
            now_s = inbox.begin_turn(conn).all()[0].now_s
            lost = [queue for queue in self._look_at_queues(conn) if queue.lost]
            if lost:
                selection.insert_wakes(conn, {queue.limit_id: 0 for queue in lost}, {}, now_s)
                inbox.notify(conn, INBOX)
        for queue in lost:
            observe(seen.lanes_woken(queue.limit_id, queue.base_id), self._meter)
        return True

    def _wake(self, conn: Conn) -> bool:
        """DAGs that have queued runs, likewise."""
        with conn.transaction():
            if not inbox.try_executor(conn).all()[0][0]:
                return False
            forgotten = [dag.dag_id for dag in self._look_at_dags(conn) if dag.forgotten]
            if forgotten:
                runs.wake(conn, forgotten)
                inbox.notify(conn, INBOX)
        for dag_id in forgotten:
            observe(seen.runs_woken(dag_id), self._meter)
        return True


class Watchdog:
    """Remembers since when it has seen each head. ``clock`` is monotonic."""

    def __init__(self, meter: Meter, clock: Callable[[], float] = time.monotonic) -> None:
        self._meter, self._clock = meter, clock
        self._seen: dict[tuple[int, int, str], float] = {}

    def look(self, conn: Conn) -> None:
        """Repairs what has stalled."""
        heads = audit.find_startable_heads(conn, limit_classes=LIMIT_CLASSES_WATCHED)
        now = self._clock()
        self._seen = {_identity(head): self._seen.get(_identity(head), now) for head in heads}
        stalled = [head for head in heads if now - self._seen[_identity(head)] >= STALL_S]
        if not stalled:
            return
        for head in stalled:
            stalled_s = round(now - self._seen.pop(_identity(head)), 1)
            room = (head.pool, head.pool_free, head.executor_free)
            observe(seen.lane_stalled(stalled_s, head.ready, head.dag_id, head.run_id, *room), self._meter)
        advance(conn, Catalog())


def _identity(head: audit.StartableHead) -> tuple[int, int, str]:
    return head.class_id, head.lane_id, head.version
