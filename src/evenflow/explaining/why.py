"""Why a task instance does not run, from the tables by which the scheduler decides, at one instant."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from evenflow.contracts.rest.why import Why
from evenflow.core import why
from evenflow.core.graph import Graph
from evenflow.core.limits import LEASE_S
from evenflow.core.model import UNMAPPED, DagSpec
from evenflow.core.operations import TargetKey
from evenflow.core.pods.ends import WaitingPod
from evenflow.core.selection.order import DispatchClass
from evenflow.core.states import FINISHED, HOLDING, RUN_FINISHED, RunState, TaskState
from evenflow.core.why import HOLDERS_NAMED, LINE_COUNTED, RUNS_SEARCHED, UPSTREAMS_NAMED, WhyNot
from evenflow.errors import DagNotFound, ParamError
from evenflow.explaining.line import explain_limits, holding_runs, holding_tries
from evenflow.store.db.columns import numbers
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import one_instant, read
from evenflow.store.scheduling.operations import key_columns
from evenflow.store.serving.views import similar_task

RUNS_NAMED = 20  # of one name: more DAGs than a person wants to read


async def find_runs(
    conn: AsyncConn,
    run_id: str,
    *,
    dag_id: str | None = None,
    stretch: tuple[datetime, datetime] | None = None,
    scope: str | None = None,
    limit: int = RUNS_NAMED,
) -> list[Row]:
    """Returns runs of this name, or without any, of this range of logical dates: dag_id, run_id, state."""
    begin, past = stretch or (None, None)
    params = {"run_id": run_id, "dag_id": dag_id, "begin": begin, "past": past, "scope": scope, "limit": limit}
    found = await read(conn, "why/find_runs", params)
    return [row for row in found if row["run_id"] == run_id] or found


async def explain(
    conn: AsyncConn, *, dag_id: str, run_id: str, task_id: str, map_index: int = UNMAPPED, scope: str | None = None
) -> Why:
    """Names holders only in the scope. Raises :class:`DagNotFound` when the run, task or instance does not exist,
    :class:`ParamError` when the task has several.
    """
    async with one_instant(conn):
        names: dict[str, Any] = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
        found = await read(conn, "why/find_instance", {**names, "lease_s": LEASE_S})
        if not found:
            hint = await similar_task(conn, dag_id, task_id)
            if await find_runs(conn, run_id, dag_id=dag_id):
                has_not = f"The run {run_id!r} of DAG {dag_id!r} has no task {task_id!r}"
                raise DagNotFound(f"{has_not}.", hint=f"{hint} To see its tasks: evenflow tasks list {dag_id}/{run_id}")
            where = f"in a run {run_id!r} of DAG {dag_id!r}"
            raise DagNotFound(f"There is no task {task_id!r} {where}.", hint=f"{hint} See: evenflow runs list {dag_id}")
        row = found[0]
        if row["quarantine"] is not None:  # its spec may be the problem
            return _set_aside(row, task_id, map_index)
        (version,) = await read(conn, "runs/read_specs", {"version_keys": numbers([row["version_key"]])})
        graph = Graph.of(DagSpec.from_json(version["spec"]))
        index = _instance(graph, row, map_index)
        state = row["state"] or row["virtual_state"] or TaskState.NONE.value
        return Why(
            dag_id=dag_id,
            run_id=run_id,
            task_id=task_id,
            map_index=index,
            state=state,
            run_state=row["run_state"],
            reasons=[*await _reasons(conn, graph, row, TaskState(state), index, scope)],
        )


def _set_aside(row: Row, task_id: str, map_index: int) -> Why:
    return Why(
        dag_id=row["dag_id"],
        run_id=row["run_id"],
        task_id=task_id,
        map_index=map_index,
        state=row["state"] or row["virtual_state"] or TaskState.NONE.value,
        run_state=row["run_state"],
        reasons=[why.Quarantined(since=row["quarantined_at"], explanation=row["quarantine"])],
    )


def _instance(graph: Graph, row: Row, map_index: int) -> int:
    """Returns the meant map index."""
    task_id, length = row["task_id"], row["length"]
    if length is None:
        if not graph.mapped[row["task_index"]] and map_index != UNMAPPED:
            raise DagNotFound(
                f"The task {task_id!r} is not mapped, so it has no instance {map_index}.", hint="Leave --map-index out."
            )
        return UNMAPPED
    if map_index == UNMAPPED:
        raise ParamError(
            f"The task {task_id!r} is mapped: say which of its {length:,} instances.", hint="Type for example: --map-index 0"
        )
    if map_index >= length:
        raise DagNotFound(f"The task {task_id!r} has no instance {map_index}: the last one is {length - 1}.")
    return map_index


async def _reasons(conn: AsyncConn, graph: Graph, row: Row, state: TaskState, map_index: int, scope: str | None) -> list[WhyNot]:
    if state is TaskState.UPSTREAM_FAILED and (failed := await _failed_upstreams(conn, graph, row, map_index)):
        return [why.UpstreamFailed(at=row["ended_at"], trigger_rule=row["trigger_rule"], **failed)]
    if state in FINISHED:
        return [why.Finished(state=state.value, at=row["ended_at"], explanation=row["reason"])]
    if RunState(row["run_state"]) in RUN_FINISHED:
        return [why.RunEnded(state=row["run_state"], at=row["run_ended_at"], explanation=row["run_reason"])]
    if state in HOLDING:
        return await _dispatched(conn, graph, row)
    reasons: list[WhyNot] = [] if row["schedulers"] else [why.NoScheduler()]
    if row["is_paused"] and state is not TaskState.DEFERRED:
        reasons.append(why.Paused(dag_id=row["dag_id"]))
    if row["run_state"] == RunState.QUEUED:
        reasons += await _run_queued(conn, row)
    else:
        reasons += await _not_dispatched(conn, graph, row, state, map_index, scope)
    return reasons or [why.NextRound()]


async def _dispatched(conn: AsyncConn, graph: Graph, row: Row) -> list[WhyNot]:
    if row["worker"] is not None:
        names = ("worker", "host", "kill_at", "outrun")
        return [why.Running(since=row["claimed_at"], **{name: row[name] for name in names})]
    params = {name: row[name] for name in ("queue", "class", "priority", "epoch")}
    resumes = row["class"] == DispatchClass.RESUME
    (queue,) = await read(conn, "why/read_queue", {**params, "resumes": resumes, "counted": LINE_COUNTED, "lease_s": LEASE_S})
    told = queue.pop("pod")
    pod = None if told is None else WaitingPod(**told)
    task = graph.spec.tasks[row["task_index"]]
    frozen = await holding_tries(conn, row["dag_id"], task.pool, row["queue"])
    counted = queue["ahead"] < LINE_COUNTED
    limit = {}
    if task.queued_timeout is not None and row["queue"] != task.other_queue:
        until = row["granted_at"] + timedelta(seconds=task.queued_timeout)
        limit = {"until": until, "then": task.when_unclaimed(resumes=resumes), "other_queue": task.other_queue}
    known = {"queue": row["queue"], "since": row["granted_at"], "resumes": resumes, "counted": counted, "pod": pod}
    waits = why.AwaitsWorker(**known, **queue, **limit)
    return [*frozen, waits]


async def _run_queued(conn: AsyncConn, row: Row) -> list[WhyNot]:
    if row["is_early"]:
        return [why.RunAfter(at=row["run_after"])]
    dag_id = row["dag_id"]
    held = await holding_runs(conn, dag_id, is_paused=row["is_paused"])
    ids = [found["limit_id"] for found in await read(conn, "why/find_run_limit", {"dag_id": dag_id})]
    limits = await read(conn, "why/read_limits", {"limits": numbers(ids)})
    if not limits or limits[0]["used"] < limits[0]["capacity"]:
        return held
    place = {name: row[name] for name in ("dag_id", "run_key")}
    (before,) = await read(conn, "why/count_runs_ahead", {**place, "counted": LINE_COUNTED})
    named = {"dag_id": dag_id, "searched": RUNS_SEARCHED, "named": HOLDERS_NAMED}
    holders = await read(conn, "why/list_running_runs", named)
    return [
        *held,
        why.FullLimit(
            limit=limits[0]["limit"],
            name=limits[0]["name"],
            capacity=limits[0]["capacity"],
            used=limits[0]["used"],
            wanted=1,
            ahead=before["ahead"],
            counted=before["ahead"] < LINE_COUNTED,
            held_by=holders[0]["held_by"] if holders else 0,
            unclaimed=0,
            holders=[
                why.Holder(
                    dag_id=dag_id,
                    run_id=holder["run_id"],
                    task_id=None,
                    map_index=UNMAPPED,
                    slots=1,
                    since=holder["since"],
                    worker=None,
                )
                for holder in holders
            ],
        ),
    ]


async def _not_dispatched(
    conn: AsyncConn, graph: Graph, row: Row, state: TaskState, map_index: int, scope: str | None
) -> list[WhyNot]:
    """Returns the reasons for a task of a running run."""
    if state is TaskState.UP_FOR_RETRY:
        return [why.AwaitsRetry(at=row["due_at"], tries=row["try_number"], explanation=row["reason"])]
    if state is TaskState.UP_FOR_RESCHEDULE:
        return [why.AwaitsPoke(at=row["due_at"], since=row["poking_since"])]
    if state is TaskState.DEFERRED:
        return [_awaits_event(row)]
    task_index = row["task_index"]
    if state is TaskState.SCHEDULED:
        return await explain_limits(conn, row["run_key"], task_index, map_index, scope)
    params = {"run_key": row["run_key"], "task_index": task_index, "named": UPSTREAMS_NAMED}
    past: list[WhyNot] = []
    if before := await read(conn, "why/list_past", params):
        tasks = [why.PastTask(task_id=task["task_id"], states=task["states"]) for task in before]
        past.append(why.AwaitsPast(run_id=before[0]["run_id"], tasks=tasks))
    awaited = _awaited(graph, task_index, map_index)
    keys = key_columns(awaited)
    found = await read(conn, "why/list_upstreams", {"run_key": row["run_key"], "named": UPSTREAMS_NAMED, **keys})
    if not found:
        return past
    missing = found[0]["upstreams"]
    upstreams = [why.Upstream(task_id=_named(up), missing=up["missing"], total=up["total"], states=up["states"]) for up in found]
    rule, expands = row["trigger_rule"], graph.mapped[task_index] and map_index == UNMAPPED
    return [why.AwaitsUpstreams(trigger_rule=rule, expands=expands, missing=missing, upstreams=upstreams), *past]


def _awaits_event(row: Row) -> WhyNot:
    if row["asks"]:
        return why.AwaitsAnswer(since=row["deferred_at"], until=row["timeout_at"])
    return why.AwaitsEvent(
        state=TaskState.DEFERRED.value,
        trigger=row["trigger"],
        since=row["deferred_at"],
        until=row["timeout_at"],
        triggerer=row["triggerer"],
        host=row["triggerer_host"],
        failures=row["failures"],
        again_at=row["tried_at"] if row["backs_off"] else None,
    )


def _awaited(graph: Graph, task_index: int, map_index: int) -> list[TargetKey]:
    """Returns what an instance waits for: all of an upstream, or the instance of the same index. A task of a mapped group that is
    not expanded also waits for what the group maps over.
    """
    upstream = graph.upstream[task_index]
    if map_index != UNMAPPED:
        return [(u, map_index if graph.same_region(u, task_index) else None) for u in upstream]
    if graph.grouped(task_index):
        sources = {*graph.outside(task_index), *graph.regions[graph.region_of[task_index]].gated_by}
        return [(u, None) for u in sorted(sources)]
    return [(u, None) for u in upstream]


async def _failed_upstreams(conn: AsyncConn, graph: Graph, row: Row, map_index: int) -> dict[str, Any] | None:
    """Returns the first failures: for upstreams that were not run, it looks at their upstreams. None when the failed tasks run
    again.
    """
    above = _above(graph, row["task_index"], map_index)
    asked = key_columns(list(set().union(*above.values())))
    rows = await read(conn, "why/list_failed", {"run_key": row["run_key"], **asked})
    found = {(row["task_index"], row["asked"]): row for row in rows}
    causes: dict[TargetKey, Row] = {}
    seen, waiting = set[TargetKey](), [next(iter(above))]
    while waiting:
        for key in above[waiting.pop()] - seen:
            seen.add(key)
            if key in found and found[key]["failed"]:
                causes[key] = found[key]
            elif key in found:
                waiting.append(key)
    if not causes:
        return None
    named = sorted(causes.values(), key=lambda row: int(row["task_index"]))[:UPSTREAMS_NAMED]
    fields = ("task_id", "map_index", "failed", "explanation")
    return {"failed": len(causes), "upstreams": [why.FailedUpstream(**{name: up[name] for name in fields}) for up in named]}


def _above(graph: Graph, task_index: int, map_index: int) -> dict[TargetKey, set[TargetKey]]:
    """Returns the upstreams of an instance, which comes first, and of all above it: all of a task, or the instance of the same
    index.
    """
    first: TargetKey = (task_index, None if map_index == UNMAPPED else map_index)
    above: dict[TargetKey, set[TargetKey]] = {}
    waiting = [first]
    while waiting:
        key = waiting.pop()
        if key not in above:
            task, index = key
            gates = graph.regions[graph.region_of[task]].gated_by if graph.grouped(task) else ()
            above[key] = {(u, index if graph.same_region(u, task) else None) for u in (*graph.upstream[task], *gates)}
            waiting += above[key]
    return above


def _named(upstream: Row) -> str:
    """Returns the upstream's name, with the index of a single instance."""
    task_id: str = upstream["task_id"]
    return task_id if upstream["map_index"] is None else f"{task_id}[{upstream['map_index']}]"
