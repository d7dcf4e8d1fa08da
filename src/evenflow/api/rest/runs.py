"""Runs: asking for one, watching it, ending it. The API changes no state; it leaves word for the schedulers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Annotated
from urllib.parse import quote

import msgspec
from fastapi import Header, Query, Request, Response

from evenflow.api import limits
from evenflow.api.refusals import Refused
from evenflow.api.rest.context import Actor, Connection, InContext, InScope
from evenflow.api.rest.dags import current_version
from evenflow.api.rest.once import Repeatable, answered_once
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.api.run_names import check_dag, check_run_id, stretch_of
from evenflow.contracts.rest import PREFIX
from evenflow.contracts.rest.queries import GridQuery, RunQuery, TaskQuery
from evenflow.contracts.rest.record import Page
from evenflow.contracts.rest.runs import (
    Calendar,
    CancelledRuns,
    CancelRequest,
    Grid,
    RunChange,
    RunDetail,
    RunRequest,
    RunSummary,
    TaskCounts,
)
from evenflow.contracts.rest.tasks import InstanceSummary
from evenflow.core.callbacks import CALLBACK_DAG
from evenflow.core.flow.effects import Effect
from evenflow.core.limits import EFFECT_RUNS, GRID_TOTAL
from evenflow.core.model import DagSpec
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.core.states import RUN_FINISHED, TaskState
from evenflow.core.timetable import manual_interval
from evenflow.core.tracing import TracedRuns, read_traceparent
from evenflow.errors import DagNotFound
from evenflow.explaining import why
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.serving import callbacks, dags, events, operations, traces, views

routes = Routes("Runs")

TraceParent = Annotated[
    str | None, Header(description="The caller's span (W3C Trace Context), which the trace of the run is a part of then.")
]


@routes.post("/dags/{dag_id}/runs", Role.AUTHOR, status_code=201)
@answered_once
async def trigger_run(
    conn: Connection,
    within: InContext,
    actor: Actor,
    dag_id: str,
    request: RunRequest,
    response: Response,
    once: Repeatable,
    traceparent: TraceParent = None,
) -> RunSummary:
    """Asks for a run of the DAG's newest version. The run of a paused DAG waits until it is unpaused."""
    caller = read_traceparent(traceparent)
    check_dag(dag_id)
    current = await current_version(conn, dag_id)
    if not current.is_active:
        raise Refused(409, "dag_retired", f"The DAG {dag_id!r} cannot run: {current.file} does not define it any more.")
    spec = DagSpec.from_json(current.spec)
    params = await within.judge.params(spec.params, request.params)
    run_id = request.run_id or f"manual__{(request.logical_date or datetime.now(UTC)).astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    check_run_id(run_id)
    location = response.headers["Location"] = f"{PREFIX}/dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}"
    async with once.recorded(conn, actor, "run.trigger", f"{dag_id}/{run_id}"):
        run_key = await dags.insert_run(
            conn,
            dag_id=dag_id,
            run_id=run_id,
            version_key=current.version_key,
            params=msgspec.json.encode(params).decode(),
            logical_date=request.logical_date,
            interval=None if request.logical_date is None else manual_interval(spec, request.logical_date),
            priority=request.priority,
            note=request.note,
            traceparent=caller.traceparent if caller is not None else None,
        )
        if run_key is None:
            raise await _exists(conn, dag_id, run_id, request.logical_date)
        return await once.keep(conn, RunSummary.model_validate(await found_run(conn, dag_id, run_id)), location=location)


async def _exists(conn: AsyncConn, dag_id: str, run_id: str, logical_date: datetime | None) -> Refused:
    """What stands in the way of a new run."""
    if logical_date is not None and (other := await dags.find_logical(conn, dag_id, logical_date)) is not None:
        return Refused(
            409,
            "run_exists",
            f"The DAG {dag_id!r} has a run with the logical date {logical_date.isoformat()} already: {other!r}.",
            hint=f"Leave the logical date out, or let that run again: evenflow runs rerun {dag_id} {other}",
        )
    return Refused(409, "run_exists", f"The DAG {dag_id!r} has a run {run_id!r} already.", hint="Choose another run_id.")


@routes.patch("/dags/{dag_id}/runs/{run_id}", Role.AUTHOR)
async def change_run(conn: Connection, actor: Actor, dag_id: str, run_id: str, change: RunChange) -> RunSummary:
    """Writes a run's note."""
    run = await found_run(conn, dag_id, run_id)
    async with events.recorded(conn, actor, "run.note", f"{dag_id}/{run_id}"):
        await dags.set_note(conn, run["run_key"], change.note)
    return RunSummary.model_validate({**run, "note": change.note})


