"""The Spark UI of a task, while its application runs: only to be read."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import Query, Request, Response

from evenflow.api.refusals import Forbidden, Refused
from evenflow.api.rest.context import InContext, caller_of
from evenflow.api.rest.routes import Routes, check_role
from evenflow.api.rest.spark_ui_pages import look, show, tells_settings, ui_kept
from evenflow.api.tokens import Caller
from evenflow.contracts.rest import PREFIX
from evenflow.contracts.rest.queries import InstanceQuery
from evenflow.contracts.rest.tasks import SparkUiPath
from evenflow.core.people.roles import Role
from evenflow.spark.ui import SparkUi
from evenflow.store.serving import try_records, views

routes = Routes("Tasks")
_UI = "/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/spark-ui"


@routes.get(_UI, Role.VIEWER)
async def find_spark_ui(
    within: InContext, request: Request, dag_id: str, run_id: str, task_id: str, query: Annotated[InstanceQuery, Query()]
) -> SparkUiPath:
    """Where the Spark UI of a running try is shown. It was looked at: it answers."""
    ui, try_number = await _told(within, caller_of(request), dag_id, run_id, task_id, query.map_index)
    await look(ui)
    path = f"{_base(dag_id, run_id, task_id, query.map_index)}/jobs/"
    return SparkUiPath(path=path, application_id=ui.application_id, try_number=try_number)


@routes.get(
    f"{_UI}/{{map_index}}/{{path:path}}",
    Role.VIEWER,
    response_class=Response,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "As Spark shows it."}},
)
async def show_spark_ui(
    within: InContext, request: Request, dag_id: str, run_id: str, task_id: str, map_index: int, path: str
) -> Response:
    """A page of the Spark UI of a running try, without its scripts, or figures of Spark's own REST API below `api/v1/`. Its
    environment, which tells settings, is for operators.
    """
    caller = caller_of(request)
    if tells_settings(path):
        check_role(caller, Role.OPERATOR)
    ui, _ = await _told(within, caller, dag_id, run_id, task_id, map_index)
    return await show(ui, path, request.url.query, _base(dag_id, run_id, task_id, map_index))


async def _told(within: InContext, caller: Caller, dag_id: str, run_id: str, task_id: str, map_index: int) -> tuple[SparkUi, int]:
    """What the newest try has told, and its number."""
    async with within.pool.connection() as conn:
        row = await try_records.read_of_spark(conn, "spark_ui", dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)
        hint = await views.similar_task(conn, dag_id, task_id) if row is None else ""
    if row is None:
        raise Refused(
            404,
            "not_found",
            f"No try of the task {task_id!r} in run {run_id!r} of DAG {dag_id!r} has told of a Spark UI.",
            hint=f"{hint} A task on Spark has one when its connection says ui=true; of a Spark Connect server ui=http://HOST:4040 "
            "says where it is.",
        )
    if not row["runs"]:
        raise Refused(
            409,
            "ended",
            f"Try {row['try_number']} of the task {task_id!r} has ended, and its Spark UI with it.",
            hint=f"What its stages took says: evenflow spark explain {dag_id}/{run_id} {task_id}",
        )
    ui = ui_kept(row["value"])
    if ui.is_shared and caller.scope is not None:
        raise Forbidden(
            f"The UI of a Spark Connect server shows tasks of all DAGs, and the role of {caller.name} counts in a scope alone.",
            hint=f"What the stages of this one take says: evenflow spark explain {dag_id}/{run_id} {task_id}",
        )
    return ui, row["try_number"]


def _base(dag_id: str, run_id: str, task_id: str, map_index: int) -> str:
    names = {name: quote(text, safe="") for name, text in (("dag_id", dag_id), ("run_id", run_id), ("task_id", task_id))}
    return f"{PREFIX}{_UI.format(**names)}/{map_index}"
