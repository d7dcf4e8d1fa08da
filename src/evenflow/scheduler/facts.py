"""What one transaction knows: its connection, its memory, when it began, and its own runs. Its decisions go into
:mod:`evenflow.scheduler.ledgers`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evenflow.core.flow.state import RunFacts
from evenflow.core.selection.lanes import LimitClass
from evenflow.core.service_states import ALL_OPEN, Closures
from evenflow.scheduler.catalog import Catalog, Version
from evenflow.scheduler.foresight import Foresight
from evenflow.scheduler.scope import Scope
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling.inbox import LockedRun
from evenflow.store.scheduling.runs import QueuedRun


@dataclass(slots=True, kw_only=True)
class Run(RunFacts):
    """A run, and how it competes with others."""

    dag_id: str
    version: Version
    priority: int = 0
    run_after_us: int = 0
    is_paused: bool = False
    new: bool = False  # created in this transaction
    unfinished: int | None = None  # instances of it when the transaction began, if that is known
    ready_at_s: float = 0.0  # when the last thing was said that makes its tasks ready here, seconds since 1970

    @classmethod
    def of(cls, row: LockedRun | QueuedRun, version: Version) -> Run:
        """What both sorts of row say of it."""
        return cls(
            run_key=row.run_key,
            graph=version.graph,
            clears=row.clears,
            interrupted=row.interrupted,
            disturbed=row.clears > 0,
            dag_id=row.dag_id,
            version=version,
            priority=row.priority,
            run_after_us=row.run_after_us,
        )


@dataclass(slots=True, frozen=True)
class Facts:
    """``runs`` grows: it contains the runs that the transaction has locked or created, by key."""

    conn: Conn
    catalog: Catalog
    now_s: float  # when the transaction began, seconds since 1970
    lanes: bool  # whether any are stored
    scope: Scope = field(default_factory=Scope)
    closures: Closures = ALL_OPEN
    foresight: Foresight = field(default_factory=Foresight)
    runs: dict[int, Run] = field(default_factory=dict)

    def closes(self, limit_class: LimitClass) -> bool:
        """Whether nothing starts there for the first time."""
        return self.closures.close(limit_class.pool_limit, limit_class.executor_limit, limit_class.queue)
