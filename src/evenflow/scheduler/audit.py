"""The sweep for lost wake-ups: a safety net under the events that open parked lanes, and the proof that it is not needed.

There should be nothing to find. What it does find is repaired, so that no task waits for ever because of a bug, and counted in a
metric that must stay 0 (``repairs``). It looks at one lane of each queue of parked lanes, at so many queues a second, and goes on
where it stopped: its cost does not grow with the backlog.
"""

from __future__ import annotations

import logging

from evenflow.scheduler.tally import Tally
from evenflow.store import audit, inbox, selection
from evenflow.store.notify import INBOX
from evenflow.store.rows import Conn

QUEUES_PER_SWEEP = 500  # about 6 ms; with 100,000 runs at their limits each is seen every 200 s
START = (0, 2**31 - 1)  # before the first queue: open lanes and those of paused DAGs are none

log = logging.getLogger(__name__)


class Sweep:
    """Where it stopped is kept from one look to the next. Any number of schedulers may sweep."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._after = START

    def perform(self, conn: Conn) -> None:
        """Looks at the next queues. The look itself takes no lock: it would find nothing in any committed state."""
        looked = audit.find_lost_wakeups(conn, after=self._after, most=QUEUES_PER_SWEEP).all()
        if any(queue.lost for queue in looked) and not self._repair(conn):
            return  # a round is under way: again from here
        self._after = next(((q.limit_id, q.base_id) for q in looked if q.last), START)

    def _repair(self, conn: Conn) -> bool:
        """Under the executor's lock, so that no round decides meanwhile. Whether it was free."""
        with conn.transaction():
            if not inbox.try_executor(conn).all()[0][0]:
                return False
            now_s = inbox.begin_turn(conn).all()[0].now_s
            lost = [q for q in audit.find_lost_wakeups(conn, after=self._after, most=QUEUES_PER_SWEEP).all() if q.lost]
            if lost:
                selection.insert_wakes(conn, {queue.limit_id: 0 for queue in lost}, {}, now_s)
                inbox.notify(conn, INBOX)
        for queue in lost:
            log.error("repaired: a wake-up of limit %d was lost for lanes of base %d", queue.limit_id, queue.base_id)
        self._tally.repair(len(lost))
        return True
