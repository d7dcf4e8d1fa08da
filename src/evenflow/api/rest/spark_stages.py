"""What the stages of a try on Spark take, while it runs and when it has ended."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import ValidationError

from evenflow.api.refusals import Refused
from evenflow.api.rest.context import Connection
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.queries import TryQuery
from evenflow.contracts.rest.tasks import SparkStages
from evenflow.core.people.roles import Role
from evenflow.spark.advice import advise
from evenflow.spark.status import FIGURES_EVERY_S
from evenflow.store.serving import try_records, views

routes = Routes("Tasks")
_AT_WORK = ("running", "deferred")


@routes.get("/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/spark", Role.VIEWER)
async def get_spark_stages(
    conn: Connection, dag_id: str, run_id: str, task_id: str, query: Annotated[TryQuery, Query()]
) -> SparkStages:
    """What the stages of a try on Spark take, those so far while it runs, and what to change."""
    row = await try_records.read_of_spark(
        conn,
        "spark_stages",
        dag_id=dag_id,
        run_id=run_id,
        task_id=task_id,
        map_index=query.map_index,
        try_number=query.try_number,
    )
    if row is None or (row["is_earlier"] and query.try_number is None):
        instance = await views.find_instance(conn, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=query.map_index)
        if instance is None:
            hint = await views.similar_task(conn, dag_id, task_id)
            raise Refused(404, "not_found", f"There is no task {task_id!r} in run {run_id!r} of DAG {dag_id!r}.", hint=hint)
        said = _nothing_told(task_id, instance, query.try_number, None if row is None else row["try_number"])
        raise Refused(404, "not_found", said)
    told = {"try_number": row["try_number"], "at": row["at"], "runs": row["runs"], "application": row["value"], "advice": []}
    try:
        stages = SparkStages.model_validate(told)
    except ValidationError:
        said = f"What try {row['try_number']} of the task {task_id!r} has told are no stages of Spark."
        raise Refused(404, "not_found", said) from None
    stages.advice = advise(stages.application)
    return stages


def _nothing_told(task_id: str, instance: views.InstanceState, asked: int | None, earlier: int | None) -> str:
    by_whom = (
        "Tries of @task.spark, SparkSQL and SparkSubmit of Python applications tell them, on this machine and on clusters; a Spark "
        "Connect server keeps them to itself."
    )
    if instance.state in _AT_WORK and asked in (None, instance.try_number):
        before = "" if earlier is None else f" Those of try {earlier} are there: --try {earlier}"
        return (
            f"Try {instance.try_number} of {task_id} runs, and has told no stages of Spark so far. They are told every "
            f"{FIGURES_EVERY_S:g} s, and when it ends. {by_whom}{before}"
        )
    which = f"No try of {task_id} has told" if asked is None else f"Try {asked} of {task_id} has not told any"
    return f"{which} stages of Spark. {by_whom}"
