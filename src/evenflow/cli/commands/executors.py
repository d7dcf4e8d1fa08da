"""``evenflow executors``."""

from __future__ import annotations

import shlex
from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.output.replies import Reply, listed, print_records, verb
from evenflow.cli.remote import remote
from evenflow.contracts.rest.executors import Executor
from evenflow.core.quantities import counted

app = App(name="executors")

_QUEUE = "That belongs to it, once for each: what has not begun there goes with it. All that it is to have."
_CELLS = {"slots": lambda executor: f"{executor.slots:,}"}
_OPTION = "Of its kind, such as --option.send_again 2m. All that are not as by default."


@verb(app, "list")
async def list_() -> Reply:
    """All executors, the queues of each, and how full it is."""
    async with remote() as client:
        page = await client.list_executors()
    return listed("executors", page, Executor, empty="No executors.", cells=_CELLS)


@verb(app)
async def show(name: str, /) -> Reply:
    """An executor."""
    async with remote() as client:
        found = await client.get_executor(name)
    return Reply(found, lambda: _print(found))


@verb(app, "set", meant=("add", "create"))
async def set_(
    name: str,
    /,
    *,
    kind: Annotated[str | None, Parameter(help="What it is: native, celery or kubernetes. Needed for a new one.")] = None,
    slots: Annotated[int | None, Parameter(help="Tries that it may have at once; with 0 none starts.")] = None,
    queue: Annotated[list[str] | None, Parameter(negative=(), help=_QUEUE)] = None,
    option: Annotated[dict[str, str] | None, Parameter(help=_OPTION)] = None,
) -> Reply:
    """Make an executor, or change one. Options that are not given stay. Running tries keep their slots, also above a lower
    limit.
    """
    async with remote() as client:
        found = await client.set_executor(name, kind=kind, slots=slots, queues=queue, options=option)
    told = f"{found.name} ({found.kind}) has {_whose(found)} and {counted(found.slots, 'slot')}, {found.used} of them used"
    if not found.slots:
        told += f": no task of them starts until it has some again: evenflow executors set {shlex.quote(found.name)} --slots N"
    if found.trouble is not None:
        told += f". {found.trouble}"
    return Reply(found, told)


@verb(app)
async def delete(name: str, /) -> Reply:
    """Delete an executor: its queues, and tries that have not begun there, belong to `worker` from now on."""
    async with remote() as client:
        found = await client.delete_executor(name)
    return Reply(found, f"{found.name} is deleted; the tries of {_whose(found)} are for workers that ask for them from now on")


def _print(found: Executor) -> None:
    print_records([found], Executor, empty="", cells=_CELLS)
    if found.trouble is not None:
        print(found.trouble)


def _whose(found: Executor) -> str:
    return (
        f"the {'queue' if len(found.queues) == 1 else 'queues'} {', '.join(found.queues)}" if found.queues else "all other queues"
    )