@routes.get("/runs", Role.VIEWER, ScopedBy.ANSWER, shared=True)
async def list_runs(http: Request, conn: Connection, scope: InScope, query: Annotated[RunQuery, Query()]) -> Page[RunSummary]:
    """Runs, the newest first."""
    wanted = {"dag_id": query.dag_id, "state": query.state, "scope": scope}
    part = part_of(http, query, int)
    rows = await views.list_runs(conn, **wanted, limit=part.limit, after=part.after)
    return part.page(Page[RunSummary], rows)


@routes.get("/dags/{dag_id}/grid", Role.VIEWER, shared=True)
async def read_grid(conn: Connection, dag_id: str, query: Annotated[GridQuery, Query()]) -> Grid:
    """The newest runs of a DAG, and how each task of them stands."""
    current = await current_version(conn, dag_id)
    rows = await views.read_grid(conn, dag_id, limit=query.limit + 1, offset=query.offset)
    total = await views.count_grid(conn, dag_id, most=GRID_TOTAL)
    shown = rows[: query.limit]
    versions = await views.list_task_names(conn, {current.version_key, *(row["version_key"] for row in shown)})
    tasks = list(dict.fromkeys([*versions[current.version_key], *chain.from_iterable(versions.values())]))
    place = {task_id: number for number, task_id in enumerate(tasks)}
    places = {version_key: [place[task_id] for task_id in task_ids] for version_key, task_ids in versions.items()}
    runs = [{**row, "states": _by_place(row["states"], places[row["version_key"]])} for row in shown]
    return Grid.model_validate({"tasks": tasks, "runs": runs, "total": total, "more": len(rows) > query.limit})


@routes.get("/dags/{dag_id}/calendar", Role.VIEWER, shared=True)
async def read_calendar(conn: Connection, dag_id: str) -> Calendar:
    """The runs of the last year by day, and how they ended."""
    await current_version(conn, dag_id)
    days = await views.read_calendar(conn, dag_id, runs=limits.CALENDAR_RUNS)
    return Calendar.model_validate({"days": days, "is_cut": sum(day["runs"] for day in days) >= limits.CALENDAR_RUNS})


def _by_place(states: Mapping[str, Sequence[int]], places: Sequence[int]) -> dict[str, list[int]]:
    """``states`` has indexes of tasks in their version, ``places`` where each stands in the grid. Those without a row: none."""
    touched = set(chain.from_iterable(states.values()))
    untouched = [index for index in range(len(places)) if index not in touched]
    waiting = [*states.get(TaskState.NONE, ()), *untouched]
    return {
        state: [places[index] for index in indexes] for state, indexes in {**states, TaskState.NONE: waiting}.items() if indexes
    }


@routes.get("/dags/{dag_id}/runs/{run_id}", Role.VIEWER, shared=True)
async def get_run(conn: Connection, within: InContext, dag_id: str, run_id: str) -> RunDetail:
    """A run, how its task instances stand, and what running ones say of their progress."""
    run = await found_run(conn, dag_id, run_id)
    counts = await views.count_tasks(conn, run["run_key"])
    progress = await views.list_progress(conn, run["run_key"], limit=limits.PROGRESS_SHOWN)
    called = await callbacks.list_of_run(conn, run["run_key"], limit=limits.CALLBACKS_SHOWN)
    due = await callbacks.list_deadlines_of_run(conn, run["run_key"])
    told = {"tasks_by_state": counts, "progress": progress, "callbacks": called, "deadlines": due}
    return RunDetail.model_validate({**run, **told, "trace_id": await _trace_id(conn, within.traced, run)})


async def _trace_id(conn: AsyncConn, traced: TracedRuns | None, run: Row) -> str | None:
    if traced is None or run["dag_id"] == CALLBACK_DAG:
        return None
    trace = traced.trace_of(run["run_key"], await traces.read_caller(conn, run["run_key"]))
    return trace.trace_id if trace.is_sampled else None


@routes.get("/dags/{dag_id}/runs/{run_id}/task-counts", Role.VIEWER, shared=True)
async def count_by_task(conn: Connection, dag_id: str, run_id: str) -> TaskCounts:
    """How many instances of each task of a run are in which state."""
    run = await found_run(conn, dag_id, run_id)
    return TaskCounts(tasks=await views.count_by_task(conn, run["run_key"]))


