"""``evenflow approvals`` and ``evenflow approve``."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.input.params import Limit, Params, parse_params
from evenflow.cli.input.run_names import RunArgument, RunNamed, found_run
from evenflow.cli.output.replies import Cell, Reply, listed, replies, verb
from evenflow.cli.output.terminal import print_table, say
from evenflow.cli.remote import read_pages, remote
from evenflow.contracts import rest
from evenflow.core.model import UNMAPPED, instance_name
from evenflow.core.people.approvals import APPROVE, words_of
from evenflow.core.quantities import duration

app = App(name="approvals", help="List and show what tasks ask people.")

MapIndex = Annotated[int, Parameter(help="Which instance of a mapped task.")]


@verb(app, "list")
async def list_(
    dag_id: Annotated[str | None, Parameter(help="Only those of tasks of this DAG.")] = None,
    /,
    *,
    limit: Limit = 50,
) -> Reply:
    """The questions that wait for people, the longest waiting first."""
    async with remote() as client:
        page = await read_pages(partial(client.list_approvals, dag_id=dag_id), limit)
    now = datetime.now(UTC)
    cells: dict[str, Cell[rest.approvals.Approval]] = {
        "task_id": lambda a: instance_name(a.task_id, a.map_index),
        "asked_at": lambda a: duration((now - a.asked_at).total_seconds()),
    }
    return listed("approvals", page, rest.approvals.Approval, cells=cells, limit=limit, empty="Nothing waits for people.")


@verb(app)
async def show(run: RunNamed, task_id: str, /, *, run_id: RunArgument = None, map_index: MapIndex = UNMAPPED) -> Reply:
    """A task's question, with its form."""
    async with remote() as client:
        found = await client.get_approval(*await found_run(client, run, run_id), task_id, map_index=map_index)
    return Reply(found, lambda: _show(found))


@replies
async def approve(
    run: RunNamed,
    task_id: str,
    /,
    *choice: Annotated[str, Parameter(help="One of the answers that the task takes, or several if it takes several.")],
    param: Params = None,
    run_id: RunArgument = None,
    map_index: MapIndex = UNMAPPED,
) -> Reply:
    """Answer a task's question. The first answer counts.

    `evenflow approve release/2026-01-01 deploy` approves; with `reject` at its end it rejects. `--param` fills in the form.
    """
    values = parse_params(param)
    async with remote() as client:
        names = await found_run(client, run, run_id)
        done = await client.answer(*names, task_id, choice=list(choice) or APPROVE, values=values, map_index=map_index)
    task = instance_name(task_id, map_index)
    return Reply(done, f"{done.answered_by} answered {words_of(done.choice)!r} to {task} of {'/'.join(names)}")


def _show(found: rest.approvals.Approval) -> None:
    say(found.subject, "bold")
    if found.body:
        say(found.body)
    rows = [(p.name, "" if p.required else p.default, p.description) for p in found.params]
    if rows:
        print_table(("field", "default", "what"), rows, empty="")
    choices = (" " if found.multiple else " | ").join(found.choices)
    params = "".join(f" --param {p.name}=..." for p in found.params if p.required)
    index = "" if found.map_index == UNMAPPED else f" --map-index {found.map_index}"
    say(f"To answer: evenflow approve {found.dag_id}/{found.run_id} {found.task_id} {choices}{params}{index}", "cyan")
