"""``evenflow assets``."""

from __future__ import annotations

from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from evenflow.cli.output.terminal import Json, local_time, print_json, print_table, say
from evenflow.cli.remote import remote
from evenflow.contracts import rest
from evenflow.errors import ParamError

app = App(name="assets")


@app.command(name="list")
async def list_(*, limit: int = 100, offset: int = 0, json: Json = False) -> None:
    """Assets, when each changed last, and which DAGs wait for it."""
    async with remote() as client:
        page = await client.list_assets(limit=limit, offset=offset)
    if json:
        print_json({"assets": page.items})
        return
    rows = (
        (asset.name, asset.uri, local_time(asset.last_event_at) if asset.last_event_at else "", ", ".join(asset.consumers))
        for asset in page.items
    )
    print_table(("asset", "uri", "changed last", "waited for by"), rows, empty="No assets: no DAG names one.")


@app.command
async def events(asset: str | None = None, /, *, limit: int = 20, offset: int = 0, json: Json = False) -> None:
    """Events of an asset, or of all, the newest first."""
    async with remote() as client:
        page = await client.list_asset_events(asset, limit=limit, offset=offset)
    if json:
        print_json({"events": page.items})
        return
    rows = ((local_time(e.at), e.asset, _source(e), msgspec.json.encode(e.extra).decode() if e.extra else "") for e in page.items)
    print_table(("at", "asset", "by", "extra"), rows, empty="No events.")


@app.command
async def emit(
    asset: str,
    /,
    *,
    extra: Annotated[str | None, Parameter(help="A JSON object for the runs that it makes, e.g. '{\"rows\": 3}'.")] = None,
    json: Json = False,
) -> None:
    """Say that an asset has changed, as the success of a task does. Your name stands in its history."""
    try:
        parsed = {} if extra is None else msgspec.json.decode(extra, type=dict)
    except msgspec.MsgspecError as error:
        raise ParamError(f"--extra is no JSON object: {error}.") from None
    async with remote() as client:
        emitted = await client.emit_asset_event(asset, extra=parsed)
    if json:
        print_json(emitted)
    else:
        counted = ", ".join(emitted.dag_ids) or "no DAG (none waits, or all are paused)"
        say(f"Event {emitted.event_id} of {asset}; it counts for: {counted}")


def _source(event: rest.assets.RecordedAssetEvent) -> str:
    if event.task_id is None:
        return event.actor
    index = "" if event.map_index is None or event.map_index < 0 else f"[{event.map_index}]"
    return f"{event.dag_id}/{event.run_id} {event.task_id}{index}"
