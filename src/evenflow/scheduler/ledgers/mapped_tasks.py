"""Mapped tasks that have become instances, and the state of those instances that have no row."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenflow.core.model import UNMAPPED
from evenflow.core.states import TaskState
from evenflow.scheduler.ledgers.moves import Moves, RunMoves
from evenflow.store import tasks
from evenflow.store.rows import Conn


@dataclass(slots=True)
class Expansion:
    """A mapped task that has become ``length`` instances. ``rest`` is the state of those that have no row yet."""

    run_key: int
    task_index: int
    length: int
    rest: TaskState
    lane: bool = False  # in this transaction all its instances became ready, to be started in order
    tries_before: int = 0  # tries begun before it was cleared and expanded anew


@dataclass(slots=True, frozen=True)
class Rest:
    """Instances of a mapped task that have no row and have just ended, all in one ``state``."""

    run_key: int
    task_index: int
    instances: int
    state: TaskState


@dataclass(slots=True)
class MappedTasks:
    moves: Moves
    run_moves: RunMoves
    known: dict[tuple[int, int], Expansion] = field(default_factory=dict)  # run_key, task_index
    changed: list[Expansion] = field(default_factory=list)  # made or changed here
    rests: list[Rest] = field(default_factory=list)  # not yet counted downstream

    def expand(self, run_key: int, task_index: int, length: int, *, ready: bool) -> None:
        """A task becomes ``length`` instances, all of them ``ready`` or none yet; the row that stood for it goes."""
        rest = TaskState.SCHEDULED if ready else TaskState.NONE
        operator = self.moves.items.get((run_key, task_index, UNMAPPED))
        tries_before = operator.try_number if operator else 0
        expansion = self.known[run_key, task_index] = Expansion(run_key, task_index, length, rest, ready, tries_before)
        self.changed.append(expansion)
        self.moves.gone.add((run_key, task_index, UNMAPPED))
        self.run_moves.count(run_key, 1 - length)

    def settle_rest(self, expansion: Expansion, state: TaskState, *, lane: bool = False) -> None:
        """All instances of a mapped task that have no row become ready or end, in ``state``."""
        expansion.rest, expansion.lane = state, lane
        if not any(expansion is changed for changed in self.changed):
            self.changed.append(expansion)

    def write(self, conn: Conn) -> None:
        if self.changed:
            tasks.insert_mapped(conn, [(x.run_key, x.task_index, x.length, x.rest, x.tries_before) for x in self.changed])
