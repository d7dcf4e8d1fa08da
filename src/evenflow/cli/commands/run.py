"""``evenflow run``: one run, watched from its beginning to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from evenflow.cli.input.params import Conf, Params, parse_params, refuse_undeclared
from evenflow.cli.output.replies import Json
from evenflow.cli.output.terminal import print_json, say
from evenflow.cli.run.place import RunPlace, reach_evenflow
from evenflow.cli.run.watch import ProgressStyle, watch_run
from evenflow.contracts import rest
from evenflow.core.likeness import did_you_mean
from evenflow.core.service_states import ServiceState
from evenflow.errors import DagError, DagNotFound
from evenflow.runtime.exits import ExitCode
from evenflow.runtime.settings import load_settings


async def run(
    target: Annotated[str, Parameter(help="A DAG id, or a Python file that defines DAGs.")],
    /,
    *,
    param: Params = None,
    conf: Conf = None,
    dag: Annotated[str | None, Parameter(help="Which DAG of the file, if it defines several.")] = None,
    run_id: Annotated[str | None, Parameter(help="Name of the run; made from the time if left out.")] = None,
    unpause: Annotated[bool, Parameter(negative=(), help="Unpause the DAG first; the run of a paused one waits.")] = False,
    detach: Annotated[bool, Parameter(negative=(), help="Return at once, and let the running Evenflow do it.")] = False,
    no_progress: Annotated[bool, Parameter(negative=(), help="Say nothing until it has ended.")] = False,
    json: Json = False,
) -> int:
    """Run a DAG, or a DAG file, and watch it to its end. The exit code is 1 when the run failed.

    It uses a running Evenflow (`evenflow up` on this home, or the one that EVENFLOW_API_URL names). Without one, it starts one for
    this run, on the project's own database, and stops it afterwards. Ctrl-C cancels the run; a second one leaves it alone.
    """
    params = parse_params(param, conf)
    file = as_file(target)
    async with reach_evenflow(load_settings(), file, must_run=detach) as place:
        dag_id = target if file is None else choose_dag(await place.dags_of_file(), dag, file)
        found = await place.find_dag(dag_id)
        refuse_undeclared(param, dag_id, [each.name for each in found.params])
        await _check_paused(place, found, unpause)
        started = await place.client.trigger_run(dag_id, run_id=run_id, params=params)
        if detach:
            if json:
                print_json(started)
            else:
                say(f"{started.run_id} is {started.state}. To watch it: evenflow runs watch {dag_id} {started.run_id}")
            return ExitCode.OK
        progress: ProgressStyle = "json" if json else "none" if no_progress else "auto"
        return await watch_run(place.client, dag_id, started.run_id, interrupt="cancel", progress=progress)


def as_file(target: str) -> Path | None:
    """Returns the meant file, or None when ``target`` is a DAG id. Raises :class:`DagNotFound` for a file that does not exist."""
    path = Path(target).expanduser()
    if path.is_file():
        return path.absolute()
    if target.endswith(".py") or "/" in target:
        raise DagNotFound(f"There is no file {target}.")
    return None


def choose_dag(dag_ids: list[str], wanted: str | None, file: Path) -> str:
    """Returns the DAG to run. Raises :class:`DagNotFound` or :class:`DagError` when the choice is not clear."""
    known = ", ".join(dag_ids)
    if wanted is not None:
        if wanted not in dag_ids:
            raise DagNotFound(
                f"{file.name} defines no DAG {wanted!r}; it defines {known or 'none'}.{did_you_mean(wanted, dag_ids)}"
            )
        return wanted
    if not dag_ids:
        raise DagNotFound(f"{file.name} defines no DAG. Call the function that @dag decorates, at the end of the file.")
    if len(dag_ids) > 1:
        raise DagError(f"{file.name} defines several DAGs: {known}. Say which one: --dag {dag_ids[0]}")
    return dag_ids[0]


async def _check_paused(place: RunPlace, dag: rest.dags.DagDetail, unpause: bool) -> None:
    if dag.is_paused or dag.service_state == ServiceState.DRAINING:
        if not unpause:
            state = "is paused" if dag.is_paused else "drains"
            raise DagError(f"The DAG {dag.dag_id!r} {state}, so its run would wait. To run it: evenflow run ... --unpause")
        await place.client.set_paused(dag.dag_id, is_paused=False)
