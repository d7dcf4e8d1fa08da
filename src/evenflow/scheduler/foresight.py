"""What a turn asks with its first statements, before it knows whether it needs that: so it never waits for it later (ADR 0035).

The limits are those of pools, executors and tasks that turns looked at lately, and max_active_tasks of the runs that this turn
locks. A scheduler that led the last turn will probably lead this one, and needs the room of these limits, and runs to begin, if
that turn left some. A scheduler that did not lead needs to know whether tasks wait for these limits.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from evenflow.core.limits import DAGS_PER_NEW_RUN, MOST_USUAL_LIMITS, NEW_RUNS_OF_DAG
from evenflow.store.db.rows import Conn, Rows
from evenflow.store.scheduling import runs, selection
from evenflow.store.scheduling.lanes import LimitRoom

if TYPE_CHECKING:
    from evenflow.scheduler.catalog import Catalog, Version


class Foresight:
    """``room`` by limit, as it was before this transaction changed anything. ``queued``: runs to begin, if they are asked for."""

    def __init__(self) -> None:
        self.room: dict[int, LimitRoom] = {}
        self.queued: Rows[runs.QueuedRun] | None = None
        self._room: Rows[LimitRoom] | None = None
        self._waiting: Rows[tuple[int]] | None = None
        self._waited_for: set[int] = set()
        self._of_runs: dict[int, int] = {}

    def ask(self, conn: Conn, catalog: Catalog) -> None:
        """Follows ``inbox.lock_runs``. To be asked again behind what may have changed limits meanwhile."""
        self._room = selection.foresee_room(conn, catalog.usual_limits)
        self._waiting = None if catalog.leads else selection.find_waiting(conn, catalog.usual_limits, of_locked=True)

    def ask_for_queued(self, conn: Conn, catalog: Catalog, most: int) -> None:
        """For ``most`` runs to begin, and for ids of their limits."""
        catalog.run_limit_ids.ask(conn)
        since, share = catalog.since.run_wakes, min(most, NEW_RUNS_OF_DAG)
        self.queued = runs.take_queued(conn, since, dags=DAGS_PER_NEW_RUN * most, limit=most, share=share)

    def arrive(self) -> None:
        """Waits for the answers that are not here yet."""
        if self._room:
            self.room = {room.limit_id: room for room in self._room.all()}
            self._of_runs = {room.run_key: room.limit_id for room in self.room.values() if room.run_key}
        if self._waiting:
            self._waited_for = {limit for (limit,) in self._waiting.all()}
        self._room = None

    def teach(self, catalog: Catalog, run_key: int, version: Version) -> None:
        """Teaches the catalog the limits of a locked run, as far as this turn has asked for them."""
        if not version.limits_in_runs:
            catalog.add_run_limits(run_key, {"": self._of_runs[run_key]} if run_key in self._of_runs else {})

    def waited_for(self, conn: Conn, limits: AbstractSet[int]) -> set[int]:
        """Returns which of these limits tasks wait for. Asks now if some of them were not foreseen."""
        if self._waiting is not None and limits <= self.room.keys():
            return self._waited_for
        return {limit for (limit,) in selection.find_waiting(conn, limits).all()}


def foresee(conn: Conn, catalog: Catalog) -> Foresight:
    """What is under way."""
    foresight = Foresight()
    foresight.ask(conn, catalog)
    if catalog.leads and catalog.runs_left:
        foresight.ask_for_queued(conn, catalog, catalog.runs_left)
    catalog.runs_left = 0
    return foresight


def remember(catalog: Catalog, limits: AbstractSet[int]) -> None:
    """The next turns are to foresee these, too, none of which may be of a run. What is too much is forgotten, the oldest first."""
    for usual in (catalog.usual_limits | limits, frozenset(limits), frozenset[int]()):
        if len(usual) <= MOST_USUAL_LIMITS:
            catalog.usual_limits = usual
            return
