"""Why a task does not run, what would start next, what deferred tasks wait for, and what history says of all that."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Path, Query, Request

from evenflow.api.capacity import read_pools
from evenflow.api.logs.growth import find_try
from evenflow.api.refusals import Refused, no_pool
from evenflow.api.rest.context import Connection, InScope
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.api.rest.runs import found_run
from evenflow.api.run_names import stretch_of
from evenflow.contracts.rest.insights import Insights
from evenflow.contracts.rest.plan import Plan
from evenflow.contracts.rest.queries import InstanceQuery, PlanQuery, RunNameQuery, WaitingQuery
from evenflow.contracts.rest.record import ObjectName, Page
from evenflow.contracts.rest.runs import RunName
from evenflow.contracts.rest.tasks import TaskTries, WaitingTrigger
from evenflow.contracts.rest.why import Why
from evenflow.core.explain import Explainer
from evenflow.core.history.tries import TaskMove, tries_of
from evenflow.core.limits import MOVES_OF_TRIES
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.explaining.plan import ResizedPool, read_plan
from evenflow.explaining.why import RUNS_NAMED, explain, find_runs
from evenflow.store.serving import triggers, views

routes = Routes("Explanations")


@routes.get("/runs/{run_id}", Role.VIEWER, ScopedBy.ANSWER)
async def find_run(
    conn: Connection, scope: InScope, run_id: Annotated[ObjectName, Path()], query: Annotated[RunNameQuery, Query()]
) -> Page[RunName]:
    """Finds the runs of this name. If there is none, the name is read as a logical date (a day of UTC, or a second). Searches one
    DAG or all.
    """
    rows = await find_runs(conn, run_id, dag_id=query.dag_id, stretch=stretch_of(run_id), scope=scope)
    return Page[RunName].model_validate({"items": rows, "limit": RUNS_NAMED, "more": len(rows) == RUNS_NAMED})


@routes.get("/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/why", Role.VIEWER)
async def explain_task(
    conn: Connection, scope: InScope, dag_id: str, run_id: str, task_id: str, query: Annotated[InstanceQuery, Query()]
) -> Why:
    """Why a task instance does not run, as data and in words: a limit with the tasks that hold it and its place in line, or an
    upstream.
    """
    found = await explain(conn, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=query.map_index, scope=scope)
    explainer = Explainer(dag_id, run_id, task_id, found.map_index, datetime.now(UTC), _in_utc)
    reasons = [reason if isinstance(reason, dict) else replace(reason, told=explainer.tell(reason)) for reason in found.reasons]
    return replace(found, reasons=reasons)


@routes.get("/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/tries", Role.VIEWER, shared=True)
async def list_tries(
    conn: Connection, dag_id: str, run_id: str, task_id: str, query: Annotated[InstanceQuery, Query()]
) -> TaskTries:
    """What became of each try of a task instance: what it waited for, where a process of it ran, how long, and how that ended."""
    await find_try(conn, dag_id, run_id, task_id, query.map_index, None)
    run = await found_run(conn, dag_id, run_id)
    asked = MOVES_OF_TRIES + 1
    rows = await views.list_moves(conn, run["run_key"], task_id=task_id, map_index=query.map_index, limit=asked)
    moves = [TaskMove(**row) for row in rows]
    return TaskTries(tries=tries_of(moves[-MOVES_OF_TRIES:], datetime.now(UTC)), is_cut=len(moves) == asked)


def _in_utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


@routes.get("/plan", Role.VIEWER, ScopedBy.ANSWER, shared=True)
async def get_plan(conn: Connection, scope: InScope, query: Annotated[PlanQuery, Query()]) -> Plan:
    """A dry run: what a scheduler would start right now, in which order, and what blocks the rest; or what would follow if a pool
    had other slots. Nothing is changed.
    """
    resized = None
    if query.pool is not None and query.slots is not None:
        if not await read_pools(conn, query.pool, scope=scope):
            raise no_pool(query.pool)
        resized = ResizedPool(query.pool, query.slots)
    elif query.pool is not None or query.slots is not None:
        raise Refused(422, "bad_value", "What would follow is asked with a pool and its slots, both.", hint="Give pool and slots.")
    return await read_plan(conn, limit=query.limit, scope=scope, resized=resized)


@routes.get("/triggers", Role.VIEWER, ScopedBy.ANSWER)
async def list_triggers(
    http: Request, conn: Connection, scope: InScope, query: Annotated[WaitingQuery, Query()]
) -> Page[WaitingTrigger]:
    """Which tasks wait for what, since when, and where their triggers run; the longest waiting first."""
    wanted = {"dag_id": query.dag_id, "run_id": query.run_id, "scope": scope}
    part = part_of(http, query, datetime, int)
    rows = await triggers.list_waiting(conn, **wanted, limit=part.limit, after=part.after)
    return part.page(Page[WaitingTrigger], rows)


@routes.get("/insights", Role.VIEWER)
async def read_insights(conn: Connection) -> Insights:
    """What tasks waited for and took, by day, and which limits, DAGs, tasks are worth a look: of the history pipeline's marts."""
    return await views.read_insights(conn)
