"""The service: its lifecycle, several of them, and what happens while the database is away."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import psycopg
import pytest
from psycopg import sql

from evenflow.api import service as service_module
from evenflow.api.service import ApiService
from evenflow.client.execution import ExecutionClient
from evenflow.client.http import HttpClient
from evenflow.client.rest import RestClient
from evenflow.core.ending import Ending
from evenflow.errors import ApiRefused, ApiUnavailable, DatabaseNotMigrated, DatabaseUnavailable, SettingsError
from evenflow.wire import messages as m
from tests.api.world import ClientOfAll, World
from tests.apis import make_api as new_api
from tests.ports import lasting_port
from tests.tokens import service_token
from tests.waiting import until

MakeApi = Callable[..., ApiService]


@pytest.fixture
async def make_api(database_url: str, tmp_path: Path) -> AsyncIterator[MakeApi]:
    made: list[ApiService] = []

    def make(url: str = database_url, *, port: int = 0, name: str = "other") -> ApiService:
        made.append(new_api(url, tmp_path, port=port, name=name))
        return made[-1]

    yield make
    for service in made:
        await service.stop()


async def status_of(url: str, path: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"{url}{path}") as answer:
        return answer.status


# -- starting and stopping ---------------------------------------------------------------------------------------------


async def test_it_does_not_start_on_a_database_that_is_not_migrated(empty_database_url: str, make_api: MakeApi) -> None:
    with pytest.raises(DatabaseNotMigrated, match="Type: evenflow db migrate"):
        await make_api(empty_database_url).start()


async def test_it_does_not_start_without_a_database(make_api: MakeApi) -> None:
    with pytest.raises(DatabaseUnavailable):
        await make_api("postgresql://x@127.0.0.1:1/x").start()


async def test_it_does_not_start_on_a_port_that_is_taken(make_api: MakeApi) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=rf"cannot listen on 127\.0\.0\.1:{port}: .*in use.* set EVENFLOW_API_PORT"):
            await make_api(port=port).start()


async def test_drained_it_takes_nothing_new_and_finishes_what_it_has(api: ApiService, api_url: str, world: World) -> None:
    await api.drain()
    with pytest.raises(aiohttp.ClientConnectionError):
        await status_of(api_url, "/health/live")
    assert world.one("select state from service") == "active", "it lives until it is stopped"
    await api.stop()
    assert world.one("select state from service") == "stopped"


async def test_a_web_server_that_ends_by_itself_is_a_failure(api: ApiService) -> None:
    failure = asyncio.create_task(api.failed())
    await asyncio.sleep(0)
    assert not failure.done()
    assert api._web is not None
    api._web._server.end()
    assert "ended by itself" in str(await asyncio.wait_for(failure, 5))


async def test_it_registers_anew_when_it_was_declared_lost(
    make_api: MakeApi, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "BEAT_S", 0.02)
    await make_api().start()
    db.execute("update service set state = 'lost'")
    alive = "select count(*) from service where kind = 'api' and state = 'active'"
    await until(lambda: db.execute(alive).fetchone() == (1,), within_s=10)
    db.execute("update service set beat_at = now() - interval '1 minute'")
    late = "select count(*) from service where state = 'active' and beat_at < now() - interval '30 seconds'"
    await until(lambda: db.execute(late).fetchone() == (0,), within_s=10)


# -- several -----------------------------------------------------------------------------------------------------------


async def test_several_share_everything(client: ExecutionClient, worker: int, world: World, make_api: MakeApi) -> None:
    other = make_api()
    await other.start()
    second = ClientOfAll(f"http://127.0.0.1:{other.port}", world.conn, "worker")
    run = world.run(world.add_dag())
    waiting = asyncio.create_task(second.claim(m.Claim(service_id=worker, request_key="k", slots=1, queues=["default"], wait_s=20)))
    await until(lambda: other._claims is not None and other._claims.waiting == 1, within_s=10)
    world.dispatch(run, 1)
    (got,) = (await waiting).assignments
    report = m.Report(token=got.token, ending=Ending(outcome="success"))
    assert (await client.report(m.Reports(reports=[report]))).accepted == 1, "a token of one is good at the other"
    await second.close()


# -- when the database or the API is away ------------------------------------------------------------------------------


@pytest.fixture(params=["allow_connections {}", "connection limit {}"], ids=["away", "too many connections"])
def outage(database_url: str, postgres, request: pytest.FixtureRequest) -> AsyncIterator[Callable[[bool], None]]:
    """Cuts the database off, or all its connections are taken by others, and lets it back."""
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    values = {"allow_connections {}": (True, False), "connection limit {}": (-1, 0)}[request.param]
    with psycopg.connect(postgres.url(), autocommit=True) as maintenance:

        def cut(off: bool) -> None:
            change = sql.SQL(f"alter database {{}} {request.param}").format(sql.Identifier(name), sql.Literal(values[off]))
            maintenance.execute(change)
            if off:
                maintenance.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])

        yield cut
        cut(False)


@pytest.mark.system
async def test_while_the_database_is_away_it_says_so_and_comes_back(
    api: ApiService, api_url: str, operator_token: str, world: World, worker: int, outage: Callable[[bool], None]
) -> None:
    client = ExecutionClient(api_url, service_token(world.conn, "worker", worker))
    assert api._pool is not None
    api._pool.timeout = 0.3  # the default is longer than a test should take
    outage(True)
    assert await status_of(api_url, "/health/live") == 200
    assert await status_of(api_url, "/health/ready") == 503
    async with RestClient(api_url, operator_token) as rest:
        with pytest.raises(ApiRefused, match="The database does not answer") as refused:
            await rest.list_dags()
        assert refused.value.status == 503
    hasty = HttpClient(api_url, operator_token, patience_s=0.5)
    assert (await hasty.request("GET", "/api/v1/dags")).status == 503
    await hasty.close()
    beat = asyncio.create_task(client.beat(worker, m.Beat(), patience_s=30))
    await asyncio.sleep(0)
    outage(False)
    assert (await beat).known, "sent again until it was served"
    await client.close()


async def test_a_listener_that_lost_its_connection_misses_nothing(
    api: ApiService, client: ExecutionClient, worker: int, world: World
) -> None:
    run = world.run(world.add_dag())
    for epoch in range(1, 4):
        waiting = asyncio.create_task(
            client.claim(m.Claim(service_id=worker, request_key=str(epoch), slots=1, queues=["default"], wait_s=20))
        )
        await until(lambda: api._claims is not None and api._claims.waiting == 1, within_s=10)
        world.conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name like '%listener'"
            " and datname = current_database()"
        )
        world.dispatch(run, epoch, task=1, map_index=epoch)
        assert [a.epoch for a in (await waiting).assignments] == [epoch]


async def test_clients_wait_for_an_api_that_restarts(make_api: MakeApi, database_url: str) -> None:
    port = lasting_port()
    client = RestClient(f"http://127.0.0.1:{port}", "token", patience_s=20)
    ready = asyncio.create_task(client.is_ready())
    await asyncio.sleep(0)
    await make_api(port=port).start()
    assert await ready
    await client.close()


async def test_clients_give_up_on_an_api_that_stays_away() -> None:
    client = RestClient("http://127.0.0.1:1/", "token")
    with pytest.raises(
        ApiUnavailable, match=r"The Evenflow API at http://127\.0\.0\.1:1 cannot be reached: .* Start it \(evenflow up\)"
    ):
        await client.list_dags()
    await client.close()


async def test_what_must_not_happen_twice_is_not_sent_twice() -> None:
    """A server that takes the request and hangs up: what has no idempotency key is not repeated, a read is."""
    requests: list[bytes] = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await reader.readline())[:5])
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    client = RestClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "token", patience_s=0.4)
    with pytest.raises(ApiUnavailable):
        await client.cancel_run("d", "r")
    assert requests == [b"POST "]
    with pytest.raises(ApiUnavailable):
        await client.get_status()
    assert requests.count(b"GET /") > 1
    await client.close()
    server.close()


async def test_an_answer_that_is_not_ours(make_api: MakeApi) -> None:
    async def other_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\noops")
        writer.close()

    server = await asyncio.start_server(other_server, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    rest, execution = RestClient(url, "token"), ExecutionClient(url, "token")
    with pytest.raises(ApiRefused, match="not as an Evenflow API does"):
        await rest.list_dags()
    with pytest.raises(ApiUnavailable, match=r"not an Evenflow API \(status 404\).* or EVENFLOW_API_URL is wrong"):
        await execution.beat(1, m.Beat(), patience_s=0.0)
    await rest.close()
    await execution.close()
    server.close()
