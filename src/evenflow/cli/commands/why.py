"""``evenflow why``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from evenflow.cli.input.run_names import Run, found_run
from evenflow.cli.output.reasons import print_why
from evenflow.cli.output.replies import Reply, replies
from evenflow.cli.remote import remote


@replies
async def why(
    dag: Annotated[str, Parameter(help="DAG, DAG/RUN, or the run's name alone.")],
    task_id: str,
    /,
    *,
    run: Run = None,
    map_index: Annotated[int | None, Parameter(help="Which instance of a mapped task.")] = None,
) -> Reply:
    """Why a task does not run: the limit that blocks it, who holds that and its place in line, or what it waits for.

    The answer comes from the state that the scheduler decides from, and says what to do.
    """
    async with remote() as client:
        dag_id, run_id = await found_run(client, dag, run)
        found = await client.explain(dag_id, run_id, task_id, map_index=-1 if map_index is None else map_index)
    return Reply(found, lambda: print_why(found))
