"""The outcome of a run of a :class:`DagRunner`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from evenflow.core.states import TaskState
from evenflow.errors import BadArgument
from evenflow.sdk.local.callbacks import Called
from evenflow.sdk.local.engine import Moment
from evenflow.sdk.local.outcome import RunOutcome, TaskOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(RunOutcome):
    """``order`` has the start and the end of every try, in the time of the run; nothing has really waited.

    ``callbacks`` are the functions that would have been called, and ``elapsed`` is how long the run would have taken.
    """

    order: list[Moment] = field(repr=False)
    callbacks: list[Called] = field(repr=False)
    elapsed: timedelta

    def tries(self, task_id: str, map_index: int | None = None) -> int:
        """Returns the number of tries; for a mapped task that of all instances, unless ``map_index`` names one."""
        return sum(end.tries for end in self._ends(task_id, map_index))

    def reason(self, task_id: str, map_index: int | None = None) -> str | None:
        """Returns the reason of its end, if there is one; for a mapped task the first reason."""
        return next((end.reason for end in self._ends(task_id, map_index) if end.reason is not None), None)

    def started_at(self, task_id: str, map_index: int | None = None) -> datetime | None:
        """Returns when its first try started; None when it has not run."""
        return min((moment.at for moment in self._moments(task_id, map_index) if moment.state is TaskState.RUNNING), default=None)

    def ended_at(self, task_id: str, map_index: int | None = None) -> datetime:
        """Returns when it ended for good, whether it had run or not."""
        return max(moment.at for moment in self._moments(task_id, map_index))

    def _ends(self, task_id: str, map_index: int | None) -> list[TaskOutcome]:
        self.dag.get_task(task_id)
        ends = [end for end in self.tasks if end.task_id == task_id and map_index in (None, end.map_index)]
        if not ends:
            raise BadArgument(f"Task {task_id!r} has no instance {map_index} in the run {self.run_id!r}.")
        return ends

    def _moments(self, task_id: str, map_index: int | None) -> list[Moment]:
        self._ends(task_id, map_index)
        return [moment for moment in self.order if moment.task_id == task_id and map_index in (None, moment.map_index)]
