"""DAGs: what there is, pausing, and files that cannot be parsed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query, Request

from evenflow.api.parsing import upcoming_run
from evenflow.api.refusals import Refused, no_dag
from evenflow.api.rest.context import Actor, Connection, InScope, InSlice
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.api.run_names import check_dag
from evenflow.contracts.rest.dags import DagChange, DagDetail, DagRelease, DagSummary, DateSkip, DeletedDag, ParseError
from evenflow.contracts.rest.queries import DagQuery, DeletionQuery
from evenflow.contracts.rest.record import Page
from evenflow.core.bundle import OWN_BUNDLE
from evenflow.core.limits import DEADLINE_RUNS, LEASE_S
from evenflow.core.mapping import mapped_tasks
from evenflow.core.model import DagSpec, RunParamSpec, read_schedule
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.core.spec.deadlines import when_due
from evenflow.core.timetable import Past, describe
from evenflow.errors import DagNotFound
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.serving import callbacks, dag_deletion, dags, events, views

routes = Routes("DAGs")


@routes.get("/dags", Role.VIEWER, ScopedBy.ANSWER, shared=True)
async def list_dags(http: Request, conn: Connection, scope: InScope, query: Annotated[DagQuery, Query()]) -> Page[DagSummary]:
    """DAGs by name; with `retired` also those whose file is gone."""
    wanted: dict[str, Any] = {"retired": query.retired, "search": query.search, "recent": query.recent, "scope": scope}
    part = part_of(http, query, str)
    rows = await views.list_dags(conn, **wanted, limit=part.limit, after=part.after)
    return part.page(Page[DagSummary], rows, _in_words)


@routes.get("/dags/{dag_id}", Role.VIEWER, shared=True)
async def get_dag(conn: Connection, dag_id: str) -> DagDetail:
    """A DAG with its tasks and params, as its newest version has them."""
    current = await current_version(conn, dag_id)
    (summary,) = await views.list_dags(conn, dag_id=dag_id, retired=True)
    spec = DagSpec.from_json(current.spec)
    due = await callbacks.list_deadlines(conn, dag_id, current.version_key, runs=DEADLINE_RUNS) if spec.deadlines else []
    deadlines = [
        {"name": each.name, "when": when_due(each), "callbacks": each.callbacks, **row}
        for each, row in zip(spec.deadlines, due, strict=True)
    ]
    return DagDetail.model_validate({**_in_words(summary), **_described(spec), "deadlines": deadlines})


@routes.patch("/dags/{dag_id}", Role.AUTHOR)
async def change_dag(conn: Connection, actor: Actor, dag_id: str, change: DagChange) -> DagSummary:
    """Pauses or unpauses a DAG. A paused DAG starts no tasks; tasks that have started continue."""
    await current_version(conn, dag_id)
    async with events.recorded(conn, actor, "dag.pause" if change.is_paused else "dag.unpause", dag_id):
        await set_paused(conn, dag_id, is_paused=change.is_paused)
    (summary,) = await views.list_dags(conn, dag_id=dag_id, retired=True)
    return DagSummary.model_validate(_in_words(summary))


@routes.post("/dags/{dag_id}/skip", Role.AUTHOR)
async def skip_dates(conn: Connection, actor: Actor, dag_id: str, change: DateSkip) -> DagSummary:
    """Counts the dates of its schedule up to one as done, without a run of them; a continuous schedule continues there.
    Only forward: a date before the newest scheduled run changes nothing.
    """
    await current_version(conn, dag_id)
    async with events.recorded(conn, actor, "dag.skip", dag_id) as detail:
        past, now = await dags.lock_schedule(conn, dag_id)
        until = change.until or now
        if until > now:
            raise Refused(
                422,
                "bad_value",
                f"{until.isoformat()} is in the future.",
                hint=f"To stop a DAG, type: evenflow dags pause {dag_id}",
            )
        detail["until"] = until.isoformat()
        current = await current_version(conn, dag_id)  # after the lock, so that it stays the newest
        past = past.up_to(until)
        await dags.skip_dates(conn, dag_id, past=past, next_run=await _next_run(current, past, now))
    (summary,) = await views.list_dags(conn, dag_id=dag_id, retired=True)
    return DagSummary.model_validate(_in_words(summary))


@routes.post("/dags/{dag_id}/release", Role.AUTHOR)
async def release_dag(conn: Connection, actor: Actor, dag_id: str, change: DagRelease) -> DagSummary:
    """Gives a DAG id to another bundle: the next file of that bundle with this id gets the DAG. Until then the DAG stays as
    it is.
    """
    check_dag(dag_id)
    await current_version(conn, dag_id)
    if change.bundle == OWN_BUNDLE:
        raise Refused(422, "bad_value", f"What is in the bundle {OWN_BUNDLE!r} is Evenflow's own.", hint="Choose another one.")
    async with events.recorded(conn, actor, "dag.release", dag_id, bundle=change.bundle):
        await dags.release(conn, dag_id, change.bundle)
    (summary,) = await views.list_dags(conn, dag_id=dag_id, retired=True)
    return DagSummary.model_validate(_in_words(summary))


@routes.delete("/dags/{dag_id}", Role.OPERATOR)
async def delete_dag(conn: Connection, actor: Actor, dag_id: str, query: Annotated[DeletionQuery, Query()]) -> DeletedDag:
    """Deletes a DAG whose file is gone, with its versions and everything of its runs; the logs follow soon. With `dry_run` it only
    counts the runs.
    """
    done = await dag_deletion.delete_dag(conn, dag_id, actor=actor, dry_run=query.dry_run)
    if not done.known:
        raise await unknown_dag(conn, dag_id)
    if done.file is not None:
        raise Refused(
            409,
            "dag_has_file",
            f"The DAG {dag_id!r} is defined in {done.file}.",
            hint="Take it out of that file, or remove the file, then delete the DAG.",
        )
    if done.live is not None:
        raise Refused(
            409,
            "run_not_finished",
            f"The run {done.live!r} of DAG {dag_id!r} has not ended.",
            hint=f"To end it first: evenflow runs cancel {dag_id} {done.live}",
        )
    return DeletedDag(dag_id=dag_id, runs=done.runs)


@routes.get("/parse-errors", Role.VIEWER, ScopedBy.ANSWER)
async def list_parse_errors(http: Request, conn: Connection, scope: InScope, query: InSlice) -> Page[ParseError]:
    """DAG files that cannot be loaded, or whose DAGs were refused."""
    part = part_of(http, query, str, str)
    rows = await views.list_parse_errors(conn, lease_s=LEASE_S, scope=scope, limit=part.limit, after=part.after)
    return part.page(Page[ParseError], rows)


async def current_version(conn: AsyncConn, dag_id: str) -> views.CurrentVersion:
    """Raises :class:`DagNotFound`."""
    current = await views.read_spec(conn, dag_id)
    if current is None:
        raise await unknown_dag(conn, dag_id)
    return current


async def set_paused(conn: AsyncConn, dag_id: str, *, is_paused: bool) -> None:
    """Pauses or unpauses a DAG; what else was said of its state of service is void. Raises :class:`DagNotFound`."""
    past, now = await dags.lock_schedule(conn, dag_id)
    current = await current_version(conn, dag_id)  # after the lock, so that it stays the newest
    await dags.set_paused(conn, dag_id, is_paused=is_paused, next_run=await _next_run(current, past, now))


async def _next_run(current: views.CurrentVersion, past: Past, now: datetime) -> dags.NextRun:
    return await upcoming_run(DagSpec.from_json(current.spec), past, now) if current.is_active else dags.NextRun()


async def unknown_dag(conn: AsyncConn, dag_id: str) -> DagNotFound:
    return no_dag(dag_id, await views.similar_dag(conn, dag_id))


def _in_words(summary: Row) -> Row:
    return {**summary, "schedule": describe(read_schedule(summary["schedule"] or {}))}


def shown_params(params: Mapping[str, RunParamSpec]) -> list[dict[str, Any]]:
    return [
        {"name": name, "default": p.default, "required": p.required, "schema": p.schema, "description": p.description}
        for name, p in sorted(params.items())
    ]


def _described(spec: DagSpec) -> dict[str, Any]:
    ids = [task.task_id for task in spec.tasks]
    groups = [group.group_id for group in spec.groups]
    return {
        "doc": spec.doc,
        "owner_links": spec.owner_links,
        "max_active_runs": spec.max_active_runs,
        "max_active_tasks": spec.max_active_tasks,
        "params": shown_params(spec.params),
        "tasks": [
            {
                "task_id": task.task_id,
                "display_name": task.display_name or task.task_id,
                "operator": task.operator,
                "upstream": [ids[index] for index in task.upstream],
                "trigger_rule": task.trigger_rule,
                "mapped": mapped,
                "pool": task.pool,
                "queue": task.queue,
                "priority_weight": task.priority_weight,
                "retries": task.retries,
                "group": None if task.group is None else groups[task.group],
            }
            for task, mapped in zip(spec.tasks, mapped_tasks(spec), strict=True)
        ],
        "groups": [
            {
                "group_id": group.group_id,
                "group": None if group.parent is None else groups[group.parent],
                "tooltip": group.tooltip,
                "mapped": group.mapping is not None,
            }
            for group in spec.groups
        ],
    }
