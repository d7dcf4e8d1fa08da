"""The sweep for lost wake-ups: a safety net under the events that open lanes and begin runs, and the proof that it is not needed.

There should be nothing to find. What it does find is repaired, so that nothing waits for ever because of a bug, and counted in a
metric that must stay 0 (``repairs``). It looks at one lane of each queue of parked lanes, and at DAGs that have queued runs,
so many of each a second, and goes on where it stopped: its cost does not grow with the backlog.
"""

from __future__ import annotations

import logging

from evenflow.scheduler.tally import Tally
from evenflow.store import audit, inbox, runs, selection
from evenflow.store.notify import INBOX
from evenflow.store.rows import Conn

QUEUES_PER_SWEEP = 500  # about 6 ms; with 100,000 runs at their limits each is seen every 200 s
DAGS_PER_SWEEP = 500  # about 8 ms; of 10,000 that have queued runs each is seen every 20 s
START = (0, 2**31 - 1)  # before the first queue: open lanes and those of paused DAGs are none

log = logging.getLogger(__name__)


class Sweep:
    """Where it stopped is kept from one look to the next. Any number of schedulers may sweep."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
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
            log.error("repaired: a wake-up of limit %d was lost for lanes of base %d", queue.limit_id, queue.base_id)
        self._tally.repair(len(lost))
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
            log.error("repaired: a wake-up was lost for queued runs of %s", dag_id)
        self._tally.repair(len(forgotten))
        return True
