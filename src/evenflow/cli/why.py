"""``evenflow why``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from evenflow.cli.reasons import print_why
from evenflow.cli.remote import remote
from evenflow.cli.runs import newest_run
from evenflow.cli.terminal import Json, print_json
from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused, DagNotFound, ParamError


async def why(
    run: Annotated[str, Parameter(help="DAG_ID/RUN_ID; or the run's name alone; or a DAG's, for its newest run.")],
    task_id: str,
    /,
    *,
    map_index: Annotated[int | None, Parameter(help="Which instance of a mapped task.")] = None,
    json: Json = False,
) -> None:
    """Why a task does not run: the limit that blocks it, who holds that and its place in line, or what it waits for.

    The answer comes from the state that the scheduler decides from, and says what to do.
    """
    async with remote() as client:
        dag_id, run_id = await find_run(client, run)
        found = await client.explain(dag_id, run_id, task_id, map_index=-1 if map_index is None else map_index)
    if json:
        print_json(found)
    else:
        print_why(found)


async def find_run(client: RestClient, name: str) -> tuple[str, str]:
    """(dag_id, run_id). Raises :class:`DagNotFound`, or :class:`ParamError` when several DAGs have a run of this name."""
    dag_id, slash, run_id = name.partition("/")
    if slash:
        return dag_id, run_id
    found = (await client.find_run(name)).items
    if len(found) > 1:
        dags = ", ".join(run.dag_id for run in found)
        raise ParamError(
            f"Several DAGs have a run {name!r}: {dags}. Say of which. Type for example: evenflow why {found[0].dag_id}/{name} ..."
        )
    if found:
        return found[0].dag_id, found[0].run_id
    try:
        return name, await newest_run(client, name)
    except ApiRefused as refused:
        if refused.status != 404:
            raise
        raise DagNotFound(f"There is no run and no DAG {name!r}. To see all runs, type: evenflow runs list") from None
