"""``evenflow triggers``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.output.terminal import Json, duration, local_time, print_json, print_table, say
from evenflow.cli.remote import read_pages, remote
from evenflow.contracts import rest
from evenflow.core.model import instance_name

app = App(name="triggers", help="List what deferred tasks wait for.")


@app.command(name="list")
async def list_(
    dag_id: Annotated[str | None, Parameter(help="Only those of tasks of this DAG.")] = None,
    /,
    *,
    limit: Annotated[int, Parameter(help="How many at most.")] = 50,
    json: Json = False,
) -> None:
    """Which tasks wait for what, since when, where their triggers run and how often they have failed; the longest waiting first."""
    async with remote() as client:
        page = await read_pages(lambda limit, offset: client.list_triggers(dag_id=dag_id, limit=limit, offset=offset), limit)
    if json:
        print_json({"triggers": page.items, "more": page.more})
        return
    now = datetime.now(UTC)
    rows = (
        (
            t.dag_id,
            t.run_id,
            instance_name(t.task_id, t.map_index),
            t.trigger,
            duration((now - t.deferred_at).total_seconds()),
            "" if t.timeout_at is None else local_time(t.timeout_at),
            _where(t, now),
            t.failures or "",
        )
        for t in page.items
    )
    columns = ("DAG", "run", "task", "waits for", "#for", "until at most", "runs on", "#failures")
    print_table(columns, rows, empty="No task is deferred.")
    if page.more:
        say(f"... and more; see them with --limit {2 * limit}", "bright_black")


def _where(trigger: rest.tasks.WaitingTrigger, now: datetime) -> str:
    if trigger.triggerer is not None:
        return trigger.triggerer
    if trigger.due_at > now:
        return f"tried again in {duration((trigger.due_at - now).total_seconds())}"
    return f"waits for a triggerer of queue {trigger.queue}"
