"""``evenflow quarantine``."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal

from cyclopts import App, Parameter

from evenflow.cli.input.params import Limit
from evenflow.cli.input.run_names import named_run
from evenflow.cli.output.replies import Reply, listed, verb
from evenflow.cli.output.terminal import say
from evenflow.cli.remote import read_pages, remote
from evenflow.contracts import rest

app = App(name="quarantine", help="List what is set aside because handling it failed, and have it tried again.")


@verb(app, "list")
async def list_(*, limit: Limit = 50) -> Reply:
    """Runs, and DAGs' schedules, assets and backfills, that a scheduler has set aside so that all others continue."""
    async with remote() as client:
        page = await read_pages(client.list_quarantine, limit)

    def tell_cure() -> None:
        for first in page.items[:1]:
            cure = shlex.join(["evenflow", "quarantine", "release", first.kind, first.object])
            say(f"When the cause is gone: {cure}", "bright_black")

    kind = rest.system.QuarantineEntry
    return listed("quarantine", page, kind, limit=limit, empty="Nothing is in quarantine.", then=tell_cure)


@verb(app)
async def release(
    kind: Annotated[Literal["run", "schedule", "assets", "backfill"], Parameter(help="What it is.")],
    name: Annotated[str, Parameter(help="DAG/RUN of a run, else the DAG, or the number of the backfill.")],
    /,
) -> Reply:
    """Try an object again. Reports about a run that came meanwhile are applied then; if it fails again, it is set aside again."""
    async with remote() as client:
        if kind == "run" and "/" in name:
            name = "/".join(await named_run(client, name, None))
        released = await client.release_quarantined(kind=kind, object=name)
    return Reply(released, f"The {released.kind} {released.object} is tried again. Whether that works: evenflow quarantine list")
