"""How much of a scheduler's time goes into waiting for locks (R-HA14), by looking at what its transactions do right now.

PostgreSQL does not add up lock waits of a session, and asking it around every statement would cost more than they do. Looks at
regular moments, from a thread and connection on which nothing waits for locks of runs, find each state as often as it lasts.
"""

from __future__ import annotations

from evenflow.core.meter import Meter
from evenflow.core.metrics import SAMPLES
from evenflow.store.db import sessions
from evenflow.store.db.rows import Conn

LOOK_S = 0.25  # about 0.1 ms of the server each; after ten busy minutes a share of 2 % is known to within half a percent


class Contention:
    """``pid`` is that of the session that takes turns, while there is one."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self.pid: int | None = None
        for state in sessions.STATES:
            meter.count(SAMPLES, 0, state)

    def look(self, conn: Conn) -> None:
        if self.pid is not None and (state := sessions.read_state(conn, self.pid)) is not None:
            self._meter.count(SAMPLES, 1, state)
