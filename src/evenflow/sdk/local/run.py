"""``dag.test()``: a run in one process, without a database, with the scheduler's decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from evenflow.core.model import DagSpec
from evenflow.errors import BadArgument
from evenflow.sdk.dag import DAG
from evenflow.sdk.local.answers import TestAnswers
from evenflow.sdk.local.engine import Engine, Pace
from evenflow.sdk.local.outcome import RunOutcome
from evenflow.sdk.local.tries import TestTries, run_for_real
from evenflow.sdk.param_schema import checked_params
from evenflow.sdk.trying.runner import TryContext


def run_dag(
    dag: DAG,
    *,
    params: Mapping[str, Any],
    run_id: str | None,
    logical_date: datetime | None,
    print_logs: bool,
    wait_for_retries: bool,
    answers: Mapping[str, str | Mapping[str, Any] | None],
) -> RunOutcome:
    """See :meth:`DAG.test`."""
    spec = dag.to_spec()
    base = context_of_run(spec, datetime.now(UTC), params, run_id, logical_date)
    tries = TestTries(dag, base, run_for_real, print_logs=print_logs, calls_back=True)
    engine = Engine(spec, base.run_after, tries, Pace(wait_for_retries=wait_for_retries, trigger_of=TestAnswers(answers)))
    state = engine.run()
    counts = Counter(end.state for end in engine.ended)
    tries.say(f"DAG {dag.dag_id!r}: {state}; " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    return RunOutcome(dag=dag, run_id=base.run_id, state=state, tasks=engine.ended, xcoms=tries.xcoms)


def context_of_run(
    spec: DagSpec, now: datetime, params: Mapping[str, Any], run_id: str | None, logical_date: datetime | None
) -> TryContext:
    """Returns what all tries of a manual run know of it. Raises :class:`ParamError` for params that do not fit."""
    if logical_date is not None and logical_date.tzinfo is None:
        raise BadArgument(f"logical_date must have a time zone, e.g. datetime(2026, 1, 1, tzinfo=UTC); {logical_date!r} has none.")
    return TryContext(
        dag_id=spec.dag_id,
        run_id=run_id or f"test__{now.isoformat(timespec='seconds')}",
        task_id="",
        run_after=now,
        params=checked_params(spec.params, params),
        logical_date=logical_date,
        data_interval_start=logical_date,
        data_interval_end=logical_date,
    )
