"""``evenflow tasks``."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, Literal, cast

from cyclopts import App, Parameter
from rich.text import Text

from evenflow.cli.commands.operations import ASKED, THESE_TASKS, THIS_RUN, Around, Manner, Runs, clear_tasks, mark_tasks
from evenflow.cli.input.params import Limit
from evenflow.cli.input.run_names import Dag, RunArgument, named_run
from evenflow.cli.output.replies import Cell, Json, Reply, listed, verb
from evenflow.cli.output.terminal import STATE_ORDER, errors, local_time, print_json, print_table, say
from evenflow.cli.remote import read_pages, remote
from evenflow.client.rest import RestClient
from evenflow.contracts import rest
from evenflow.core.likeness import did_you_mean, few
from evenflow.core.model import instance_name
from evenflow.core.plain_text import ColouredPieces
from evenflow.core.quantities import duration
from evenflow.core.states import TaskEvent, TaskState, in_state
from evenflow.errors import DagNotFound, ParamError

app = App(name="tasks")

MapIndexes = Annotated[list[int] | None, Parameter(help="Only this instance of a mapped task; repeat it for more.")]
MapIndex = Annotated[int | None, Parameter(help="Which instance of a mapped task.")]


@verb(app, "list")
async def list_(
    dag: Dag,
    /,
    *,
    run: RunArgument = None,
    task: Annotated[str | None, Parameter(help="Only this task.")] = None,
    state: Annotated[str | None, Parameter(help=f"Only in this state: {', '.join(STATE_ORDER)}.")] = None,
    limit: Limit = 1000,
) -> Reply:
    """The tasks of a run, in the order of the DAG."""
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run)
        wanted = cast(TaskState | None, state)  # the API names the valid ones
        page = await read_pages(partial(client.list_tasks, dag_id, run_id, task_id=task, state=wanted), limit)
        dag_tasks = (await client.get_dag(dag_id)).tasks
        if not page.items and task is not None:
            await check_task(client, dag_id, run_id, task)
        counts = (await client.get_run(dag_id, run_id)).tasks_by_state if page.more and task is None else {}
    shown = {t.task_id: f"  {t.display_name}" for t in dag_tasks if t.display_name != t.task_id}
    cells: dict[str, Cell[rest.tasks.InstanceSummary]] = {
        "task_id": lambda t: Text.assemble((instance_name(t.task_id, t.map_index), "bold"), shown.get(t.task_id, "")),
        "try_number": lambda t: f"{t.try_number or ''}{f' +{t.losses} lost' if t.losses else ''}",
    }

    def tell_rest() -> None:
        if page.more:
            say(_rest(len(page.items), counts.get(state, 0) if state else sum(counts.values())), "bright_black")

    kind, empty = rest.tasks.InstanceSummary, "No such tasks."
    return listed("tasks", page, kind, cells=cells, empty=empty, then=tell_rest, dag_id=dag_id, run_id=run_id)


def _rest(shown: int, total: int) -> str:
    """Returns what to type for the instances of a list that was cut; ``total`` is 0 where it is not known."""
    if total > shown:
        return f"... and {total - shown:,} more; see fewer with --task or --state, or all with --limit {total}"
    return f"... and more; see fewer with --state, or more with --limit {10 * shown}"


@app.command
async def logs(
    dag: Dag,
    task_id: str | None = None,
    /,
    *,
    run: RunArgument = None,
    map_index: MapIndex = None,
    try_number: Annotated[int | None, Parameter(name="--try", help="Which try; the newest if left out.")] = None,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], negative=(), help="Wait for more until the try has ended.")] = False,
    json: Json = False,
) -> None:
    """The log of a task. A terminal gets its colours, and no other control sequences; `--json` has it unchanged."""
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run)
        task_id = task_id or await _only_task(client, dag_id)
        if map_index is None:
            map_index = await only_instance(client, dag_id, run_id, task_id)
        read = client.follow_log if follow else client.read_stored_log
        text, shown, is_empty, complete = [], ColouredPieces(), True, False
        async for part in read(dag_id, run_id, task_id, map_index=map_index, try_number=try_number):
            complete, is_empty = part.complete, is_empty and not part.text
            if json:
                text.append(part.text)
            else:
                sys.stdout.write(shown.feed(part.text))
                sys.stdout.flush()
    sys.stdout.write(shown.end())
    if is_empty and not json:
        of_instance = ["--map-index", str(map_index)] if map_index >= 0 else []
        why = shlex.join(["evenflow", "why", f"{dag_id}/{run_id}", task_id, *of_instance])
        so = (
            "nothing has been printed, and nothing follows" if complete else "the task has not begun, or has printed nothing so far"
        )
        said = f"The log is empty: {so}. To see how it stands, type: {why}"
        errors.print(Text(said), soft_wrap=True)
    if json:
        print_json(
            {
                "dag_id": dag_id,
                "run_id": run_id,
                "task_id": task_id,
                "map_index": map_index,
                "complete": complete,
                "log": "".join(text),
            }
        )


@verb(app)
async def links(dag: Dag, task_id: str, /, *, run: RunArgument = None, map_index: MapIndex = None) -> Reply:
    """Where the work of an operator of Airflow's is to be seen outside: the links that it has told."""
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run)
        index = await only_instance(client, dag_id, run_id, task_id) if map_index is None else map_index
        told = await client.get_links(dag_id, run_id, task_id, map_index=index)
    data = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": index, **told.model_dump(mode="json")}
    return Reply(data, lambda: print_table(("link", "URL"), told.links.items(), empty="It has told no link."))


