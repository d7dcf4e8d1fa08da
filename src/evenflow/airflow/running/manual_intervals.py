"""Data intervals of runs that people and tasks make for a date, of DAGs whose timetable is code: only the process of a try can ask
it, because the services run no code of authors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pendulum

from evenflow.airflow.loading.forecasts import by_time, core_timetable, in_utc
from evenflow.airflow.loading.refusals import DagRefusals
from evenflow.airflow.loading.schedules import schedule_of
from evenflow.errors import BadSchedule
from evenflow.sdk.trying.runner import TryContext

_OF_A_SCHEDULE = ("scheduled", "backfill", "asset_triggered")  # other runs are made by people and tasks


def with_interval(dag: Any, context: TryContext) -> TryContext:
    """Returns the context of a try with the interval that the timetable infers for its run; a timetable that infers none leaves the
    date alone. Raises :class:`BadSchedule` when the timetable raises.
    """
    date = context.logical_date
    if (
        date is None
        or context.run_type in _OF_A_SCHEDULE
        or (context.data_interval_start, context.data_interval_end) != (date, date)
    ):
        return context
    if schedule_of(by_time(dag), DagRefusals(dag.dag_id)).kind != "code":
        return context
    try:
        start, end = map(in_utc, core_timetable(dag).infer_manual_data_interval(run_after=pendulum.instance(date)))
        if end < start:
            raise BadSchedule(f"its end, {end.isoformat()}, is before its start, {start.isoformat()}")
        return replace(context, data_interval_start=start, data_interval_end=end)
    except NotImplementedError:
        return context
    except Exception as error:
        what = f"The timetable of DAG {dag.dag_id!r} does not say which interval a run of {date.isoformat()} has"
        raise BadSchedule(f"{what}: {type(error).__name__}: {error}") from error
