"""``evenflow xcoms``: what tasks returned and pushed."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.commands.tasks import MapIndex, only_instance
from evenflow.cli.input.run_names import Dag, Run, named_run
from evenflow.cli.output.terminal import Json, local_time, print_json, print_json_text, print_table, say
from evenflow.cli.remote import remote
from evenflow.core.model import instance_name
from evenflow.core.plurals import counted
from evenflow.sdk.xcomarg import RETURN_VALUE

app = App(name="xcoms")


@app.command(name="list")
async def list_(
    dag: Dag,
    /,
    *,
    run: Run = None,
    task: Annotated[str | None, Parameter(help="Only of this task.")] = None,
    limit: Annotated[int, Parameter(help="How many at most.")] = 100,
    json: Json = False,
) -> None:
    """What the tasks of a run returned and pushed."""
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run)
        page = await client.list_xcoms(dag_id, run_id, task_id=task, limit=limit)
    if json:
        print_json({"dag_id": dag_id, "run_id": run_id, "xcoms": page.items, "more": page.more})
        return
    rows = (
        (
            instance_name(x.task_id, x.map_index),
            x.key,
            x.size,
            x.length,
            local_time(x.created_at),
            "secret" if x.is_secret else "in object storage" if x.is_stored else "",
        )
        for x in page.items
    )
    print_table(("task", "key", "#bytes", "#elements", "at", "kept"), rows, empty="No XComs.")


@app.command
async def show(
    dag: Dag,
    task_id: str,
    key: str = RETURN_VALUE,
    /,
    *,
    run: Run = None,
    map_index: MapIndex = None,
    json: Json = False,
) -> None:
    """One value, as JSON."""
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run)
        index = await only_instance(client, dag_id, run_id, task_id) if map_index is None else map_index
        found = await client.get_xcom(dag_id, run_id, task_id, key, map_index=index)
    if json:
        print_json(found)
    elif found.is_secret:
        say("*** (it holds a secret)")
    elif found.is_stored:
        say(f"{counted(found.size, 'byte')} in object storage")
    else:
        print_json_text(jsonlib.dumps(found.value, indent=2, ensure_ascii=False))