@verb(app)
async def rendered(dag: Dag, task_id: str, /, *, run: RunArgument = None, map_index: MapIndex = None) -> Reply:
    """A task's rendered templates in its newest try, without secrets."""
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run)
        index = await only_instance(client, dag_id, run_id, task_id) if map_index is None else map_index
        fields = (await client.get_rendered(dag_id, run_id, task_id, map_index=index)).fields
    empty = "None of its fields was a template, or it has not begun."
    data = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": index, "fields": fields}
    return Reply(data, lambda: print_table(("field", "value"), fields.items(), empty=empty))


async def _only_task(client: RestClient, dag_id: str) -> str:
    """Returns the DAG's only task. Raises :class:`ParamError` if it has several."""
    ids = [task.task_id for task in (await client.get_dag(dag_id)).tasks]
    if len(ids) != 1:
        raise ParamError(f"Say whose log. {dag_id} has the tasks {few(ids)}. Type: evenflow tasks logs {dag_id} {ids[0]}")
    return ids[0]


async def only_instance(client: RestClient, dag_id: str, run_id: str, task_id: str) -> int:
    """Returns the map index to read when none is given: -1, or 0 if a mapped task has just one instance."""
    instances = (await client.list_tasks(dag_id, run_id, task_id=task_id, limit=2)).items
    if len(instances) == 1:
        return instances[0].map_index
    await check_task(client, dag_id, run_id, task_id)
    raise ParamError(f"The task {task_id!r} is mapped: say which instance. Type for example: --map-index 0")


async def check_task(client: RestClient, dag_id: str, run_id: str, task_id: str) -> None:
    """Raises :class:`DagNotFound` for a task that the run does not have. A mapped task may have no instances."""
    if (await client.list_tasks(dag_id, run_id, task_id=task_id, limit=1)).items:
        return
    known = [task.task_id for task in (await client.get_dag(dag_id)).tasks]
    if task_id not in known:
        raise DagNotFound(
            f"The run {run_id!r} of DAG {dag_id!r} has no task {task_id!r}.{did_you_mean(task_id, known)} "
            f"To see its tasks: evenflow tasks list {dag_id}"
        )


