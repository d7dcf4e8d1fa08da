"""Clearing and marking tasks, and what happened to runs and tasks. The API changes no state; it leaves word for the schedulers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Annotated, Any

from fastapi import Query, Request

from evenflow.api import limits
from evenflow.api.refusals import Refused
from evenflow.api.rest.context import Actor, Connection, InContext, InSlice
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.api.rest.runs import found_run
from evenflow.contracts.rest.queries import TaskEventQuery
from evenflow.contracts.rest.record import Page
from evenflow.contracts.rest.runs import ClearRequest, MarkRequest, Operated, RunHistoryEntry, RunSummary, ScopeRequest
from evenflow.contracts.rest.tasks import TaskHistoryEntry
from evenflow.core.flow.effects import Effect
from evenflow.core.graph import Graph
from evenflow.core.likeness import did_you_mean
from evenflow.core.limits import PAGE
from evenflow.core.model import UNMAPPED, DagSpec
from evenflow.core.operations import Only, Operation, keys_of, targets, touched_states
from evenflow.core.people.roles import Role
from evenflow.core.states import FINISHED, MARKS, RUN_FINISHED, RunState, TaskState
from evenflow.core.states import TaskEvent as Event
from evenflow.errors import DagNotFound, LogStorageError
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.serving import events, operations

routes = Routes("Operations")

_MARKED = {event: state for state, event in MARKS.items()}


@routes.post("/dags/{dag_id}/runs/{run_id}/clear", Role.AUTHOR, status_code=202)
async def clear_tasks(conn: Connection, actor: Actor, dag_id: str, run_id: str, request: ClearRequest) -> Operated:
    """Runs tasks again: finished tasks wait for their upstreams anew, running tasks are killed first. A finished run continues."""
    return await _operate(conn, dag_id, run_id, request, _operation(Event.CLEAR, actor, request, request.only))


@routes.post("/dags/{dag_id}/runs/{run_id}/mark", Role.AUTHOR, status_code=202)
async def mark_tasks(conn: Connection, actor: Actor, dag_id: str, run_id: str, request: MarkRequest) -> Operated:
    """Says how tasks ended; running ones are killed first. What failed or could not start below them is cleared. Without `tasks` it
    is about the whole run: marked `failed`, it is ended and fails; marked `success` after that, only the run changes.
    """
    return await _operate(conn, dag_id, run_id, request, _operation(MARKS[TaskState(request.state)], actor, request, None))


@routes.delete("/dags/{dag_id}/runs/{run_id}", Role.OPERATOR)
async def delete_run(within: InContext, actor: Actor, dag_id: str, run_id: str) -> RunSummary:
    """Deletes a run that has ended: its tasks, results, history and logs."""
    async with within.pool.connection() as conn:
        run = await found_run(conn, dag_id, run_id)
        async with events.recorded(conn, actor, "run.delete", f"{dag_id}/{run_id}"):
            if not await operations.delete_runs(conn, [run["run_key"]]):
                raise Refused(
                    409,
                    "run_not_finished",
                    f"The run {run_id!r} of DAG {dag_id!r} has not ended: it is {run['state']}.",
                    hint=f"To end it first: evenflow runs cancel {dag_id} {run_id}",
                )
    with suppress(LogStorageError):  # what is left stands in a table, and is deleted later
        await within.logs.delete_run(dag_id, run_id)
    return RunSummary.model_validate(run)


@routes.get("/dags/{dag_id}/runs/{run_id}/events", Role.VIEWER)
async def list_run_events(http: Request, conn: Connection, query: InSlice, dag_id: str, run_id: str) -> Page[RunHistoryEntry]:
    """What happened to a run, the oldest first, and who did it."""
    run = await found_run(conn, dag_id, run_id)
    part = part_of(http, query, datetime, int, str)
    rows = await operations.list_run_events(conn, run["run_key"], limit=part.limit, after=part.after)
    return part.page(Page[RunHistoryEntry], rows)


@routes.get("/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/events", Role.VIEWER)
async def list_task_events(
    http: Request,
    conn: Connection,
    dag_id: str,
    run_id: str,
    task_id: str,
    query: Annotated[TaskEventQuery, Query()],
) -> Page[TaskHistoryEntry]:
    """Every move of a task, the oldest first: its cause, the state that it led to, and the person who did it, if any."""
    run = await found_run(conn, dag_id, run_id)
    part = part_of(http, query, datetime, int, int, str)
    wanted: dict[str, Any] = {"task_id": task_id, "map_index": query.map_index}
    rows = await operations.list_task_events(conn, run["run_key"], **wanted, limit=part.limit, after=part.after)
    return part.page(Page[TaskHistoryEntry], rows)


def _operation(event: Event, actor: str, scope: ScopeRequest, only: Only | None) -> Operation:
    return Operation(
        event=event,
        actor=actor,
        tasks=None if scope.tasks is None else tuple(scope.tasks),
        map_indexes=None if scope.map_indexes is None else tuple(scope.map_indexes),
        upstream=scope.upstream,
        downstream=scope.downstream,
        only=only,
    )


async def _operate(conn: AsyncConn, dag_id: str, run_id: str, scope: ScopeRequest, operation: Operation) -> Operated:
    runs = await _runs(conn, dag_id, run_id, scope, operation)
    specs = await operations.read_specs(conn, {run.version_key for run in runs})
    graphs = {version_key: Graph.of(DagSpec.from_json(spec)) for version_key, spec in specs.items()}
    _check(graphs[runs[0].version_key], dag_id, run_id, scope)
    instances, total, states, mapped = await _touched(conn, runs, graphs, operation)
    already = not instances and operation.event in _MARKED and await _is_so(conn, runs, graphs, operation)
    if not instances and not already and operation.event in _MARKED and operation.tasks is not None:
        raise Refused(
            409,
            "nothing_to_mark",
            f"The run {run_id!r} of DAG {dag_id!r} has no task instance that is meant, so nothing can be marked.",
            hint=f"To see those that it has: evenflow tasks list {dag_id}/{run_id}",
        )
    if not scope.dry_run:
        named = {} if scope.tasks is None else {"tasks": scope.tasks[: limits.USERS_SHOWN]}
        async with events.recorded(
            conn, operation.actor, f"run.{operation.event.value}", f"{dag_id}/{run_id}", runs=len(runs), **named
        ):
            await operations.request(conn, [run.run_key for run in runs], operation)
    at_work = {(row["run_id"], row["task_id"], row["map_index"]) for row in instances if row["state"] not in FINISHED}
    found = await operations.list_outside(conn, [run.run_key for run in runs]) if at_work else []
    outside = [work for run, work in found if (run, work.task_id, work.map_index) in at_work]
    is_counted = total <= limits.OPERATED_COUNTED
    return Operated.model_validate(
        {
            "dry_run": scope.dry_run,
            "effect": Effect.of(states, runs=len(runs), mapped=mapped, outside=outside, is_counted=is_counted),
            "runs": [run.run_id for run in runs],
            "instances": instances,
            "more": total > len(instances),
            "total": min(total, limits.OPERATED_COUNTED),
            "counted": is_counted,
            "already": already,
        }
    )


async def _touched(
    conn: AsyncConn, runs: Sequence[operations.OperatedRun], graphs: Mapping[int, Graph], operation: Operation
) -> tuple[list[Row], int, dict[str, int], int]:
    """What the operation would touch, as the schedulers find it: the instances that are listed, and how many there are, counted
    until they are more than the limit, in which states they are, and how many are of mapped tasks. A question for each version of
    the DAG, not for each run.
    """
    states = touched_states(operation.event, operation.only)
    takes_back = operation.event is Event.MARK_SUCCESS and operation.tasks is None  # a run that is marked failed changes alone
    if ends := operation.event is Event.MARK_FAILED and operation.tasks is None:  # tasks that have ended stay as they are
        states -= FINISHED
    found: dict[str, list[Row]] = defaultdict(list)
    asked: dict[int, list[int]] = defaultdict(list)
    for run in runs:
        if run.never_began:
            if operation.event is Event.CLEAR and operation.only is not Only.RUNNING:
                tasks = graphs[run.version_key].spec.tasks
                row: Row = {"run_id": run.run_id, "map_index": UNMAPPED, "state": TaskState.NONE}
                found[run.run_id] = [{**row, "task_id": task.task_id} for task in tasks]
        elif not (ends and run.state in RUN_FINISHED) and not (takes_back and run.marked_failed):
            asked[run.version_key].append(run.run_key)
    total = sum(map(len, found.values()))
    counts, mapped = Counter({TaskState.NONE.value: total} if total else {}), 0
    for version_key, run_keys in asked.items():
        keys = keys_of(targets(graphs[version_key], operation))
        left, counted = operation.only is Only.FAILED, max(limits.OPERATED_COUNTED + 1 - total, PAGE)
        rows = await operations.list_touched(conn, run_keys, keys, states, left=left, limit=PAGE, counted=counted)
        if rows:
            total += rows[0]["total"]
            mapped += rows[0]["mapped"]
            counts.update(rows[0]["states"])
        for row in rows:
            found[row["run_id"]].append(row)
    return list(islice((row for run in runs for row in found[run.run_id]), PAGE)), total, dict(counts), mapped


async def _is_so(
    conn: AsyncConn, runs: Sequence[operations.OperatedRun], graphs: Mapping[int, Graph], operation: Operation
) -> bool:
    """Returns whether what a mark means exists and is so already; the mark touches no task instance."""
    wanted = _MARKED[operation.event]
    if operation.tasks is None:
        return all(run.state == wanted for run in runs)
    for version_key, graph in graphs.items():
        run_keys = [run.run_key for run in runs if run.version_key == version_key]
        keys = keys_of(targets(graph, operation))
        if keys and await operations.list_touched(conn, run_keys, keys, {wanted}, left=False, limit=1, counted=1):
            return True
    return False


async def _runs(
    conn: AsyncConn, dag_id: str, run_id: str, scope: ScopeRequest, operation: Operation
) -> list[operations.OperatedRun]:
    """Returns the named run, then the others that are meant. Runs that have not begun or are being cancelled are left out."""
    await found_run(conn, dag_id, run_id)
    first, *others = await operations.find_runs(
        conn, dag_id, run_id, past=scope.past, future=scope.future, limit=limits.OPERATED_RUNS + 1
    )
    if len(others) >= limits.OPERATED_RUNS:
        raise Refused(
            422,
            "too_many_runs",
            f"These are more than {limits.OPERATED_RUNS:,} runs of DAG {dag_id!r}.",
            hint="Do it in parts: begin with another run.",
        )
    if first.unbegun:
        raise Refused(
            409, "run_not_begun", f"The run {run_id!r} of DAG {dag_id!r} has not begun: nothing can be cleared or marked."
        )
    if first.never_began and operation.event is not Event.CLEAR:
        raise Refused(
            409,
            "run_not_begun",
            f"The run {run_id!r} of DAG {dag_id!r} ended before it began: nothing can be marked.",
            hint=f"To have it run: evenflow runs clear {dag_id} {run_id}",
        )
    if first.state == RunState.FAILED and operation.event is Event.MARK_FAILED and operation.tasks is None:
        raise Refused(409, "run_finished", f"The run {run_id!r} of DAG {dag_id!r} has ended already: failed.")
    if first.being_cancelled:
        raise Refused(
            409,
            "run_cancelled",
            f"The run {run_id!r} of DAG {dag_id!r} is being cancelled.",
            hint=f"Try again when it has ended. To see it: evenflow runs show {dag_id} {run_id}",
        )
    return [first, *(run for run in others if not run.unbegun and not run.being_cancelled)]


def _check(graph: Graph, dag_id: str, run_id: str, scope: ScopeRequest) -> None:
    """Raises :class:`DagNotFound` for a task that the run has not, and refuses map indexes of tasks that are not mapped."""
    index_of = {task.task_id: index for index, task in enumerate(graph.spec.tasks)}
    for task_id in scope.tasks or ():
        if task_id not in index_of:
            raise DagNotFound(
                f"The run {run_id!r} of DAG {dag_id!r} has no task {task_id!r}.",
                hint=f"{did_you_mean(task_id, index_of)} To see its tasks: evenflow tasks list {dag_id}",
            )
        if scope.map_indexes and not graph.mapped[index_of[task_id]]:
            raise Refused(422, "not_mapped", f"The task {task_id!r} is not mapped.", hint="Leave the map index out.")
    if scope.map_indexes and not scope.tasks:
        raise Refused(422, "no_task", "A map index needs a task.", hint="Name the mapped task too.")
