"""``evenflow sharing``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.output.replies import Reply, listed, verb
from evenflow.cli.remote import remote
from evenflow.contracts import rest
from evenflow.core.sharing import NOT, SharedKind

app = App(name="sharing")

_AGING = "After how long a waiting task counts as one of a run with the next higher priority, and again: such as 10m; or off."
_BY = "Whose slots are kept in proportion: dag, tag or owner; or off."
_WEIGHT = "Of a tenant, such as --weight.team-a 3; 1 for all others. By tag, the tags that have one are the tenants."


@verb(app, "list")
async def list_() -> Reply:
    """All pools and executors, whether waiting tasks age there, and which tenants share them."""
    async with remote() as client:
        page = await client.list_sharing()
    return listed("sharing", page, rest.sharing.Sharing, empty="No pools.")


@verb(app, "set")
async def set_(
    kind: SharedKind,
    name: str,
    /,
    *,
    aging: Annotated[str | None, Parameter(help=_AGING)] = None,
    by: Annotated[str | None, Parameter(help=_BY)] = None,
    weight: Annotated[dict[str, int] | None, Parameter(help=_WEIGHT)] = None,
) -> Reply:
    """Set which tenants share a pool or executor, and whether waiting tasks age there. Options that are not given stay."""
    async with remote() as client:
        rule = await client.set_sharing(kind, name, aging=aging, share_by=by, weights=weight)
    ages = "nothing ages there" if rule.aging == NOT else f"waiting for {rule.aging} counts as one more priority of a run"
    shared = "is shared by nobody" if rule.share_by == NOT else f"is shared by {rule.share_by}"
    return Reply(rule, f"{kind.capitalize()} {rule.name} {shared}, and {ages}")


@verb(app)
async def tenants(kind: SharedKind, name: str, /) -> Reply:
    """The tenants of a pool or executor, and the slots that each holds."""
    async with remote() as client:
        page = await client.list_tenants(kind, name)
    return listed("tenants", page, rest.sharing.Tenant, empty="Nobody has shared it yet.")
