"""``evenflow quarantine``."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal

from cyclopts import App, Parameter

from evenflow.cli.input.run_names import named_run
from evenflow.cli.output.terminal import Json, local_time, print_json, print_table, say
from evenflow.cli.remote import read_pages, remote

app = App(name="quarantine", help="List what is set aside because handling it failed, and have it tried again.")


@app.command(name="list")
async def list_(*, limit: Annotated[int, Parameter(help="How many at most.")] = 50, json: Json = False) -> None:
    """Runs, and schedules, assets and backfills of DAGs, that a scheduler has set aside so that all others go on."""
    async with remote() as client:
        page = await read_pages(lambda limit, offset: client.list_quarantine(limit=limit, offset=offset), limit)
    if json:
        print_json({"quarantine": page.items, "more": page.more})
        return
    rows = ((q.kind, q.object, local_time(q.since), q.reason) for q in page.items)
    print_table(("kind", "of", "since", "why"), rows, empty="Nothing is in quarantine.")
    if page.items:
        first = page.items[0]
        cure = shlex.join(["evenflow", "quarantine", "release", first.kind, first.object])
        say(f"When the cause is gone: {cure}", "bright_black")
    if page.more:
        say(f"... and more; see them with --limit {2 * limit}", "bright_black")


@app.command
async def release(
    kind: Annotated[Literal["run", "schedule", "assets", "backfill"], Parameter(help="What it is.")],
    name: Annotated[str, Parameter(help="DAG/RUN of a run, else the DAG, or the number of the backfill.")],
    /,
    *,
    json: Json = False,
) -> None:
    """Have it tried again. What was said of a run meanwhile is applied then; if it fails again, it is set aside again."""
    async with remote() as client:
        if kind == "run" and "/" in name:
            name = "/".join(await named_run(client, name, None))
        released = await client.release_quarantined(kind, name)
    if json:
        print_json(released)
    else:
        say(f"The {released.kind} {released.object} is tried again. Whether that works: evenflow quarantine list")
