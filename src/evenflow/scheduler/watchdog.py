"""The watchdog (R-HA11): whenever a startable task exists, something starts within 2 s. Every scheduler looks, always.

The best open lane of a node that has room is what the next round starts from, or parks. So it does not stay as it is for long: if
the same version of the same row is there after 2 s, and the node had room at every look, nothing of the node has started in
between, whatever the reason. That is told with its evidence, counted in a metric that must stay 0, and repaired by a full round
that remembers nothing. A look costs some index probes for each node that has open lanes, and does not grow with the backlog.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from evenflow.core.limits import NODES_WATCHED, STALL_S
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.tally import Tally
from evenflow.store.audit import StartableHead, find_startable_heads
from evenflow.store.rows import Conn

log = logging.getLogger(__name__)


class Watchdog:
    """Remembers since when it has seen each head. ``clock`` is monotonic."""

    def __init__(self, tally: Tally, clock: Callable[[], float] = time.monotonic) -> None:
        self._tally, self._clock = tally, clock
        self._seen: dict[tuple[int, int, str], float] = {}

    def look(self, conn: Conn) -> None:
        """Repairs what has stalled."""
        heads = find_startable_heads(conn, nodes=NODES_WATCHED)
        now = self._clock()
        self._seen = {_identity(head): self._seen.get(_identity(head), now) for head in heads}
        stalled = [head for head in heads if now - self._seen[_identity(head)] >= STALL_S]
        if not stalled:
            return
        for head in stalled:
            log.warning(
                "stalled for %.1f s: %d ready tasks of %s/%s do not start, with %d slots free in pool %s and %d in the executor",
                now - self._seen.pop(_identity(head)),
                head.ready,
                head.dag_id,
                head.run_id,
                head.pool_free,
                head.pool,
                head.executor_free,
            )
        self._tally.stall(len(stalled))
        advance(conn, Catalog())


def _identity(head: StartableHead) -> tuple[int, int, str]:
    return head.node_id, head.lane_id, head.version
