"""``evenflow pools``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.remote import remote
from evenflow.cli.terminal import Json, print_json, print_table, say

app = App(name="pools", help="List pools, make them and change their slots.")


@app.command(name="list")
async def list_(*, json: Json = False) -> None:
    """All pools, and how full they are."""
    async with remote() as client:
        pools = (await client.list_pools()).items
    if json:
        print_json({"pools": pools})
    else:
        rows = ((pool.name, pool.used, pool.slots, pool.description) for pool in pools)
        print_table(("pool", "#used", "#slots", ""), rows, empty="No pools.")


@app.command(name="set")
async def set_(
    name: str,
    slots: int,
    /,
    *,
    description: Annotated[str | None, Parameter(help="What it is for.")] = None,
    json: Json = False,
) -> None:
    """Give a pool this many slots; it is made if there is none. Tasks that run keep theirs, also above a lower limit."""
    async with remote() as client:
        pool = await client.set_pool(name, slots=slots, description=description)
    if json:
        print_json(pool)
    else:
        say(f"{pool.name} has {pool.slots} slots, {pool.used} of them used")
