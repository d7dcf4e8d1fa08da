"""Connections and variables that a DAG file asks for while it is loaded, when it has no DAGs yet."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from evenflow.wire import messages as m
from tests.api.world import World

URI = "postgresql://etl:open-sesame@db/sales"
WANTED = m.AskValue(kind="connection", name="warehouse", file="sales.py")


async def test_what_all_dags_may_use_is_given_and_told(
    processor: ExecutionClient, client: ExecutionClient, rest: RestClient, world: World
) -> None:
    """R-SE5: to a processor and to a worker, and an event knows of it before the answer."""
    await rest.set_connection("warehouse", uri=URI)
    for service in (processor, client):
        given = await service.value(WANTED)
        assert given.text == URI
        assert given.changed_at is not None
    (event,) = (await rest.list_changes(action="connection.ask")).items
    assert (event.actor, event.object) == ("DAG file sales.py", "warehouse")
    assert "open-sesame" not in world.one("select string_agg(e::text, ' ') from audit_event e")


async def test_what_is_for_certain_dags_is_refused_by_name(processor: ExecutionClient, rest: RestClient) -> None:
    """R-SE5"""
    await rest.set_connection("warehouse", uri=URI, dags=["sales_*"])
    with pytest.raises(
        ApiRefused, match=r"connection 'warehouse' is for certain DAGs only.*evenflow connections allow warehouse"
    ) as refusal:
        await processor.value(WANTED)
    assert refusal.value.status == 403


async def test_similar_names_are_those_of_all_dags(processor: ExecutionClient, rest: RestClient) -> None:
    await rest.set_connection("warehouses", uri=URI)
    await rest.set_connection("warehause", uri=URI, dags=["sales_*"])
    assert await processor.value(WANTED) == m.GivenValue(similar=["warehouses"])


async def test_a_try_asks_for_no_file(client: ExecutionClient, world: World) -> None:
    """Its token may be in the hands of author code, and its DAG may use more or less."""
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    with pytest.raises(ApiRefused, match="kind 'try'"):
        await client._ask("/values", WANTED, m.GivenValue, token=world.try_token(1))


class TestAFileThatHasAsked:
    @pytest.fixture(autouse=True)
    async def _seen(self, processor: ExecutionClient) -> None:
        await processor.files_seen(m.FilesSeen(bundle="main", files=[m.FileSeen(file="sales.py", fingerprint="1")]))

    async def parsed(self, processor: ExecutionClient, changed_at: datetime | None, *, refused: bool = False) -> None:
        asked = m.AskedValue(kind="connection", name="warehouse", changed_at=changed_at, refused=refused)
        await processor.file_parsed(m.ParsedFile(bundle="main", file="sales.py", fingerprint="1", seconds=0.1, asked=[asked]))

    def is_due(self, world: World) -> bool:
        return bool(world.one("select parsed is distinct from fingerprint from dag_file"))

    async def test_is_read_again_when_the_value_is_set_or_deleted(
        self, processor: ExecutionClient, rest: RestClient, world: World
    ) -> None:
        await self.parsed(processor, None)
        assert not self.is_due(world)
        await rest.set_variable("warehouse", value="another kind")
        await rest.set_connection("other", uri=URI)
        assert not self.is_due(world)
        await rest.set_connection("warehouse", uri=URI)
        assert self.is_due(world)
        await self.parsed(processor, (await processor.value(WANTED)).changed_at)
        assert not self.is_due(world)
        await rest.delete_connection("warehouse")
        assert self.is_due(world)

    async def test_is_read_again_when_the_value_has_changed_meanwhile(
        self, processor: ExecutionClient, rest: RestClient, world: World
    ) -> None:
        await rest.set_connection("warehouse", uri=URI)
        changed_at = (await processor.value(WANTED)).changed_at
        assert changed_at is not None
        await self.parsed(processor, changed_at - timedelta(microseconds=1))
        assert self.is_due(world)
        await self.parsed(processor, changed_at)
        assert not self.is_due(world)

    async def test_is_read_again_when_all_dags_may_use_the_value(
        self, processor: ExecutionClient, rest: RestClient, world: World
    ) -> None:
        await rest.set_connection("warehouse", uri=URI, dags=["sales_*"])
        await self.parsed(processor, None, refused=True)
        assert not self.is_due(world)
        await rest.set_connection("warehouse", dags=[])
        assert self.is_due(world)
