"""``evenflow assets``."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from evenflow.cli.input.dates import span
from evenflow.cli.input.params import Limit
from evenflow.cli.output.replies import Reply, listed, verb
from evenflow.cli.remote import read_pages, remote
from evenflow.contracts import rest
from evenflow.errors import ParamError

app = App(name="assets")


@verb(app, "list")
async def list_(*, limit: Limit = 100) -> Reply:
    """Assets, the last change of each, and the DAGs that wait for it."""
    async with remote() as client:
        page = await read_pages(client.list_assets, limit)
    return listed("assets", page, rest.assets.AssetSummary, limit=limit, empty="No assets: no DAG names one.")


@verb(app)
async def events(asset: str | None = None, /, *, limit: Limit = 20) -> Reply:
    """Events of an asset, or of all, the newest first."""
    async with remote() as client:
        page = await read_pages(partial(client.list_asset_events, asset=asset), limit)
    return listed("events", page, rest.assets.RecordedAssetEvent, cells={"actor": _source}, limit=limit, empty="No events.")


@verb(app)
async def partitions(
    asset: str,
    /,
    *,
    from_: Annotated[
        datetime | None, Parameter(name="--from", help="Of this time on; by default from the first partition that there is.")
    ] = None,
    to: Annotated[
        str | None, Parameter(help="Up to this time; by default up to the newest whose time is over, and later ones that exist.")
    ] = None,
    missing: Annotated[bool, Parameter(negative=(), help="Only those that there are not.")] = False,
    limit: Limit = 100,
) -> Reply:
    """The partitions of an asset: those that exist, and those that are missing."""
    async with remote() as client:
        read = partial(client.list_asset_partitions, asset=asset, is_done=False if missing else None, **span(from_, to))
        page = await read_pages(read, limit)
    empty = "None is missing." if missing else "None yet: no run has made one. To see what is missing of a time, add --from."
    return listed("partitions", page, rest.assets.AssetPartition, cells={"is_done": _progress}, limit=limit, empty=empty)


@verb(app)
async def emit(
    asset: str,
    /,
    *,
    partition: Annotated[str | None, Parameter(help="Which one, of an asset that has partitions.")] = None,
    extra: Annotated[str | None, Parameter(help="A JSON object for the runs that it makes, e.g. '{\"rows\": 3}'.")] = None,
) -> Reply:
    """Announce a change of an asset, as the success of a task does. Its history shows your name."""
    try:
        parsed = {} if extra is None else msgspec.json.decode(extra, type=dict)
    except msgspec.MsgspecError as error:
        raise ParamError(f"--extra is no JSON object: {error}.") from None
    async with remote() as client:
        emitted = await client.emit_asset_event(asset=asset, partition=partition, extra=parsed)
    counted = ", ".join(emitted.dag_ids) or "no DAG (none waits, or all are paused)"
    return Reply(emitted, f"Event {emitted.event_id} of {asset}; it counts for: {counted}")


def _progress(partition: rest.assets.AssetPartition) -> str:
    return "done" if partition.is_done else "missing"


def _source(event: rest.assets.RecordedAssetEvent) -> str:
    if event.task_id is None:
        return event.actor
    index = "" if event.map_index is None or event.map_index < 0 else f"[{event.map_index}]"
    return f"{event.dag_id}/{event.run_id} {event.task_id}{index}"
