"""``evenflow pools``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.output.terminal import Json, print_json, print_table, say
from evenflow.cli.remote import remote
from evenflow.core.deferral import HOLD, parse_while_deferred
from evenflow.core.plurals import counted
from evenflow.core.pool_policy import PoolPolicy

app = App(name="pools")

_POLICY = (
    "Whether smaller tasks may pass one that does not fit: backfill, strict, or reserve-after=10m, until it has waited so long."
)


_WHILE_DEFERRED = "What becomes of a slot while its task is deferred: hold (so in a new pool), or release."


@app.command(name="list")
async def list_(*, json: Json = False) -> None:
    """All pools, how full they are, and their policy."""
    async with remote() as client:
        pools = (await client.list_pools()).items
    if json:
        print_json({"pools": pools})
    else:
        rows = ((pool.name, pool.used, pool.slots, pool.policy, pool.while_deferred, pool.description) for pool in pools)
        print_table(("pool", "#used", "#slots", "policy", "while deferred", "description"), rows, empty="No pools.")


@app.command(name="set")
async def set_(
    name: str,
    slots: int,
    /,
    *,
    policy: Annotated[str | None, Parameter(help=_POLICY)] = None,
    while_deferred: Annotated[str | None, Parameter(help=_WHILE_DEFERRED)] = None,
    description: Annotated[str | None, Parameter(help="What it is for.")] = None,
    json: Json = False,
) -> None:
    """Give a pool this many slots; it is made if there is none. Tasks that run keep theirs, also above a lower limit."""
    if policy is not None:
        PoolPolicy.parse(policy)
    if while_deferred is not None:
        parse_while_deferred(while_deferred)
    async with remote() as client:
        pool = await client.set_pool(name, slots=slots, description=description, policy=policy, while_deferred=while_deferred)
    if json:
        print_json(pool)
    else:
        say(
            f"{pool.name} has {counted(pool.slots, 'slot')}, {pool.used} of them used; its policy is {pool.policy}, "
            f"and deferred tasks {'hold' if pool.while_deferred == HOLD else 'release'} theirs"
        )


@app.command
async def delete(name: str, /, *, json: Json = False) -> None:
    """Delete a pool that no task names any more."""
    async with remote() as client:
        pool = await client.delete_pool(name)
    if json:
        print_json(pool)
    else:
        say(f"{pool.name} is deleted; it had {counted(pool.slots, 'slot')}")
