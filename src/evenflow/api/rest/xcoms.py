"""What tasks passed on and what their templates became, for people. Values that hold secrets are not shown."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request

from evenflow.api.lineage import event_of
from evenflow.api.refusals import Refused
from evenflow.api.rest.context import Connection, InContext
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.queries import InstanceQuery, TryQuery, XComQuery
from evenflow.contracts.rest.record import Page
from evenflow.contracts.rest.tasks import RenderedFields, TaskLineage, TaskLinks, XComEntry, XComShown
from evenflow.core.links import web_links
from evenflow.core.people.roles import Role
from evenflow.store.serving import try_records, views, xcom

routes = Routes("Tasks")

OfInstance = Annotated[InstanceQuery, Query()]


@routes.get("/dags/{dag_id}/runs/{run_id}/xcoms", Role.VIEWER)
async def list_xcoms(
    http: Request, conn: Connection, dag_id: str, run_id: str, query: Annotated[XComQuery, Query()]
) -> Page[XComEntry]:
    """What the tasks of a run pushed and returned, without the values."""
    part = part_of(http, query, int, int, str)
    wanted: dict[str, Any] = {"dag_id": dag_id, "run_id": run_id, "task_id": query.task_id}
    rows = await xcom.list_values(conn, **wanted, limit=part.limit, after=part.after)
    return part.page(Page[XComEntry], rows)


@routes.get("/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/xcoms/{key}", Role.VIEWER)
async def get_xcom(conn: Connection, dag_id: str, run_id: str, task_id: str, key: str, query: OfInstance) -> XComShown:
    """One value."""
    row = await xcom.read_value(conn, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=query.map_index, key=key)
    if row is None:
        raise Refused(
            404,
            "not_found",
            f"Task {task_id!r} has nothing under {key!r} in run {run_id!r}.",
            hint=f"To see all, type: evenflow xcoms list {dag_id}",
        )
    return XComShown.model_validate(row)


@routes.get("/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/lineage", Role.VIEWER)
async def get_lineage(
    within: InContext, conn: Connection, dag_id: str, run_id: str, task_id: str, query: Annotated[TryQuery, Query()]
) -> TaskLineage:
    """What a try on Spark read and wrote, and which columns came from which, as an event of OpenLineage."""
    row = await try_records.read_lineage(
        conn, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=query.map_index, try_number=query.try_number
    )
    if row is None:
        raise Refused(
            404,
            "not_found",
            f"No try of the task {task_id!r} in run {run_id!r} of DAG {dag_id!r} has told what it read and wrote.",
            hint="Tries of @task.spark and SparkSQL do when they end, locally or on a standalone cluster; a Spark Connect server "
            "tells none.",
        )
    event = event_of(row, within.tokens.installation)
    return TaskLineage(event=event, try_number=row["try_number"], is_sent=not row["unsent"])


@routes.get("/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/links", Role.VIEWER)
async def get_links(conn: Connection, dag_id: str, run_id: str, task_id: str, query: OfInstance) -> TaskLinks:
    """Links that an operator of Airflow's has for its work, once its try has ended."""
    if await views.find_instance(conn, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=query.map_index) is None:
        raise await _no_such_task(conn, dag_id, run_id, task_id)
    row = await try_records.read_links(conn, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=query.map_index)
    if row is None:
        return TaskLinks(links={}, try_number=None)
    return TaskLinks(links=web_links(row["value"]), try_number=row["try_number"])


@routes.get("/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/rendered", Role.VIEWER)
async def get_rendered(conn: Connection, dag_id: str, run_id: str, task_id: str, query: OfInstance) -> RenderedFields:
    """What the template fields of the newest try became."""
    if await views.find_instance(conn, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=query.map_index) is None:
        raise await _no_such_task(conn, dag_id, run_id, task_id)
    fields = await try_records.read_rendered(conn, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=query.map_index)
    return RenderedFields(fields=fields or {})


async def _no_such_task(conn: Connection, dag_id: str, run_id: str, task_id: str) -> Refused:
    hint = await views.similar_task(conn, dag_id, task_id)
    return Refused(404, "not_found", f"There is no task {task_id!r} in run {run_id!r} of DAG {dag_id!r}.", hint=hint)
