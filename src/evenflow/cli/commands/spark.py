"""``evenflow spark``: what a try's application on Spark does or did, and what to change."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from cyclopts import App, Parameter
from rich.table import Table
from rich.text import Text

from evenflow.cli.commands.tasks import MapIndex, only_instance
from evenflow.cli.input.run_names import Dag, RunArgument, named_run
from evenflow.cli.output.replies import Reply, verb
from evenflow.cli.output.terminal import output
from evenflow.cli.remote import remote
from evenflow.contracts.rest.tasks import SparkStages
from evenflow.core.model import UNMAPPED
from evenflow.spark.advice import called, compare, seconds, size, slowest
from evenflow.spark.status import ApplicationFigures, StageFigures

_NOTHING = frozenset({seconds(0), size(0)})

app = App(name="spark", help="Say what a task on Spark does and did, stage by stage, and which setting to change.")


@verb(app)
async def explain(
    dag: Dag,
    task_id: str,
    /,
    *,
    run: RunArgument = None,
    map_index: MapIndex = None,
    try_number: Annotated[int | None, Parameter(name="--try", help="Which try; the newest if left out.")] = None,
    against: Annotated[int | None, Parameter(help="Number of another try, which was before: what has changed since.")] = None,
) -> Reply:
    """The stages of a try on Spark, so far while it runs: the slowest, skew and its key, spill, and the setting to change."""
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run)
        index = await only_instance(client, dag_id, run_id, task_id) if map_index is None else map_index

        async def told(number: int | None) -> SparkStages:
            return await client.get_spark_stages(dag_id, run_id, task_id, map_index=index, try_number=number)

        stages = await told(try_number)
        changes = compare((await told(against)).application, stages.application) if against is not None else []
    return Reply({**stages.model_dump(mode="json"), "changes": changes}, lambda: _print(stages, changes))


@verb(app)
async def ui(dag: Dag, task_id: str, /, *, run: RunArgument = None, map_index: MapIndex = None) -> Reply:
    """The address of a running task's Spark UI: the task's page in the web UI links to it.

    `evenflow ui` logs a browser in. With --json the path of the API is printed, also for programs with a token.
    """
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run)
        index = await only_instance(client, dag_id, run_id, task_id) if map_index is None else map_index
        found = await client.find_spark_ui(dag_id, run_id, task_id, map_index=index)
    names = "/".join(quote(text, safe="") for text in (dag_id, "runs", run_id, "tasks", task_id))
    page = f"{client.url.partition(',')[0].rstrip('/')}/dags/{names}" + (f"?map={index}" if index != UNMAPPED else "")
    told = f"Try {found.try_number} is the application {found.application_id}. The link to its Spark UI is at {page}"
    return Reply({**found.model_dump(), "page": page}, lambda: output.print(Text(told), soft_wrap=True))


def _print(told: SparkStages, changes: list[str]) -> None:
    application = told.application
    so_far = ". It runs, and these are its stages so far" if told.runs else ""
    output.print(Text(f"Try {told.try_number}: {application.application_id}, {application.cores} cores{so_far}"), soft_wrap=True)
    if application.stages:
        output.print(stages_table(application))
    else:
        output.print("Spark has had no stage to do.")
    if application.left_out:
        output.print(Text(f"{application.left_out} more stages took less time than these."))
    for each in told.advice:
        output.print(Text(f"Stage {each.stage_id}. {each.text}"), soft_wrap=True)
        if each.conf:
            output.print(Text(f"  conf={dict(each.conf)!r}", style="bold"), soft_wrap=True)
    if application.stages and not told.advice:
        output.print("Nothing stands out.")
    for sentence in changes:
        output.print(Text(sentence), soft_wrap=True)


def stages_table(application: ApplicationFigures) -> Table:
    """A line for each stage, also in a terminal of 80 columns: what no stage has done has no column, and a long name is cut."""
    stages = application.stages
    columns = {
        "stage": [str(stage.stage_id) for stage in stages],
        "what": [called(stage) for stage in stages],
        "tasks": [_tasks(stage) for stage in stages],
        "time": [seconds(stage.wall_s) for stage in stages],
        "longest task": [seconds(stage.longest_task_s) for stage in stages],
        "GC": [seconds(stage.gc_s) for stage in stages],
        "read": [size(stage.input_bytes) for stage in stages],
        "shuffled": [size(stage.shuffle_read_bytes) for stage in stages],
        "spilled": [size(stage.spilled_disk_bytes) for stage in stages],
        "memory a task": [size(stage.peak_memory_bytes / max(stage.tasks, 1)) for stage in stages],
    }
    done = {title: cells for title, cells in columns.items() if not set(cells) <= _NOTHING}
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for title, cells in done.items():
        if title == "what":
            table.add_column(title)
        else:
            table.add_column(title, justify="right", width=max(map(len, (*cells, *title.split()))))
    longest = slowest(application)
    for stage, row in zip(stages, zip(*done.values(), strict=True), strict=True):
        texts = (Text(cell, no_wrap=True, overflow="ellipsis") for cell in row)
        table.add_row(*texts, style="bold" if stage is longest else None)
    return table


def _tasks(stage: StageFigures) -> str:
    return f"{stage.done_tasks} of {stage.tasks}" if stage.done_tasks < stage.tasks else str(stage.tasks)
