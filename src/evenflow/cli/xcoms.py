"""``evenflow xcoms``: what tasks returned and pushed."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.remote import remote
from evenflow.cli.runs import newest_run
from evenflow.cli.tasks import MapIndex, Run, instance_name, only_instance
from evenflow.cli.terminal import Json, local_time, print_json, print_table, say
from evenflow.sdk.xcomarg import RETURN_VALUE

app = App(name="xcoms")


@app.command(name="list")
async def list_(
    dag_id: str,
    /,
    *,
    run: Run = None,
    task: Annotated[str | None, Parameter(help="Only of this task.")] = None,
    limit: Annotated[int, Parameter(help="How many at most.")] = 100,
    json: Json = False,
) -> None:
    """What the tasks of a run returned and pushed."""
    async with remote() as client:
        run_id = run or await newest_run(client, dag_id)
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
    print_table(("task", "key", "#bytes", "#elements", "at", ""), rows, empty="No XComs.")


@app.command
async def show(
    dag_id: str,
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
        run_id = run or await newest_run(client, dag_id)
        index = await only_instance(client, dag_id, run_id, task_id) if map_index is None else map_index
        found = await client.get_xcom(dag_id, run_id, task_id, key, map_index=index)
    if json:
        print_json(found)
    elif found.is_secret:
        say("*** (it holds a secret)")
    elif found.is_stored:
        say(f"{found.size:,} bytes in object storage")
    else:
        print(jsonlib.dumps(found.value, indent=2, ensure_ascii=False))