@verb(app)
async def clear(
    dag: Dag,
    /,
    *task_ids: str,
    run: RunArgument = None,
    map_index: MapIndexes = None,
    around: Around = THESE_TASKS,
    runs: Runs = THIS_RUN,
    only: Annotated[Literal["failed", "running"] | None, Parameter(help="Only what failed, or only what runs.")] = None,
    manner: Manner = ASKED,
) -> Reply:
    """Make tasks run again; without a task, all of the run. An ended run continues. Running tasks are killed first."""
    return await clear_tasks(dag, run, {**_scope(task_ids, map_index, around, runs), "only": only}, manner)


@verb(app)
async def mark(
    state: Literal["success", "failed", "skipped"],
    dag: Dag,
    /,
    *task_ids: str,
    run: RunArgument = None,
    map_index: MapIndexes = None,
    around: Around = THESE_TASKS,
    runs: Runs = THIS_RUN,
    manner: Manner = ASKED,
) -> Reply:
    """Mark how tasks ended, without running them. Running ones are killed first; tasks that failed because of them are
    tried again.
    """
    if not task_ids:
        raise ParamError(f"Name the tasks. To mark the whole run: evenflow runs mark {state} {dag}")
    return await mark_tasks(dag, run, state, _scope(task_ids, map_index, around, runs), manner)


@verb(app)
async def events(
    dag: Dag,
    task_id: str,
    /,
    *,
    run: RunArgument = None,
    map_index: MapIndex = None,
    limit: Limit = 200,
) -> Reply:
    """The events of a task, the oldest first, with their actors."""
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run)
        page = await read_pages(partial(client.list_task_events, dag_id, run_id, task_id, map_index=map_index), limit)
    cells: dict[str, Cell[rest.tasks.TaskHistoryEntry]] = {
        "map_index": lambda entry: instance_name(task_id, entry.map_index),
        "try_number": lambda entry: entry.try_number or "",
    }
    return listed(
        "events",
        page,
        rest.tasks.TaskHistoryEntry,
        cells=cells,
        limit=limit,
        empty="Nothing has happened to it yet.",
        dag_id=dag_id,
        run_id=run_id,
        task_id=task_id,
    )


@verb(app)
async def tries(dag: Dag, task_id: str, /, *, run: RunArgument = None, map_index: MapIndex = None) -> Reply:
    """Each try of a task: what it waited for, where a process of it ran, how long, and why that ended."""
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run)
        index = await only_instance(client, dag_id, run_id, task_id) if map_index is None else map_index
        told = await client.list_tries(dag_id, run_id, task_id, map_index=index)
    data = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": index, **told.model_dump(mode="json")}
    return Reply(data, partial(_show_tries, told, f"{dag_id}/{run_id} {task_id}"))


def _show_tries(told: rest.tasks.TaskTries, named: str) -> None:
    if told.is_cut:
        say("... and earlier ones, which are too many to tell", "bright_black")
    rows = []
    for one in told.tries:
        for at, part in enumerate(one.segments):
            state = "resumed" if part.state == TaskState.RUNNING and part.begun_by == TaskEvent.RESUME else in_state(part.state)
            took = duration(part.took_s) + ("" if part.ended_at else " so far")
            why = part.reason or (f"waits for {part.trigger}" if part.trigger else "")
            rows.append((one.try_number if at == 0 else "", state, local_time(part.began_at), took, part.worker, why))
    print_table(("#try", "segment", "began", "#took", "worker", "why"), rows, empty="It has had no try yet.")
    if told.tries:
        say(f"To see what one printed: evenflow tasks logs {named} --try {told.tries[-1].try_number}", "bright_black")


def _scope(task_ids: tuple[str, ...], map_indexes: list[int] | None, around: Around, runs: Runs) -> dict[str, Any]:
    return {"tasks": list(task_ids) or None, "map_indexes": map_indexes, **asdict(around), **asdict(runs)}