@routes.get("/dags/{dag_id}/runs/{run_id}/cancel", Role.VIEWER)
async def preview_cancel(conn: Connection, dag_id: str, run_id: str) -> Effect:
    """What a cancel of a run would touch. A question of its own: an API that does not know it refuses, and cancels nothing."""
    return await _cancelled(conn, [(await _unfinished(conn, dag_id, run_id))["run_key"]])


@routes.post("/dags/{dag_id}/runs/{run_id}/cancel", Role.AUTHOR, status_code=202)
async def cancel_run(conn: Connection, actor: Actor, dag_id: str, run_id: str) -> RunSummary:
    """Asks for the end of a run: nothing of it starts any more, running tries are killed, then it fails."""
    run = await _unfinished(conn, dag_id, run_id)
    async with events.recorded(conn, actor, "run.cancel", f"{dag_id}/{run_id}"):
        await dags.request_cancel(conn, [run["run_key"]], actor=actor)
    return RunSummary.model_validate(run)


async def _unfinished(conn: AsyncConn, dag_id: str, run_id: str) -> Row:
    """Raises :class:`DagNotFound`, and refuses a run that has ended."""
    run = await found_run(conn, dag_id, run_id)
    if run["state"] in RUN_FINISHED:
        raise Refused(409, "run_finished", f"The run {run_id!r} of DAG {dag_id!r} has ended already: {run['state']}.")
    return run


async def _cancelled(conn: AsyncConn, run_keys: Sequence[int]) -> Effect:
    """What a cancel of these runs touches."""
    counted = run_keys[:EFFECT_RUNS]
    states, mapped = await operations.count_states(conn, counted)
    outside = [work for _, work in await operations.list_outside(conn, counted)]
    is_counted = len(counted) == len(run_keys)
    return Effect.of(states, runs=len(counted), mapped=mapped, outside=outside, cancels=True, is_counted=is_counted)


@routes.post("/dags/{dag_id}/runs/cancel", Role.AUTHOR, status_code=202)
async def cancel_runs(conn: Connection, actor: Actor, dag_id: str, request: CancelRequest) -> CancelledRuns:
    """Cancels all runs of a DAG that have not ended. A second request finds those that came since."""
    await current_version(conn, dag_id)
    found = await dags.list_unfinished(conn, dag_id, state=request.state, limit=limits.OPERATED_RUNS + 1)
    asked = found[: limits.OPERATED_RUNS]
    if request.dry_run:
        return CancelledRuns(runs=len(asked), more=len(found) > len(asked), effect=await _cancelled(conn, asked))
    async with events.recorded(conn, actor, "run.cancel", dag_id, runs=len(asked)):
        runs = await dags.request_cancel(conn, asked, actor=actor)
    return CancelledRuns(runs=runs, more=len(found) > len(asked), effect=None)


@routes.get("/dags/{dag_id}/runs/{run_id}/tasks", Role.VIEWER, shared=True)
async def list_tasks(
    http: Request, conn: Connection, dag_id: str, run_id: str, query: Annotated[TaskQuery, Query()]
) -> Page[InstanceSummary]:
    """Task instances in the order of the DAG, including those that wait."""
    run = await found_run(conn, dag_id, run_id)
    wanted = {"task_id": query.task_id, "state": query.state}
    part = part_of(http, query, int, int)
    rows = await views.list_tasks(conn, run["run_key"], **wanted, limit=part.limit, after=part.after)
    return part.page(Page[InstanceSummary], rows)


async def found_run(conn: AsyncConn, dag_id: str, run_id: str) -> Row:
    """Raises :class:`DagNotFound`."""
    rows = await views.list_runs(conn, dag_id=dag_id, run_id=run_id)
    if not rows:
        hint = await _of_that_date(conn, dag_id, run_id)
        raise DagNotFound(
            f"The DAG {dag_id!r} has no run {run_id!r}.", hint=f"{hint} To see its runs, type: evenflow runs list {dag_id}"
        )
    return rows[0]


async def _of_that_date(conn: AsyncConn, dag_id: str, text: str) -> str:
    """A sentence that names the runs of the date, or moment, that was given instead of a name; or nothing."""
    found = await why.find_runs(conn, text, dag_id=dag_id, stretch=stretch_of(text), limit=limits.USERS_SHOWN)
    return f" Of that date it has {', '.join(repr(row['run_id']) for row in found)}." if found else ""
