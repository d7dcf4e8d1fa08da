"""How people name a run, in every command: ``DAG/RUN``, or ``DAG --run RUN``, or only the DAG for its newest run. A date is enough
if the DAG has one run with it.
"""

from __future__ import annotations

import re
from typing import Annotated

from cyclopts import Parameter

from evenflow.client.rest import RestClient
from evenflow.contracts import rest
from evenflow.errors import ApiRefused, DagNotFound, ParamError

Dag = Annotated[str, Parameter(help="DAG, or DAG/RUN.")]
RunNamed = Annotated[str, Parameter(help="DAG, DAG/RUN, or the run's name alone.")]
RunArgument = Annotated[str | None, Parameter(help="Name or date of the run; the newest if left out.")]
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


async def named_run(client: RestClient, dag: str, run: str | None) -> tuple[str, str]:
    """Returns (dag_id, run_id). Raises :class:`ParamError` when several runs are named, and :class:`DagNotFound` without a run."""
    dag_id, slash, named = dag.partition("/")
    if slash and run is not None and run != named:
        raise ParamError(f"Two runs are named, {named!r} and {run!r}. Type one of them: {dag_id}/{run}")
    run_id = named if slash else run
    if run_id and _DATE.match(run_id):
        dated = _the_one(await client.find_run(run_id, dag_id=dag_id), run_id)
        return dag_id, dated.run_id if dated else run_id
    return dag_id, run_id or await newest_run(client, dag_id)


async def found_run(client: RestClient, name: str, run: str | None) -> tuple[str, str]:
    """Works like :func:`named_run`, where ``name`` may also be only a run's name, if a single DAG has such a run."""
    if run is not None or "/" in name:
        return await named_run(client, name, run)
    if found := _the_one(await client.find_run(name), name):
        return found.dag_id, found.run_id
    try:
        return name, await newest_run(client, name)
    except ApiRefused as refused:
        if refused.status != 404:
            raise
        hint = str(refused).removeprefix(f"There is no DAG {name!r}.").partition(" To see all")[0]
        raise DagNotFound(f"There is no run and no DAG {name!r}.{hint} To see all runs, type: evenflow runs list") from None


def _the_one(found: rest.record.Page[rest.runs.RunName], name: str) -> rest.runs.RunName | None:
    """Raises :class:`ParamError` when there are several."""
    if len(found.items) > 1:
        first, *_ = names = [f"{each.dag_id}/{each.run_id}" for each in found.items]
        more = ", ..." if found.more else ""
        raise ParamError(f"{name!r} fits several runs: {', '.join(names)}{more}. Type one of them, for example: {first}")
    return found.items[0] if found.items else None


async def newest_run(client: RestClient, dag_id: str) -> str:
    """Raises :class:`DagNotFound` when there is none."""
    page = await client.list_runs(dag_id=dag_id, limit=1)
    if not page.items:
        await client.get_dag(dag_id)  # this reports a missing DAG
        raise DagNotFound(f"The DAG {dag_id!r} has not run yet. To run it: evenflow run {dag_id}")
    return page.items[0].run_id
