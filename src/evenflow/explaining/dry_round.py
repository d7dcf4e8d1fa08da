"""A round that is decided on the database's state at one instant, and not written: it asks the same questions as the scheduler's
round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from evenflow.core.asking import AskedTogether
from evenflow.core.selection.lanes import Lane, LimitClass, Snapshot
from evenflow.core.selection.loading import Loading
from evenflow.core.selection.rules import Decision
from evenflow.store.db.columns import numbers
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.instant import read
from evenflow.store.scheduling.lanes import Read, StoredLane, statement_of
from evenflow.store.scheduling.selection import as_closures


async def read_limit_classes(conn: AsyncConn, class_ids: Iterable[int]) -> dict[int, LimitClass]:
    rows = await read(conn, "selection/read_limit_classes", {"limit_classes": numbers(class_ids)})
    return {row["class_id"]: LimitClass(**row) for row in rows}


@dataclass(slots=True)
class DryRound:
    """A round on the stored state; released slots that are not folded yet count as room. ``snapshot`` and ``lanes``, by id, are as
    the decision left them; ``stored`` has the stored rows.
    """

    now_s: float
    stored: dict[int, StoredLane]
    lanes: dict[int, Lane]
    snapshot: Snapshot
    decision: Decision

    @classmethod
    async def decided(cls, conn: AsyncConn, more: Mapping[int, int] = MappingProxyType({})) -> DryRound:
        """Decides the round within one instant, with ``more`` slots in these limits than there are."""
        (clock,) = await read(conn, "plan/read_clock")
        released = {row["limit_id"]: row["released"] for row in await read(conn, "plan/read_wakes")}
        for limit, slots in more.items():
            released[limit] = released.get(limit, 0) + slots
        closures = as_closures((row["limit_id"], row["queue"]) for row in await read(conn, "states/read_closures"))
        known, loading = Read(clock["now_s"]), Loading(released, closures, clock["now_s"])
        selecting = loading.select()
        while True:
            try:
                asked = next(selecting)
            except StopIteration as end:
                return cls(known.now_s, known.rows, known.lanes, loading.snapshot, end.value)
            await _answer(conn, known, asked)

    def keep(self, run_keys: Collection[int]) -> None:
        """Keeps only the lanes of these runs."""
        self.stored = {key: row for key, row in self.stored.items() if row.run_key in run_keys}
        self.lanes = {key: lane for key, lane in self.lanes.items() if key in self.stored}
        self.decision.grants = [grant for grant in self.decision.grants if grant[0].key in self.stored]


async def _answer(conn: AsyncConn, known: Read, asked: AskedTogether) -> None:
    for question in asked:
        name, params, kind = statement_of(question)
        known.answer(question, [kind(**row) for row in await read(conn, name, params)])
