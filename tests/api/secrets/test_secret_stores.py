"""Connections and variables that others keep, as tries and people get them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.api.service import ApiService
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from evenflow.wire.questions import AskNamed, Found
from tests import tokens
from tests.api.world import World
from tests.apis import make_api
from tests.secret_stores.vault_server import VaultServer, running_vault

Trying = Callable[[str, str], Awaitable[str | None]]
URI = "postgresql://etl:open-sesame@db/sales"


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Iterator[VaultServer]:
    with running_vault() as (server, url):
        monkeypatch.setenv("VAULT_ADDR", url)
        monkeypatch.setenv("VAULT_TOKEN", "good-token")
        yield server


@pytest.fixture
async def api(vault: VaultServer, database_url: str, tmp_path: Path) -> AsyncIterator[ApiService]:
    service = make_api(database_url, tmp_path, secret_stores="vault,environment")
    await service.start()
    yield service
    await service.stop()


@pytest.fixture
async def rest(api: ApiService, db: psycopg.Connection[Any]) -> AsyncIterator[RestClient]:
    async with RestClient(f"http://127.0.0.1:{api.port}", tokens.operator_token(db)) as client:
        yield client


@pytest.fixture
async def trying(api: ApiService, world: World) -> AsyncIterator[Trying]:
    """Asks as a try of DAG ``sales`` does: a kind and a name."""
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    token = world.try_token(1)
    client = ExecutionClient(f"http://127.0.0.1:{api.port}", token)

    async def ask(kind: str, name: str) -> str | None:
        found = await client.ask(token, kind, AskNamed(name=name))
        assert isinstance(found, Found)
        return found.text

    yield ask
    await client.close()


async def test_a_try_gets_what_a_store_has_and_the_database_comes_after(
    trying: Trying, vault: VaultServer, rest: RestClient, world: World
) -> None:
    """R-SE5: that it was asked is told, wherever its value is."""
    vault.secrets["evenflow/connections/warehouse"] = {"value": URI}
    await rest.set_connection("warehouse", uri="postgresql://of-the-database/x")
    await rest.set_variable("region", value="eu")
    assert await trying("connection", "warehouse") == URI
    assert await trying("variable", "region") == "eu"
    assert await trying("variable", "none") is None
    told = world.all("select action, object from audit_event where action like '%%.ask' order by object")
    assert told == [("variable.ask", "region"), ("connection.ask", "warehouse")]


async def test_a_try_is_told_which_stores_have_no_such_name(api: ApiService, world: World) -> None:
    """R-SE4: whoever stores it has to know where it was looked for."""
    world.dispatch(world.run(world.add_dag()), 1)
    token = world.try_token(1)
    client = ExecutionClient(f"http://127.0.0.1:{api.port}", token)
    found = await client.ask(token, "variable", AskNamed(name="none", similar=True))
    await client.close()
    assert isinstance(found, Found)
    vault, environment = found.stores
    assert vault.startswith("Vault at http://127.0.0.1:")
    assert environment == "the API's environment (SECRET_*)"


@pytest.mark.parametrize("rule", ["of the secret", "of the database"])
async def test_rules_hold_for_what_a_store_has(trying: Trying, vault: VaultServer, rest: RestClient, rule: str) -> None:
    dags = {"dags": "finance_*"} if rule == "of the secret" else {}
    vault.secrets["evenflow/connections/warehouse"] = {"value": URI, **dags}
    if rule == "of the database":
        await rest.set_connection("warehouse", uri="postgresql://x/y", dags=["finance_*"])
    with pytest.raises(ApiRefused, match=r"The connection 'warehouse' is not for DAG 'sales'. To let it") as refused:
        await trying("connection", "warehouse")
    assert refused.value.status == 403


async def test_a_rule_for_what_only_a_store_has_is_refused_with_what_to_type(rest: RestClient, vault: VaultServer) -> None:
    """R-SE5: a rule of the database stands beside a value; that of the secret needs none."""
    vault.secrets["evenflow/connections/warehouse"] = {"value": URI}
    with pytest.raises(ApiRefused, match="There is no connection 'warehouse' in the database, nor a rule for it") as refused:
        await rest.set_connection("warehouse", dags=["finance_*"])
    assert refused.value.status == 404
    told = str(refused.value)
    assert "name its DAGs in the secret itself" in told
    assert "evenflow connections set warehouse --dag PATTERN" in told


@pytest.mark.parametrize("name", ["ware-house", "WARE_HOUSE", "Ware.House"])
async def test_rules_hold_for_each_name_of_what_the_environment_has(
    trying: Trying, rest: RestClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """R-SE5: several names are one variable there, and a task chooses the name."""
    monkeypatch.setenv("SECRET_CONN_WARE_HOUSE", URI)
    assert await trying("connection", name) == URI
    await rest.set_connection("ware_house", uri="postgresql://x/y", dags=["finance_*"])
    with pytest.raises(ApiRefused, match=r"The connection 'ware_house' is not for DAG 'sales'. To let it"):
        await trying("connection", name)
    await rest.set_connection("ware_house", uri="postgresql://x/y", dags=["sal*"])
    assert await trying("connection", name) == URI


async def test_a_store_that_is_down_says_which_and_what_to_do(trying: Trying, vault: VaultServer, rest: RestClient) -> None:
    """What the database has is not taken instead: it may be another value."""
    await rest.set_connection("warehouse", uri=URI)
    vault.sealed = True
    with pytest.raises(ApiRefused, match=r"Vault at http://\S+ is sealed. Unseal it: vault operator unseal") as refused:
        await trying("connection", "warehouse")
    assert refused.value.status == 424


async def test_people_see_where_a_value_comes_from(vault: VaultServer, rest: RestClient, world: World) -> None:
    vault.secrets["evenflow/connections/warehouse"] = {"value": URI, "dags": "sales"}
    await rest.set_connection("other", uri=URI)
    found = await rest.get_connection("warehouse")
    assert found.source.startswith("Vault at http://")
    assert (found.uri, found.dags) == ("postgresql://etl:***@db/sales", ["sales"])
    assert (await rest.get_connection("warehouse", reveal=True)).uri == URI
    assert world.one("select count(*) from audit_event where action = 'connection.read'") == 1
    assert (await rest.get_connection("other")).source == "database"
    assert [stored.source for stored in (await rest.list_connections()).items] == ["database"]
    with pytest.raises(ApiRefused, match="no connection 'none' in the database, nor in Vault at http"):
        await rest.get_connection("none")
