"""``evenflow runs``."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from cyclopts import App, Parameter

from evenflow.cli.params import Params, parse_params
from evenflow.cli.remote import remote
from evenflow.cli.run_watch import watch_run
from evenflow.cli.terminal import Json, duration, local_time, print_json, print_table, say, state_text
from evenflow.client.rest import RestClient
from evenflow.errors import DagNotFound

app = App(name="runs", help="Trigger, list, show, watch and cancel runs.")

RunId = Annotated[str | None, Parameter(help="Name of the run; the newest if left out.")]


@app.command
async def trigger(
    dag_id: str,
    /,
    *,
    param: Params = None,
    run_id: Annotated[str | None, Parameter(help="Name of the run; made from the time if left out.")] = None,
    logical_date: Annotated[datetime | None, Parameter(help="ISO 8601 with offset.")] = None,
    priority: Annotated[
        int, Parameter(help="Tasks of runs with a higher one go first, whatever their own priority is; it may be negative.")
    ] = 0,
    json: Json = False,
) -> None:
    """Ask for a run and return at once. To watch it: `evenflow run`."""
    params = parse_params(param)
    if logical_date is not None:
        logical_date = logical_date.astimezone()
    async with remote() as client:
        run = await client.trigger_run(dag_id, run_id=run_id, params=params, logical_date=logical_date, priority=priority)
        paused = not json and (await client.get_dag(dag_id)).is_paused
    if json:
        print_json(run)
        return
    say(f"{run.run_id} is {run.state}. To watch it: evenflow runs watch {dag_id} {run.run_id}")
    if paused:
        say(f"The DAG is paused, so the run waits. To let it go: evenflow dags unpause {dag_id}", "yellow")


@app.command(name="list")
async def list_(
    dag_id: Annotated[str | None, Parameter(help="Of this DAG; of all if left out.")] = None,
    /,
    *,
    state: Annotated[Literal["queued", "running", "success", "failed"] | None, Parameter(help="In this state.")] = None,
    limit: Annotated[int, Parameter(help="How many at most.")] = 20,
    json: Json = False,
) -> None:
    """Runs, the newest first."""
    async with remote() as client:
        page = await client.list_runs(dag_id=dag_id, state=state, limit=limit)
    if json:
        print_json({"runs": page.items, "more": page.more})
        return
    rows = (
        (r.dag_id, r.run_id, state_text(r.state), r.priority or "", local_time(r.started_at), duration(r.elapsed_s), r.reason)
        for r in page.items
    )
    columns = ("DAG", "run", "state", "#priority", "started", "#took", "why")
    print_table(columns, rows, empty="No runs. To make one: evenflow run <dag_id>")
    if page.more:
        say(f"... and more; see them with --limit {2 * limit}", "bright_black")


@app.command
async def show(dag_id: str, run_id: RunId = None, /, *, json: Json = False) -> None:
    """A run, and how its tasks stand."""
    async with remote() as client:
        run = await client.get_run(dag_id, run_id or await newest_run(client, dag_id))
    if json:
        print_json(run)
        return
    say(f"{run.dag_id}  {run.run_id}", "bold")
    facts = {
        "state": run.state + (f": {run.reason}" if run.reason else ""),
        "took": f"{duration(run.elapsed_s)} from {local_time(run.started_at)}" if run.started_at else "not started",
        "kind": f"{run.run_type}, version {run.version_number} of the DAG",
        "priority": str(run.priority or ""),
        "params": ", ".join(f"{name}={value!r}" for name, value in run.params.items()) or "none",
        "cancelled by": run.cancelled_by or "",
        "logical date": local_time(run.logical_date),
    }
    for name, value in facts.items():
        if value:
            say(f"  {name:<12} {value}")
    say("")
    print_table(
        ("state", "#tasks"), ((state_text(name), count) for name, count in run.tasks_by_state.items()), empty="No tasks yet."
    )


@app.command
async def watch(dag_id: str, run_id: RunId = None, /) -> int:
    """Follow a run to its end. Ctrl-C stops watching, the run goes on. The exit code is 1 when the run failed."""
    async with remote() as client:
        return await watch_run(client, dag_id, run_id or await newest_run(client, dag_id), interrupt="leave")


@app.command
async def cancel(dag_id: str, run_id: RunId = None, /, *, json: Json = False) -> None:
    """End a run: nothing of it starts any more, what runs is killed, then it fails."""
    async with remote() as client:
        run = await client.cancel_run(dag_id, run_id or await newest_run(client, dag_id))
    if json:
        print_json(run)
    else:
        say(f"{run.run_id} is being cancelled")


async def newest_run(client: RestClient, dag_id: str) -> str:
    """Raises :class:`DagNotFound` when there is none."""
    page = await client.list_runs(dag_id=dag_id, limit=1)
    if not page.items:
        await client.get_dag(dag_id)  # which says when there is not even the DAG
        raise DagNotFound(f"The DAG {dag_id!r} has not run yet. To run it: evenflow run {dag_id}")
    return page.items[0].run_id
