"""``evenflow dags``."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated

from cyclopts import App, Parameter
from rich.text import Text

from evenflow.cli.commands.dag_check import check
from evenflow.cli.commands.dag_versions import diff, sources, tell_error, tell_plugins, tell_warnings, versions
from evenflow.cli.commands.runs import trigger
from evenflow.cli.input.dates import aware
from evenflow.cli.input.params import Limit
from evenflow.cli.input.questions import Yes, check_agreed, check_that_somebody_is_there
from evenflow.cli.output.dag_graph import dot_lines, mermaid_lines, tree_lines
from evenflow.cli.output.replies import Cell, Reply, listed, print_records, verb
from evenflow.cli.output.terminal import local_time, print_lines, print_table, say, state_text
from evenflow.cli.remote import read_pages, remote
from evenflow.contracts import rest
from evenflow.core.limits import PAGE
from evenflow.core.object_names import in_words
from evenflow.core.quantities import counted
from evenflow.core.service_states import ServiceState

app = App(name="dags")
for command in (check, versions, diff, sources):
    app.command(command)
app.command(trigger, show=False)  # Airflow's name of `evenflow runs trigger`


@verb(app, "list", meant=("errors", "list-import-errors"))
async def list_(
    *,
    retired: Annotated[bool, Parameter(negative=(), help="Also DAGs whose file is gone.")] = False,
    limit: Limit = PAGE,
) -> Reply:
    """All DAGs, by name, and the files that cannot be read."""
    async with remote() as client:
        page = await read_pages(partial(client.list_dags, retired=retired), limit)
        errors, warnings = await client.list_parse_errors(), await client.list_parse_warnings()
        bundles = (await client.list_bundles()).items

    def tell_problems() -> None:
        for error in errors.items:
            if error.is_read:
                tell_error(error)
        for warned in warnings.items:
            tell_warnings(warned)
        tell_plugins(bundles)
        if left := sorted({error.bundle for error in errors.items if not error.is_read}):
            say(f"\nThere are errors, too, in what no processor reads now: {', '.join(left)}", "bright_black")

    return listed(
        "dags",
        page,
        rest.dags.DagSummary,
        cells=_CELLS,
        limit=limit,
        empty="No DAGs yet. Put a file with one into the DAG folder.",
        then=tell_problems,
        parse_errors=errors.items,
        parse_warnings=warnings.items,
        plugin_warnings=sorted({warning for bundle in bundles for warning in bundle.warnings}),
    )


@verb(app)
async def show(
    dag_id: str,
    /,
    *,
    mermaid: Annotated[bool, Parameter(negative=(), help="Print its graph for Mermaid instead.")] = False,
    dot: Annotated[bool, Parameter(negative=(), help="Print its graph for Graphviz instead.")] = False,
) -> Reply:
    """A DAG with its tasks, their graph, and its parameters."""
    async with remote() as client:
        dag = await client.get_dag(dag_id)
    if mermaid or dot:
        return Reply(dag, lambda: print_lines(mermaid_lines(dag.tasks) if mermaid else dot_lines(dag.dag_id, dag.tasks)))
    return Reply(dag, lambda: _show(dag))


@verb(app)
async def pause(dag_id: str, /) -> Reply:
    """Start no more tasks of this DAG. Running ones continue."""
    return await _set_paused(dag_id, True)


@verb(app)
async def unpause(dag_id: str, /) -> Reply:
    """Let this DAG continue."""
    return await _set_paused(dag_id, False)


@verb(app)
async def release(dag_id: str, /, *, to: Annotated[str, Parameter(help="The bundle that is to have it.")]) -> Reply:
    """Give a DAG id to another bundle. An id belongs to the bundle that had it first, because secrets may be meant for that one
    alone.
    """
    async with remote() as client:
        dag = await client.release_dag(dag_id, bundle=to)
    return Reply(dag, f"{dag_id} is now of bundle {to}: the file there that defines it has it")


@verb(app)
async def skip(
    dag_id: str,
    /,
    *,
    until: Annotated[
        datetime | None, Parameter(help="The last logical date, included; UTC unless it has an offset. Now when absent.")
    ] = None,
) -> Reply:
    """Count the dates of a DAG's schedule up to one as done: no run is made of them, also with catchup."""
    async with remote() as client:
        dag = await client.skip_dates(dag_id, until=until and aware(until))
    return Reply(dag, f"{dag_id}{_following(dag) or ' has no next run'}")


