"""``evenflow triggers``."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.input.params import Limit
from evenflow.cli.output.replies import Cell, Reply, listed, verb
from evenflow.cli.remote import read_pages, remote
from evenflow.contracts import rest
from evenflow.core.model import instance_name
from evenflow.core.quantities import duration

app = App(name="triggers", help="List what deferred tasks wait for.")


@verb(app, "list")
async def list_(
    dag_id: Annotated[str | None, Parameter(help="Only those of tasks of this DAG.")] = None,
    /,
    *,
    limit: Limit = 50,
) -> Reply:
    """Waiting tasks, their triggers, since when, where the triggers run and how often they have failed; the longest waiting
    first.
    """
    async with remote() as client:
        page = await read_pages(partial(client.list_triggers, dag_id=dag_id), limit)
    now = datetime.now(UTC)
    cells: dict[str, Cell[rest.tasks.WaitingTrigger]] = {
        "task_id": lambda t: instance_name(t.task_id, t.map_index),
        "deferred_at": lambda t: duration((now - t.deferred_at).total_seconds()),
        "triggerer": lambda t: _where(t, now),
        "failures": lambda t: t.failures or "",
    }
    return listed("triggers", page, rest.tasks.WaitingTrigger, cells=cells, limit=limit, empty="No task is deferred.")


def _where(trigger: rest.tasks.WaitingTrigger, now: datetime) -> str:
    if trigger.triggerer is not None:
        return trigger.triggerer
    if trigger.due_at > now:
        return f"tried again in {duration((trigger.due_at - now).total_seconds())}"
    return f"waits for a triggerer of queue {trigger.queue}"
