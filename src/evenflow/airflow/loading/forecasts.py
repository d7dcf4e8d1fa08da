"""The next runs of DAGs whose timetable is code: an author's own, or one of Airflow's that Evenflow has no schedule for.

The timetables of Airflow's core do the computing; their arithmetic is not part of the SDK.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pendulum
from airflow.sdk import AssetOrTimeSchedule
from airflow.serialization.encoders import coerce_to_core_timetable
from airflow.timetables.base import DagRunInfo, TimeRestriction

from evenflow.airflow.loading.dates import dates_of
from evenflow.core.forecast import Forecast, TimetableRun, check_follows
from evenflow.core.limits import FORECAST_PASSED, FORECAST_RUNS
from evenflow.errors import BadSchedule


def forecast_of(dag: Any, last: tuple[datetime, datetime] | None, now: datetime) -> Forecast:
    """Returns the runs after the data interval that was scheduled ``last``. What the timetable raises is the file's error."""
    try:
        return _forecast(dag, last, now)
    except BadSchedule as error:
        raise BadSchedule(f"DAG {dag.dag_id!r}: {error}") from None
    except Exception as error:
        error.add_note(f"The timetable of DAG {dag.dag_id!r} has raised {type(error).__name__}: {error}")
        raise


def by_time(dag: Any) -> Any:
    """Returns the DAG's timetable without the assets that may be beside it."""
    return dag.timetable.timetable if isinstance(dag.timetable, AssetOrTimeSchedule) else dag.timetable


def core_timetable(dag: Any) -> Any:
    """Returns what computes its times."""
    return coerce_to_core_timetable(by_time(dag))


def _forecast(dag: Any, last: tuple[datetime, datetime] | None, now: datetime) -> Forecast:
    """Without ``catchup`` only the newest of the runs that have passed is needed."""
    by_time(dag).validate()
    timetable = core_timetable(dag)
    dates = dates_of(dag)
    within = TimeRestriction(_instance(dates.start), _instance(dates.end), dates.catchup)
    info = None if last is None else DagRunInfo.interval(_instance(last[0]), _instance(last[1]))
    runs: list[TimetableRun] = []
    passed = 0
    while len(runs) < FORECAST_RUNS:
        info = timetable.next_dagrun_info_v2(last_dagrun_info=info, restriction=within)
        if info is None:
            return Forecast(tuple(runs), is_whole=True)
        run = _run_of(info)
        if runs:
            check_follows(runs[-1], run)
        if not dag.catchup and run.run_after <= now:
            runs.clear()
            passed += 1
            if passed > FORECAST_PASSED:
                raise BadSchedule(
                    f"More than {FORECAST_PASSED:,} dates of the timetable have passed since the last run, the newest of them "
                    f"{run.logical_date.isoformat()}. Type: evenflow dags skip {dag.dag_id}"
                )
        runs.append(run)
    return Forecast(tuple(runs))


def _run_of(info: DagRunInfo) -> TimetableRun:
    if info.data_interval is None:
        raise BadSchedule("The timetable made a run of a partition, and there are no runs of parts of assets.")
    start, end = (in_utc(each) for each in info.data_interval)
    return TimetableRun(start, start, end, in_utc(info.run_after))


def in_utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise BadSchedule(f"The timetable made the date {instant.isoformat()} without a time zone. Type for example: pendulum.UTC")
    return datetime.fromisoformat(instant.astimezone(UTC).isoformat())


def _instance(instant: datetime | None) -> Any:
    return None if instant is None else pendulum.instance(instant)
