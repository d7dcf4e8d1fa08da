"""The first and last date of a DAG, when its tasks have dates, too."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple


class DagDates(NamedTuple):
    """``catchup`` makes runs for dates of the past."""

    start: datetime | None
    end: datetime | None
    catchup: bool

    def starts_later(self, start: datetime | None) -> bool:
        """Returns whether a task with this start must not be in every run of the DAG."""
        if start is None or (self.start is not None and start <= self.start):
            return False
        return self.catchup or start > datetime.now(UTC)

    def ends_earlier(self, end: datetime | None) -> bool:
        return end is not None and (self.end is None or end < self.end)


def dates_of(dag: Any) -> DagDates:
    """Returns Airflow's own rule: the earliest start that anything has, and the latest end if all tasks have one."""
    tasks = list(dag.task_dict.values())
    starts = [date for each in (dag, *tasks) if (date := each.start_date) is not None]
    ends = [date for task in tasks if (date := task.end_date) is not None]
    of_all = [*ends, *([dag.end_date] if dag.end_date is not None else [])] if len(ends) == len(tasks) else []
    return DagDates(min(starts, default=None), max(of_all, default=dag.end_date), bool(dag.catchup))
