"""Assets and their events: what tasks made, and what DAGs wait for."""

from __future__ import annotations

from operator import itemgetter
from typing import Annotated, Any

import msgspec
from fastapi import Query, Request

from evenflow.api.partitions import behind, list_partitions, no_asset, partitioned
from evenflow.api.refusals import Forbidden, Refused, too_large
from evenflow.api.rest.context import Actor, Connection, InScope
from evenflow.api.rest.once import Repeatable, answered_once
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.assets import AssetPartition, AssetSummary, Emitted, EventRequest, RecordedAssetEvent
from evenflow.contracts.rest.queries import AssetEventQuery, AssetQuery, PartitionQuery
from evenflow.contracts.rest.record import Page
from evenflow.core.json_values import flaw_of
from evenflow.core.limits import MAX_ASSET_EXTRA_BYTES
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.store.serving import assets

routes = Routes("Assets")


@routes.get("/assets", Role.VIEWER, ScopedBy.ANSWER)
async def list_assets(http: Request, conn: Connection, scope: InScope, query: Annotated[AssetQuery, Query()]) -> Page[AssetSummary]:
    """Assets by name, with their last event and the DAGs that wait for them: all, or the one with a name."""
    part = part_of(http, query, str)
    rows = await assets.list_assets(conn, asset=query.name, scope=scope, limit=part.limit, after=part.after)
    return part.page(Page[AssetSummary], rows)


@routes.get("/assets/events", Role.VIEWER, ScopedBy.ANSWER)
async def list_events(
    http: Request, conn: Connection, scope: InScope, query: Annotated[AssetEventQuery, Query()]
) -> Page[RecordedAssetEvent]:
    """Events, the newest first: of all assets, or of one."""
    part = part_of(http, query, int)
    rows = await assets.list_events(conn, asset=query.asset, scope=scope, limit=part.limit, after=part.after)
    return part.page(Page[RecordedAssetEvent], rows)


@routes.get("/assets/partitions", Role.VIEWER, ScopedBy.ANSWER)
async def list_asset_partitions(
    http: Request, conn: Connection, scope: InScope, query: Annotated[PartitionQuery, Query()]
) -> Page[AssetPartition]:
    """The partitions that an asset should have, in order, and which of them there are."""
    of = await partitioned(conn, query.asset, scope=scope)
    part = part_of(http, query, str)
    found = await list_partitions(conn, of, query.from_date, query.to_date, scope=scope)
    wanted = [
        {"place": [each.partition], "partition": each}
        for each in behind(found, part.after)
        if query.is_done is None or each.is_done == query.is_done
    ]
    return part.page(Page[AssetPartition], wanted, itemgetter("partition"))


@routes.post("/assets/events", Role.AUTHOR, ScopedBy.ANSWER, status_code=201)
@answered_once
async def emit_event(conn: Connection, actor: Actor, scope: InScope, request: EventRequest, once: Repeatable) -> Emitted:
    """Says that an asset has changed, as the success of a task does. Your name stands in its history. Whose role counts in a scope
    says it of what their DAGs make, and of what no DAG makes and theirs alone wait for.
    """
    if (flaw := flaw_of(request.extra)) is not None:
        raise Refused(422, "bad_value", f"The extra of the event {flaw}.")
    if len(msgspec.json.encode(request.extra)) > MAX_ASSET_EXTRA_BYTES:
        raise too_large("The extra of the event", MAX_ASSET_EXTRA_BYTES)
    if request.partition is not None:
        flaw = (await partitioned(conn, request.asset, scope=scope)).partitions.flaw_of(request.partition)
        if flaw is not None:
            raise Refused(422, "bad_value", f"The partition {request.partition!r} of {request.asset!r} {flaw}.")
    async with once.recorded(conn, actor, "asset.emit", request.asset) as detail:
        said: dict[str, Any] = {"partition": request.partition, "extra": request.extra, "actor": actor}
        emitted = await assets.emit_event(conn, request.asset, **said, scope=scope)
        if emitted is None:
            if await assets.read_partitions(conn, request.asset, scope=scope) is None:
                raise no_asset(request.asset)
            raise Forbidden(
                f"No DAG in your scope makes {request.asset!r}, so its event would begin runs of others or stand for their work.",
                hint="Ask somebody whose scope has a DAG that makes it.",
            )
        detail["event_id"] = emitted.event_id
        return await once.keep(conn, emitted)