@verb(app)
async def delete(dag_id: str, /, *, yes: Yes = False) -> Reply:
    """Delete a DAG whose file is gone, with its versions, and its runs with their results, history and logs."""
    if not yes:
        check_that_somebody_is_there()
    async with remote() as client:
        if not yes:
            runs = counted((await client.delete_dag(dag_id, dry_run=True)).runs, "run")
            check_agreed(f"{dag_id} will be deleted, with {runs} and all results, history and logs.")
        deleted = await client.delete_dag(dag_id)
    return Reply(deleted, f"{dag_id} is deleted, with {counted(deleted.runs, 'run')}")


async def _set_paused(dag_id: str, is_paused: bool) -> Reply:
    async with remote() as client:
        dag = await client.set_paused(dag_id, is_paused=is_paused)
    return Reply(dag, f"{dag_id} is paused; what runs goes on" if is_paused else f"{dag_id} is active{_following(dag)}")


def _following(dag: rest.dags.DagSummary) -> str:
    return f"; its next run is at {local_time(dag.next_run_at)}" if dag.next_run_at else ""


def _name(dag: rest.dags.DagSummary) -> Text:
    name = Text(dag.dag_id, style="bold")
    if dag.display_name != dag.dag_id:
        name.append(f"  {dag.display_name}", style="not bold")
    return name


def _last(dag: rest.dags.DagSummary) -> Text:
    return state_text(dag.last_run_state) if dag.last_run_state else Text("never", style="bright_black")


def _state(dag: rest.dags.DagSummary) -> Text:
    if not dag.is_active:
        return Text("gone", style="bright_black")
    words = in_words(dag.service_state)
    return Text(words, style="" if words == in_words(ServiceState.ACTIVE) else "yellow")


def _schedule(dag: rest.dags.DagSummary) -> Text:
    if dag.schedule is None:
        return Text("by hand", style="bright_black")
    return Text(dag.schedule if dag.timezone in (None, "UTC") else f"{dag.schedule} {dag.timezone}")


_CELLS: dict[str, Cell[rest.dags.DagSummary]] = {
    "dag_id": _name,
    "service_state": _state,
    "schedule": _schedule,
    "last_run_state": _last,
}


def _at_most(limit: int | None, noun: str) -> str:
    return f"any number of {noun}s" if limit is None else counted(limit, noun)


def _show(dag: rest.dags.DagDetail) -> None:
    say(dag.dag_id if dag.display_name == dag.dag_id else f"{dag.dag_id}  {dag.display_name}", "bold")
    for text in filter(None, (dag.description, dag.doc.strip())):
        say(text)
    facts = {
        "file": f"{dag.file} in {dag.bundle}, version {dag.version_number} of {local_time(dag.updated_at)}",
        "schedule": _schedule(dag).plain + (f", next at {local_time(dag.next_run_at)}" if dag.next_run_at else ""),
        "state": in_words(dag.service_state) + (f": {dag.paused_reason}" if dag.paused_reason else ""),
        "limits": f"{_at_most(dag.max_active_runs, 'run')}, {_at_most(dag.max_active_tasks, 'task')} of each at once",
        "last run": f"{dag.last_run_id} ({dag.last_run_state})" if dag.last_run_id else "never",
        "owner, tags": ", ".join(filter(None, (dag.owner, *dag.tags))) or "none",
        **{f"find {owner}": link for owner, link in dag.owner_links.items()},
    }
    say("")
    for name, value in facts.items():
        say(f"  {name:<12} {value}")
    if dag.params:
        say("")
        params = (
            (p.name, "required" if p.required else p.default, p.json_schema.get("type", ""), p.description) for p in dag.params
        )
        print_table(("parameter", "default", "type", "description"), params, empty="")
    if dag.deadlines:
        say("")
        print_records(dag.deadlines, rest.dags.DagDeadline, empty="")
    say("")
    tasks = (
        (
            f"{t.task_id}{' []' if t.mapped else ''}" + (f"  {t.display_name}" if t.display_name != t.task_id else ""),
            t.operator,
            ", ".join(t.upstream),
            t.trigger_rule,
            t.pool,
            t.priority_weight,
            t.retries,
        )
        for t in dag.tasks
    )
    print_table(("task", "kind", "after", "rule", "pool", "#priority", "#retries"), tasks, empty="It has no tasks.")
    say("")
    for line in tree_lines(dag.tasks):
        say(f"  {line}")
