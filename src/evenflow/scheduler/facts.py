"""What one transaction decides by: its connection, what it remembers, when it began, the runs that are its own. It decides into
:mod:`evenflow.scheduler.ledgers`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evenflow.core.graph import Graph
from evenflow.core.operations import CANCELLED, cancel_reason
from evenflow.core.selection import LimitClass
from evenflow.core.service_states import ALL_OPEN, Closures
from evenflow.scheduler.catalog import Catalog, Version
from evenflow.scheduler.scope import Scope
from evenflow.store.rows import Conn


@dataclass(slots=True)
class Run:
    """What deciding about a run's tasks needs of it."""

    run_key: int
    dag_id: str
    version: Version
    priority: int
    run_after_us: int
    is_paused: bool = False
    cancelled: bool = False
    cancelled_by: str | None = None  # once that is written
    new: bool = False  # created in this transaction
    clears: int = 0  # how often operators touched it
    interrupted: bool = False  # some of it is as a cancel left it
    ready_at_s: float = 0.0  # when the last thing was said that makes its tasks ready here, seconds since 1970

    @property
    def graph(self) -> Graph:
        return self.version.graph

    @property
    def ends_in_parts(self) -> bool:
        """Whether a cancel ends what is left of it, so that nothing else decides about that. Where there are teardowns, they do."""
        return self.cancelled_by is not None and not self.graph.has_teardowns

    @property
    def why_skipped(self) -> str | None:
        """Why trigger rules skip something of it, if a cancel has to do with that. None: they alone say so."""
        if self.cancelled:
            return f"{cancel_reason(self.cancelled_by or 'fail_fast')}."
        return f"{CANCELLED}, and something that it waits for did not run." if self.interrupted else None

    def ends(self, task_index: int) -> bool:
        """Whether a cancel ends its instances, now or in a later part, so that none of them goes on."""
        return self.cancelled_by is not None and not self.graph.teardown[task_index]


@dataclass(slots=True, frozen=True)
class Facts:
    """``runs`` grows: it has those that the transaction has locked or created, by key."""

    conn: Conn
    catalog: Catalog
    now_s: float  # when the transaction began, seconds since 1970
    lanes: bool  # whether any are stored
    scope: Scope = field(default_factory=Scope)
    closures: Closures = ALL_OPEN
    runs: dict[int, Run] = field(default_factory=dict)

    def closes(self, limit_class: LimitClass) -> bool:
        """Whether nothing starts there for the first time."""
        return self.closures.close(limit_class.pool_limit, limit_class.executor_limit, limit_class.queue)
