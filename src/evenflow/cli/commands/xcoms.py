"""``evenflow xcoms``: values that tasks returned and pushed."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.commands.tasks import MapIndex, only_instance
from evenflow.cli.input.params import Limit
from evenflow.cli.input.run_names import Dag, RunArgument, named_run
from evenflow.cli.output.replies import Cell, Reply, listed, verb
from evenflow.cli.output.terminal import print_json_text
from evenflow.cli.remote import read_pages, remote
from evenflow.contracts import rest
from evenflow.core.model import instance_name
from evenflow.core.quantities import counted
from evenflow.sdk.xcomarg import RETURN_VALUE

app = App(name="xcoms")


@verb(app, "list")
async def list_(
    dag: Dag,
    /,
    *,
    run: RunArgument = None,
    task: Annotated[str | None, Parameter(help="Only of this task.")] = None,
    limit: Limit = 100,
) -> Reply:
    """Values that the tasks of a run returned and pushed."""
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run)
        page = await read_pages(partial(client.list_xcoms, dag_id, run_id, task_id=task), limit)
    cells: dict[str, Cell[rest.tasks.XComEntry]] = {
        "task_id": lambda x: instance_name(x.task_id, x.map_index),
        "is_stored": lambda x: "secret" if x.is_secret else "in object storage" if x.is_stored else "",
    }
    return listed("xcoms", page, rest.tasks.XComEntry, cells=cells, limit=limit, empty="No XComs.", dag_id=dag_id, run_id=run_id)


@verb(app)
async def show(
    dag: Dag,
    task_id: str,
    key: str = RETURN_VALUE,
    /,
    *,
    run: RunArgument = None,
    map_index: MapIndex = None,
) -> Reply:
    """One value, as JSON."""
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run)
        index = await only_instance(client, dag_id, run_id, task_id) if map_index is None else map_index
        found = await client.get_xcom(dag_id, run_id, task_id, key, map_index=index)
    if found.is_secret:
        return Reply(found, "*** (it holds a secret)")
    if found.is_stored:
        return Reply(found, f"{counted(found.size, 'byte')} in object storage")
    return Reply(found, lambda: print_json_text(json.dumps(found.value, indent=2, ensure_ascii=False)))
