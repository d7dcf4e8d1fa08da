"""``evenflow events``: who changed, asked or was refused what."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from evenflow.cli.remote import remote
from evenflow.cli.terminal import Json, detail_text, local_time, print_json, print_table


async def events(
    name: Annotated[str | None, Parameter(help="Only of this DAG and its runs, connection, pool, ...")] = None,
    /,
    *,
    actor: Annotated[str | None, Parameter(help="Only what this operator did.")] = None,
    action: Annotated[str | None, Parameter(help="Only this, e.g. pool.set, or all of a kind, e.g. pool.")] = None,
    limit: int = 50,
    offset: int = 0,
    json: Json = False,
) -> None:
    """Who changed what, the newest first: connections, variables, pools, settings, pauses, runs, backfills, assets.

    Also which DAGs asked for which secrets (a row a day), services that registered, and requests that were refused (a row a
    minute).
    """
    async with remote() as client:
        page = await client.list_changes(name, actor=actor, action=action, limit=limit, offset=offset)
    if json:
        print_json({"events": page.items})
        return
    rows = (
        (
            local_time(e.last_at or e.at),
            e.actor,
            e.action,
            e.object,
            e.times,
            e.token_id,
            e.address,
            detail_text(e.detail),
        )
        for e in page.items
    )
    print_table(("at", "by", "action", "of", "#times", "#token", "from", "detail"), rows, empty="No events.")
