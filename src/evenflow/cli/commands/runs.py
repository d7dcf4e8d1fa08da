"""``evenflow runs``."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from cyclopts import App, Parameter

from evenflow.cli.commands.operations import ASKED, THIS_RUN, Manner, Runs, clear_tasks, mark_tasks
from evenflow.cli.input.params import Conf, Limit, Params, parse_params, refuse_undeclared
from evenflow.cli.input.questions import Yes, check_agreed, check_that_somebody_is_there
from evenflow.cli.input.run_names import Dag, RunArgument, named_run
from evenflow.cli.output.replies import Cell, Reply, listed, verb
from evenflow.cli.output.terminal import local_date, local_time, print_table, say, state_text
from evenflow.cli.remote import read_pages, remote
from evenflow.cli.run.watch import watch_run
from evenflow.contracts import rest
from evenflow.core.callbacks import CALLBACK_DAG
from evenflow.core.quantities import counted, duration
from evenflow.core.service_states import ServiceState
from evenflow.core.states import RunState
from evenflow.errors import ParamError

app = App(name="runs")

RunId = Annotated[str | None, Parameter(name="--run", help="Name or date of the run; the newest if left out.")]


@verb(app)
async def trigger(
    dag_id: str,
    /,
    *,
    param: Params = None,
    conf: Conf = None,
    run_id: Annotated[str | None, Parameter(help="Name of the run; made from the time if left out.")] = None,
    logical_date: Annotated[
        datetime | None, Parameter(help="ISO 8601 with offset; a DAG has one run of each. None if left out.")
    ] = None,
    note: Annotated[str | None, Parameter(help="What you want to remember of it.")] = None,
    priority: Annotated[
        int, Parameter(help="Tasks of runs with a higher one go first, whatever their own priority is; it may be negative.")
    ] = 0,
) -> Reply:
    """Ask for a run and return at once. To watch it: `evenflow run`."""
    params = parse_params(param, conf)
    if logical_date is not None and logical_date.tzinfo is None:
        shown = logical_date.isoformat()
        raise ParamError(f"--logical-date {shown} has no zone. Type for example: --logical-date {shown}+00:00")
    async with remote() as client:
        if param:
            refuse_undeclared(param, dag_id, [each.name for each in (await client.get_dag(dag_id)).params])
        run = await client.trigger_run(
            dag_id, run_id=run_id, params=params, logical_date=logical_date, priority=priority, note=note
        )
        dag = await client.get_dag(dag_id)

    def tell() -> None:
        say(f"{run.run_id} is {run.state}. To watch it: evenflow runs watch {dag_id} {run.run_id}")
        if dag.is_paused:
            say(f"The DAG is paused, so the run waits. To let it go: evenflow dags unpause {dag_id}", "yellow")
        elif dag.service_state == ServiceState.DRAINING:
            say(f"The DAG drains, so the run waits. To let it go: evenflow activate {dag_id}", "yellow")

    return Reply(run, tell)


@verb(app, "list")
async def list_(
    dag_id: Annotated[str | None, Parameter(help="Of this DAG; of all if left out.")] = None,
    /,
    *,
    state: Annotated[RunState | None, Parameter(help="In this state.")] = None,
    limit: Limit = 20,
) -> Reply:
    """Runs, the newest first."""
    async with remote() as client:
        page = await read_pages(partial(client.list_runs, dag_id=dag_id, state=state), limit)
        if dag_id is not None and not page.items:
            await client.get_dag(dag_id)  # this reports a missing DAG
    cells: dict[str, Cell[rest.runs.RunSummary]] = {
        "priority": lambda run: run.priority or "",
        "reason": lambda run: f"in quarantine: {run.quarantine}" if run.quarantine else run.reason,
    }
    empty = "No runs. To make one: evenflow run <dag_id>"
    return listed("runs", page, rest.runs.RunSummary, cells=cells, limit=limit, empty=empty)


@verb(app)
async def show(dag: Dag, /, run_id: RunId = None) -> Reply:
    """A run, and the states of its tasks."""
    async with remote() as client:
        run = await client.get_run(*await named_run(client, dag, run_id))
    return Reply(run, lambda: _show(run))


def _show(run: rest.runs.RunDetail) -> None:
    say(f"{run.dag_id}  {run.run_id}", "bold")
    facts = {
        "state": run.state + (f": {run.reason}" if run.reason else ""),
        "quarantine": run.quarantine or "",
        "took": f"{duration(run.elapsed_s)} from {local_time(run.started_at)}" if run.started_at else "not started",
        "kind": f"{run.run_type}, version {run.version_number} of the DAG",
        "priority": str(run.priority or ""),
        "params": ", ".join(f"{name}={value!r}" for name, value in run.params.items()) or "none",
        "cancelled by": "" if f"cancelled by {run.cancelled_by}" in (run.reason or "") else run.cancelled_by or "",
        "logical date": local_date(run.logical_date),
        "data": f"from {local_date(run.data_interval_start)} to {local_date(run.data_interval_end)}"
        if run.data_interval_end
        else "",
        "backfill": str(run.backfill_id or ""),
        "trace": run.trace_id or "",
        "note": run.note or "",
    }
    for name, value in facts.items():
        if value:
            say(f"  {name:<12} {value}")
    say("")
    print_table(
        ("state", "#tasks"), ((state_text(name), count) for name, count in run.tasks_by_state.items()), empty="No tasks yet."
    )
    for deadline in run.deadlines:
        _show_deadline(deadline)
    if run.callbacks:
        say("")
        rows = ((c.event, _place(c), state_text(c.state), c.run_id, c.reason) for c in run.callbacks)
        print_table(("callback", "of", "state", "run", "why"), rows, empty="")
        say(f"To see what one printed: evenflow tasks logs {CALLBACK_DAG} callback --run {run.callbacks[-1].run_id}")


def _show_deadline(deadline: rest.runs.RunDeadline) -> None:
    match deadline.state:
        case "missed":
            say(f"Missed its deadline {deadline.name!r}, which was {local_time(deadline.due_at)}.", "yellow")
        case "met":
            say(f"Met its deadline {deadline.name!r}, {local_time(deadline.due_at)}.")
        case _:
            say(f"Is to have ended at {local_time(deadline.due_at)}: {deadline.name!r}.")


def _place(call: rest.runs.CallbackRun) -> str:
    if call.task_id is None:
        return "the run"
    index = "" if call.map_index is None else f"[{call.map_index}]"
    return f"{call.task_id}{index}" + (f", try {call.try_number}" if call.try_number else "")


@verb(app)
async def note(
    dag: Dag,
    text: Annotated[str, Parameter(help='What is to be remembered; "" takes the note away. A run may be named before it.')],
    rest: Annotated[str | None, Parameter(show=False)] = None,
    /,
    *,
    run: RunArgument = None,
) -> Reply:
    """Store a note about a run, by default the newest."""
    named, text = (run, text) if rest is None else (text, rest)
    if rest is not None and run is not None:
        raise ParamError(f"This is one text too many: {text!r}. Put what you want to remember in quotes.")
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, named)
        if rest is None and text and text in {each.run_id for each in (await client.find_run(text)).items if each.dag_id == dag_id}:
            raise ParamError(
                f"{text!r} is a run. Type the text too, or '' to take its note away: evenflow runs note {dag_id}/{text} ''"
            )
        noted = await client.set_note(dag_id, run_id, note=text or None)
    return Reply(noted, f"{noted.run_id} has {'a' if noted.note else 'no'} note")


@app.command
async def watch(dag: Dag, /, run_id: RunId = None) -> int:
    """Follow a run to its end. Ctrl-C stops watching, the run continues. The exit code is 1 when the run failed."""
    async with remote() as client:
        return await watch_run(client, *await named_run(client, dag, run_id), interrupt="leave")


@verb(app)
async def cancel(
    dag: Dag,
    /,
    run_id: RunId = None,
    *,
    every: Annotated[bool, Parameter(name="--all", negative="", help="All runs of the DAG that have not ended.")] = False,
    state: Annotated[Literal["queued", "running"] | None, Parameter(help="With --all: only those in this state.")] = None,
    dry_run: Annotated[bool, Parameter(negative=(), help="Only say what would be touched.")] = False,
    yes: Yes = False,
) -> Reply:
    """End a run, or all of a DAG: nothing of them starts any more, running tasks are killed, then the runs fail. Asks before it
    ends all.
    """
    if every:
        return await _cancel_all(dag, run_id, state, dry_run=dry_run, yes=yes)
    if state is not None:
        raise ParamError(f"--state goes with --all. Type: evenflow runs cancel {dag} --all --state {state}")
    async with remote() as client:
        named = await named_run(client, dag, run_id)
        touched = await client.preview_cancel(*named)
        if dry_run:
            return Reply(touched, f"{named[1]} would be cancelled. {touched.told}")
        run = await client.cancel_run(*named)
    return Reply(run, f"{run.run_id} is being cancelled. {touched.told}")


async def _cancel_all(
    dag_id: str, run_id: str | None, state: Literal["queued", "running"] | None, *, dry_run: bool, yes: bool
) -> Reply:
    if run_id is not None or "/" in dag_id:
        raise ParamError("--all is about a DAG. Leave the run out, or leave --all out.")
    if not yes and not dry_run:
        check_that_somebody_is_there()
    async with remote() as client:
        if not yes or dry_run:
            would = await client.cancel_runs(dag_id, state=state, dry_run=True)
            what = f"{'at least ' * would.more}{counted(would.runs, f'{state} run' if state else 'run')} of {dag_id}"
            touched = would.effect.told if would.effect else ""
            if dry_run:
                return Reply(would, f"{what} would be cancelled. {touched}".strip())
            if would.runs:
                check_agreed(f"This cancels {what}: what runs is killed, and they fail. {touched}".strip())
        answer = await client.cancel_runs(dag_id, state=state)
        runs = answer.runs
        while answer.more and answer.runs:
            answer = await client.cancel_runs(dag_id, state=state)
            runs += answer.runs
    words = f"{counted(runs, 'run')} {'is' if runs == 1 else 'are'} being cancelled"
    return Reply({"dag_id": dag_id, "runs": runs}, words)


@verb(app)
async def clear(dag: Dag, /, run_id: RunId = None, *, runs: Runs = THIS_RUN, manner: Manner = ASKED) -> Reply:
    """Make all tasks of a run run again. Running ones are killed first."""
    return await clear_tasks(dag, run_id, asdict(runs), manner)


@verb(app)
async def rerun(dag: Dag, /, run_id: RunId = None, *, runs: Runs = THIS_RUN, manner: Manner = ASKED) -> Reply:
    """Make the failed tasks of a run run again, with those that could not start because of them or of a cancel."""
    return await clear_tasks(dag, run_id, {**asdict(runs), "only": "failed"}, manner)


@verb(app)
async def mark(state: Literal["success", "failed"], dag: Dag, /, run_id: RunId = None, *, manner: Manner = ASKED) -> Reply:
    """Mark how a run ended: success marks all its tasks; failed kills running tasks and skips the rest."""
    return await mark_tasks(dag, run_id, state, {}, manner, of_run=True)


@verb(app)
async def events(
    dag: Dag,
    /,
    run_id: RunId = None,
    *,
    limit: Limit = 200,
) -> Reply:
    """The events of a run, the oldest first, with their actors."""
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run_id)
        page = await read_pages(partial(client.list_run_events, dag_id, run_id), limit)
    empty, kind = "Nothing has happened to it yet.", rest.runs.RunHistoryEntry
    return listed("events", page, kind, limit=limit, empty=empty, dag_id=dag_id, run_id=run_id)


@verb(app)
async def delete(
    dag: Dag,
    /,
    run_id: Annotated[str | None, Parameter(name="--run", help="Name or date of the run.")] = None,
    *,
    yes: Yes = False,
) -> Reply:
    """Delete a run that has ended: its tasks, results, history and logs."""
    if run_id is None and "/" not in dag:
        raise ParamError(f"Name the run. To see those of the DAG: evenflow runs list {dag}")
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run_id)
        check_agreed(f"The run {run_id} of {dag_id} will be deleted, with its results, history and logs.", yes=yes)
        run = await client.delete_run(dag_id, run_id)
    return Reply(run, f"{run.run_id} is deleted")
