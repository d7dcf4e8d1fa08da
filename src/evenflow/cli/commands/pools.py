"""``evenflow pools``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.output.replies import Reply, listed, verb
from evenflow.cli.remote import remote
from evenflow.contracts import rest
from evenflow.core.deferral import HOLD, parse_while_deferred
from evenflow.core.quantities import counted
from evenflow.core.selection.pool_policy import PoolPolicy

app = App(name="pools")

_POLICY = (
    "Whether smaller tasks may pass one that does not fit: backfill, strict, or reserve-after=10m, until it has waited so long."
)


_WHILE_DEFERRED = "What becomes of a slot while its task is deferred: hold (so in a new pool), or release."


@verb(app, "list")
async def list_() -> Reply:
    """All pools, how full they are, and their policy."""
    async with remote() as client:
        page = await client.list_pools()
    return listed("pools", page, rest.pools.Pool, empty="No pools.")


@verb(app, "set", meant=("add", "create"))
async def set_(
    name: str,
    slots: int,
    /,
    *,
    policy: Annotated[str | None, Parameter(help=_POLICY)] = None,
    while_deferred: Annotated[str | None, Parameter(help=_WHILE_DEFERRED)] = None,
    description: Annotated[str | None, Parameter(help="What it is for.")] = None,
) -> Reply:
    """Give a pool this many slots; it is made if it does not exist. Running tasks keep theirs, also above a lower limit."""
    if policy is not None:
        PoolPolicy.parse(policy)
    if while_deferred is not None:
        parse_while_deferred(while_deferred)
    async with remote() as client:
        pool = await client.set_pool(name, slots=slots, description=description, policy=policy, while_deferred=while_deferred)
    return Reply(
        pool,
        f"{pool.name} has {counted(pool.slots, 'slot')}, {pool.used} of them used; its policy is {pool.policy}, "
        f"and deferred tasks {'hold' if pool.while_deferred == HOLD else 'release'} theirs",
    )


@verb(app)
async def delete(name: str, /) -> Reply:
    """Delete a pool that no task names."""
    async with remote() as client:
        pool = await client.delete_pool(name)
    return Reply(pool, f"{pool.name} is deleted; it had {counted(pool.slots, 'slot')}")
