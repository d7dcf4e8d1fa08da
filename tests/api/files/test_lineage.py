"""What tries read and wrote, as events of OpenLineage: for people, and for who collects them."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from aiohttp import web

from evenflow.api.lineage import LineageSender
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from evenflow.spark.datasets import facet
from evenflow.store.db.connect import open_pool
from evenflow.wire import questions as q
from tests.api.world import World
from tests.openlineage_events import as_the_client_has_it, full

KEY = "what is shown there"
SCHEMA = facet("1-2-0/SchemaDatasetFacet", fields=[{"name": "id", "type": "long"}])
TOLD: dict[str, Any] = {
    "inputs": [{"namespace": "s3://lake", "name": "people", "facets": {"schema": SCHEMA}}],
    "outputs": [{"namespace": "file", "name": "/out", "facets": {"schema": SCHEMA}}],
}


class Collector:
    """Takes events, and answers as it is told to."""

    def __init__(self) -> None:
        self.status = 201
        self.taken: list[tuple[str | None, dict[str, Any]]] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.taken.append((request.headers.get("Authorization"), await request.json()))
        return web.Response(status=self.status, headers={"Location": "/elsewhere"} if self.status == 302 else None)


async def told(client: ExecutionClient, world: World, epoch: int = 1) -> int:
    """A run with a try that has told what it read and wrote."""
    run = world.run(world.add_dag())
    world.dispatch(run, epoch)
    await client.ask(world.try_token(epoch), "record", q.KeepRecord(kind="lineage", value=TOLD))
    return run


def end(world: World, run: int, state: str, epoch: int = 1) -> None:
    world.conn.execute("delete from dispatch where epoch = %s", [epoch])
    world.conn.execute(
        "insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state)"
        " values (%s, 0, -1, %s, 1, 'x', %s)",
        [run, epoch, state],
    )


async def sent(database_url: str, collector: Collector) -> None:
    """What a look of a sender does."""
    app = web.Application()
    app.router.add_post("/lineage", collector.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    pool = await open_pool(database_url, name="sender", min_size=1, max_size=2)
    try:
        sender = LineageSender(pool, f"http://127.0.0.1:{port}/lineage", KEY, "here")
        async with aiohttp.ClientSession(headers=sender.headers) as session:
            await sender.send_some(session)
    finally:
        await pool.close()
        await runner.cleanup()


async def test_people_see_an_event_that_says_how_the_try_ended(rest: RestClient, client: ExecutionClient, world: World) -> None:
    """R-SP3."""
    with pytest.raises(ApiRefused, match="has told what it read and wrote"):
        await rest.get_lineage("sales", "r1", "extract")
    run = await told(client, world)
    running = await rest.get_lineage("sales", "r1", "extract")
    assert (running.event["eventType"], running.event["inputs"], running.event["outputs"]) == ("RUNNING", *TOLD.values())
    assert (running.try_number, running.is_sent) == (1, False)
    end(world, run, "success")
    ended = await rest.get_lineage("sales", "r1", "extract", try_number=1)
    assert ended.event["eventType"] == "COMPLETE"
    assert ended.event["run"]["runId"] == running.event["run"]["runId"]  # type: ignore[index]
    assert ended.event["job"]["name"] == "sales.extract"  # type: ignore[index]
    assert as_the_client_has_it(ended.event) == full(ended.event)
    with pytest.raises(ApiRefused, match="has told"):
        await rest.get_lineage("sales", "r1", "extract", try_number=2)


async def test_an_event_is_sent_once_when_its_try_has_ended(
    rest: RestClient, client: ExecutionClient, world: World, database_url: str
) -> None:
    """R-SP3: with the key of the settings."""
    collector = Collector()
    run = await told(client, world)
    await sent(database_url, collector)
    assert collector.taken == []  # it runs still
    end(world, run, "failed")
    for _ in range(2):
        await sent(database_url, collector)
    ((shown, event),) = collector.taken
    assert (shown, event["eventType"]) == (f"Bearer {KEY}", "FAIL")
    assert (await rest.get_lineage("sales", "r1", "extract")).is_sent


@pytest.mark.parametrize(("status", "again"), [(503, True), (429, True), (422, False), (302, False)])
async def test_what_is_not_taken_is_sent_again_unless_it_was_refused(
    client: ExecutionClient, world: World, database_url: str, status: int, again: bool
) -> None:
    """Nor is the key shown anywhere else, where an endpoint leads elsewhere."""
    collector = Collector()
    end(world, await told(client, world), "success")
    collector.status = status
    if again:
        with pytest.raises(OSError, match=str(status)):
            await sent(database_url, collector)
    else:
        await sent(database_url, collector)
    assert len(collector.taken) == 1
    collector.status = 200
    world.conn.execute("update try_record set send_at = now() where send_at is not null")
    await sent(database_url, collector)
    assert len(collector.taken) == (2 if again else 1)
