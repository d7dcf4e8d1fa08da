"""Answers a running try that waits: the time that it has, asset events, the states of other DAGs' runs. Also makes the runs that it
triggers.

Every try may see the states of all runs, and trigger every DAG: the DAGs of one Evenflow have no secrets in names and states, and
the history of a run says who triggered it and with what. A try cannot see results of other DAGs.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

import msgspec

from evenflow.api import limits
from evenflow.api.execution.endpoint import Call, try_over
from evenflow.api.judge import Judge
from evenflow.api.refusals import Refused, too_large
from evenflow.api.run_names import check_dag, check_run_id
from evenflow.api.sealing import fits
from evenflow.api.versions import Versions
from evenflow.contracts.rest.record import checked_instant
from evenflow.core.limits import FIRST_YEAR, LAST_YEAR, MAX_NAME_CHARS
from evenflow.core.model import AssetSpec, DagSpec
from evenflow.core.timetable import manual_interval
from evenflow.store.db.connect import AsyncConn, AsyncPool, Row
from evenflow.store.serving import assets, events, other_runs, views
from evenflow.wire.questions import (
    AskInletAssets,
    AskInletEvents,
    AskStates,
    AskTrigger,
    AssetEventMessage,
    AssetEvents,
    InletAssets,
    OtherRunState,
    States,
    Triggered,
    Waited,
)


class WaitingRoutes:
    def __init__(self, pool: AsyncPool, versions: Versions, judge: Judge) -> None:
        self._pool, self._versions, self._judge = pool, versions, judge

    async def waited(self, call: Call) -> Waited:
        async with self._pool.connection() as conn:
            waited_s = await other_runs.read_waited(conn, call.of_try.epoch)
        if waited_s is None:
            raise try_over()
        return Waited(waited_s=waited_s)

    async def triggering_events(self, call: Call) -> AssetEvents:
        async with self._pool.connection() as conn:
            run_key, _, _ = await self._versions.of_subject(conn, call.of_try.run_key)
            return _events(await assets.list_run_events(conn, run_key, limit=limits.INLET_EVENTS))

    async def inlet_events(self, call: Call) -> AssetEvents:
        message: AskInletEvents = call.message
        async with self._pool.connection() as conn:
            run, version = await self._versions.of_run(conn, call.of_try.run_key)
            task = version.tasks[call.of_try.task_index]
            _check_named(message.name, task.inlets, task.task_id, run.dag_id)
            if message.is_alias:
                return _events(await assets.list_alias_events(conn, message.name, limit=limits.INLET_EVENTS))
            return _events(await assets.list_events(conn, asset=message.name, limit=limits.INLET_EVENTS))

    async def inlet_assets(self, call: Call) -> InletAssets:
        message: AskInletAssets = call.message
        async with self._pool.connection() as conn:
            run, version = await self._versions.of_run(conn, call.of_try.run_key)
            task = version.tasks[call.of_try.task_index]
            _check_named(message.name, (*task.inlets, *task.outlets), task.task_id, run.dag_id)
            rows = await assets.list_named(conn, message.name, is_alias=message.is_alias, limit=limits.INLET_EVENTS)
        return InletAssets(assets=[AssetSpec(**row) for row in rows])

    async def states(self, call: Call) -> States:
        message: AskStates = call.message
        if len(message.logical_dates) + len(message.run_ids) > limits.STATES_RUNS:
            raise too_large("The list of logical dates and runs", limits.STATES_RUNS)
        async with self._pool.connection() as conn:
            current = await views.read_spec(conn, message.dag_id)
            if current is None:
                return States()
            wanted, missing = _wanted(DagSpec.from_json(current.spec), message)
            dates = [_instant(text) for text in message.logical_dates]
            runs = await other_runs.list_runs(conn, message.dag_id, dates, message.run_ids)
            counts = await other_runs.count_states(conn, [run["run_key"] for run in runs], wanted) if wanted and runs else []
        tasks: dict[int, dict[str, dict[str, int]]] = defaultdict(lambda: {task_id: {} for task_id in wanted})
        for run_key, task_id, state, instances in counts:
            tasks[run_key][task_id][state] = instances
        return States(
            runs=[
                OtherRunState(
                    run_id=run["run_id"],
                    logical_date=None if run["logical_date"] is None else run["logical_date"].isoformat(),
                    state=run["state"],
                    counts=tasks[run["run_key"]],
                )
                for run in runs
            ],
            missing=missing,
        )

    async def trigger(self, call: Call) -> Triggered:
        message: AskTrigger = call.message
        check_dag(message.dag_id)
        if message.run_id is not None:
            check_run_id(message.run_id)
        logical = None if message.logical_date is None else _instant(message.logical_date)
        async with self._pool.connection() as conn:
            if await other_runs.find_asker(conn, call.of_try.epoch) is None:
                raise try_over()
            current = await _triggerable(conn, message)
        spec = DagSpec.from_json(current.spec)
        params = await self._judge.params(spec.params, message.conf)  # this may take seconds, so no connection is held meanwhile
        async with self._pool.connection() as conn:
            asker = await other_runs.find_asker(conn, call.of_try.epoch)
            if asker is None:
                raise try_over()
            run_id = _own_run_id(asker) if message.run_id is None else message.run_id
            await other_runs.trigger_run(
                conn,
                dag_id=message.dag_id,
                run_id=run_id,
                version_key=current.version_key,
                params=msgspec.json.encode(params).decode(),
                logical_date=logical,
                interval=None if logical is None else manual_interval(spec, logical),
                asker=asker,
            )
            run = await other_runs.find_run(conn, dag_id=message.dag_id, run_id=run_id, logical_date=logical, asker=asker)
            if run is not None and not run.is_own and message.reset:
                _check_reset(spec, asker, run)
                operation = msgspec.json.encode({"event": "clear", "actor": asker.actor}).decode()
                async with events.recorded(conn, asker.task[:MAX_NAME_CHARS], "run.reset", f"{message.dag_id}/{run.run_id}"):
                    await other_runs.reset_run(conn, run.run_key, operation=operation, asker=asker)
                run = run._replace(state="queued", is_own=True)
        if run is None:
            raise Refused(409, "run_gone", f"The run {run_id!r} of DAG {message.dag_id!r} was deleted just now.")
        return Triggered(run_id=run.run_id, state=run.state, is_own=run.is_own)


def _check_reset(spec: DagSpec, asker: other_runs.Asker, run: other_runs.FoundRun) -> None:
    """Raises :class:`Refused` unless the task made the run itself, or the run's DAG lets the task's DAG clear its runs."""
    if run.is_made or any(fits(pattern, asker.dag_id, asker.bundle) for pattern in spec.reset_by):
        return
    raise Refused(
        403,
        "forbidden",
        f"The run {run.run_id!r} of DAG {spec.dag_id!r} was not triggered by this task, so the task may not reset it. To let it, "
        f"write into that DAG: reset_by=[{asker.dag_id!r}]",
    )


async def _triggerable(conn: AsyncConn, message: AskTrigger) -> views.CurrentVersion:
    """Returns the current version of the DAG. Raises :class:`Refused` if it cannot be triggered."""
    current = await views.read_spec(conn, message.dag_id)
    if current is None or not current.is_active:
        raise Refused(404, "not_found", f"There is no DAG {message.dag_id!r} to trigger. To see all, type: evenflow dags list")
    if current.is_paused and message.fail_when_paused:
        raise Refused(409, "dag_paused", f"The DAG {message.dag_id!r} is paused. Type: evenflow dags unpause {message.dag_id}")
    return current


def _own_run_id(asker: other_runs.Asker) -> str:
    """Returns the same name for every try of a task instance until a person clears it, so that no try triggers a second run."""
    digest = hashlib.sha256(asker.actor.encode()).hexdigest()[:16]
    return f"triggered__{asker.dag_id[: limits.TRIGGER_NAME]}__{digest}"


def _wanted(spec: DagSpec, message: AskStates) -> tuple[list[str], list[str]]:
    """Returns the task ids that the message means, and those that the DAG does not have."""
    known = {task.task_id for task in spec.tasks}
    missing = [task_id for task_id in message.task_ids if task_id not in known]
    if message.group_id is None:
        return message.task_ids, missing
    inside = {index for index, group in enumerate(spec.groups) if group.group_id == message.group_id}
    for index, group in enumerate(spec.groups):  # a group comes after its parent
        if group.parent in inside:
            inside.add(index)
    if not inside:
        missing.append(message.group_id)
    return [task.task_id for task in spec.tasks if task.group in inside], missing


def _check_named(name: str, names: Sequence[str], task_id: str, dag_id: str) -> None:
    if name not in names:
        raise Refused(403, "forbidden", f"{name!r} is no inlet of task {task_id!r} of DAG {dag_id!r}. Add it to inlets=.")


def _events(rows: list[Row]) -> AssetEvents:
    return AssetEvents(
        events=[
            AssetEventMessage(
                asset=row["asset"],
                uri=row["uri"],
                at=row["at"].isoformat(),
                extra=row["extra"],
                partition=row["partition"],
                dag_id=row["dag_id"],
                run_id=row["run_id"],
                task_id=row["task_id"],
                map_index=row["map_index"],
            )
            for row in reversed(rows)
        ]
    )


def _instant(text: str) -> datetime:
    try:
        return checked_instant(datetime.fromisoformat(text))
    except ValueError:
        wanted = f"A logical date is ISO 8601 with an offset, of the years {FIRST_YEAR} to {LAST_YEAR}"
        raise Refused(422, "bad_value", f"{wanted}, not {text!r:.100}.") from None
