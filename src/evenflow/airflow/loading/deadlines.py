"""Deadlines of Airflow DAGs, which are Evenflow's own."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from airflow.sdk.definitions.deadline import (
    AverageRuntimeDeadline,
    DagRunLogicalDateDeadline,
    DagRunQueuedAtDeadline,
    FixedDatetimeDeadline,
)

from evenflow.airflow.loading.refusals import DagRefusals
from evenflow.core.model import DeadlineSpec
from evenflow.sdk.callbacks import DeadlineAlert, DeadlineReference, DeadlineStart
from evenflow.sdk.default_timezone import default_zone

_CURE = "Say DeadlineReference.DAGRUN_QUEUED_AT, DAGRUN_LOGICAL_DATE, FIXED_DATETIME(...) or AVERAGE_RUNTIME(...)."


def deadlines_of(dag: Any, refusals: DagRefusals) -> tuple[DeadlineSpec, ...]:
    """Each calls its one callback."""
    found = []
    for alert in dag.deadline or ():
        start = _start_of(alert.reference, refusals)
        if not isinstance(alert.interval, timedelta):
            refusals.add(f"deadline with an interval of type {type(alert.interval).__name__}", "Say interval=timedelta(...).")
        elif start is not None:
            found.append(replace(DeadlineAlert(start, alert.interval, name=alert.name).to_spec(), callbacks=1))
    return tuple(found)


def _start_of(reference: Any, refusals: DagRefusals) -> DeadlineStart | None:
    """Compares the exact class, because a derived one may mean anything."""
    kind = type(reference)
    if kind is DagRunQueuedAtDeadline:
        return DeadlineReference.DAGRUN_QUEUED_AT
    if kind is DagRunLogicalDateDeadline:
        return DeadlineReference.DAGRUN_LOGICAL_DATE
    if kind is FixedDatetimeDeadline:
        moment = reference._datetime
        return DeadlineReference.FIXED_DATETIME(moment if moment.tzinfo else moment.replace(tzinfo=default_zone()))
    if kind is AverageRuntimeDeadline:
        return DeadlineReference.AVERAGE_RUNTIME(reference.max_runs, reference.min_runs)
    refusals.add(f"deadline by {kind.__name__}", _CURE)
    return None
