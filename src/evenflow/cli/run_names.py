"""How people name a run, in every command: ``DAG/RUN``, or ``DAG --run RUN``, or the DAG alone for its newest run."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused, DagNotFound, ParamError

Dag = Annotated[str, Parameter(help="DAG, or DAG/RUN.")]
Run = Annotated[str | None, Parameter(help="Name of the run; the newest if left out.")]


async def named_run(client: RestClient, dag: str, run: str | None) -> tuple[str, str]:
    """(dag_id, run_id). Raises :class:`ParamError` when two runs are named, and :class:`DagNotFound` when there is none."""
    dag_id, slash, named = dag.partition("/")
    if slash and run is not None and run != named:
        raise ParamError(f"Two runs are named, {named!r} and {run!r}. Type one of them: {dag_id}/{run}")
    run_id = named if slash else run
    return dag_id, run_id or await newest_run(client, dag_id)


async def found_run(client: RestClient, name: str, run: str | None) -> tuple[str, str]:
    """As :func:`named_run`, where ``name`` may also be that of a run alone, if only one DAG has such a one."""
    if run is not None or "/" in name:
        return await named_run(client, name, run)
    found = (await client.find_run(name)).items
    if len(found) > 1:
        dags = ", ".join(each.dag_id for each in found)
        raise ParamError(f"Several DAGs have a run {name!r}: {dags}. Say of which. Type for example: {found[0].dag_id}/{name}")
    if found:
        return found[0].dag_id, found[0].run_id
    try:
        return name, await newest_run(client, name)
    except ApiRefused as refused:
        if refused.status != 404:
            raise
        _, _, hint = str(refused).partition("Did you mean")
        hint = f" Did you mean{hint.partition('?')[0]}?" if hint else ""
        raise DagNotFound(f"There is no run and no DAG {name!r}.{hint} To see all runs, type: evenflow runs list") from None


async def newest_run(client: RestClient, dag_id: str) -> str:
    """Raises :class:`DagNotFound` when there is none."""
    page = await client.list_runs(dag_id=dag_id, limit=1)
    if not page.items:
        await client.get_dag(dag_id)  # which says when there is not even the DAG
        raise DagNotFound(f"The DAG {dag_id!r} has not run yet. To run it: evenflow run {dag_id}")
    return page.items[0].run_id
