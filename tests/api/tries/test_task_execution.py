"""Airflow's Task Execution API over HTTP: who may ask, and what becomes of a try whose client has no worker beside it (R-AF1)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from evenflow.api import tokens as t
from evenflow.client.rest import RestClient
from evenflow.contracts.airflow.dates import NEWEST
from evenflow.contracts.airflow.of_try import instance_id
from evenflow.core.executors import KUBERNETES
from evenflow.core.limits import MAX_INLINE_XCOM
from evenflow.store.serving import executors
from evenflow.wire.messages import AIRFLOW_API
from tests.api.world import World
from tests.tokens import key_state, operator_token, service_token
from tests.world import at_once

QUEUE = "pods"
Answer = tuple[int, Any]


class TaskClient:
    """One that speaks the API of this date with a token, and takes a new token when it is given one."""

    def __init__(self, http: aiohttp.ClientSession, url: str, token: str, epoch: int) -> None:
        self._http, self._url, self.token, self.id = http, url, token, instance_id(epoch)

    async def ask(self, method: str, path: str, body: Any = None, *, date: str = NEWEST, raw: bytes | None = None) -> Answer:
        sent = raw if raw is not None else None if body is None else json.dumps(body).encode()
        heads = {"Authorization": f"Bearer {self.token}", "Airflow-API-Version": date}
        async with self._http.request(method, f"{self._url}{AIRFLOW_API}/{path}", data=sent, headers=heads) as answer:
            text = await answer.text()
            self.token = answer.headers.get("Refreshed-API-Token", self.token)
            assert "detail" not in text or answer.headers["Content-Type"] == "application/json", "the client reads no other reason"
            return answer.status, json.loads(text) if text else None

    async def begin(self, host: str = "pod-1", pid: int = 7) -> Answer:
        return await self.ask("PATCH", f"task-instances/{self.id}/run", {"hostname": host, "pid": pid, "state": "running"})

    async def beat(self) -> int:
        return (await self.ask("PUT", f"task-instances/{self.id}/heartbeat", {"hostname": "pod-1", "pid": 7}))[0]

    async def state(self, state: str, **more: Any) -> Answer:
        return await self.ask("PATCH", f"task-instances/{self.id}/state", {"state": state, **more})


@pytest.fixture
async def rest(api_url: str, world: World) -> AsyncIterator[RestClient]:
    async with RestClient(api_url, operator_token(world.conn)) as client:
        yield client


@pytest.fixture
def epoch(world: World) -> int:
    """A try of a queue whose executor is sent it."""
    told: dict[str, Any] = {"kind": KUBERNETES, "queues": [QUEUE], "slots": 9, "options": {}, "by": "test"}
    assert at_once(executors.set_executor(world.awaited, name="k8s", **told))
    return world.dispatch(world.run(world.add_dag(), params={"p": 1}), 1, queue=QUEUE)


@pytest.fixture
def client(http: aiohttp.ClientSession, api_url: str, world: World, epoch: int) -> TaskClient:
    """With the token that its launcher has given it."""
    token = t.FleetToken("worker", scope=(QUEUE,), epoch=epoch, worker="the-pod")
    return TaskClient(http, api_url, t.mint(key_state(world.conn), token, ttl=60), epoch)


def reported(world: World, epoch: int) -> list[tuple[str, dict[str, Any]]]:
    return [(kind, payload or {}) for kind, payload in world.all("select kind, payload from report where epoch = %s", epoch)]


async def test_a_client_begins_its_try_beats_and_ends_it(world: World, client: TaskClient, epoch: int) -> None:
    """R-AF1, R-EX2: it is a worker to all others, with the name that its launcher has given it, and leaves when it has ended."""
    status, told = await client.begin()
    assert status == 200
    assert (told["dag_run"]["dag_id"], told["dag_run"]["conf"]) == ("sales", {"p": 1})
    assert (told["max_tries"], told["should_retry"]) == (2, True)
    row = world.one("select s.name, s.host, s.pid, s.state from service s join dispatch d on d.worker_id = s.service_id")
    assert row == ("the-pod", "pod-1", 7, "active")
    assert reported(world, epoch) == [("started", {})]
    world.conn.execute("update service set beat_at = now() - interval '10 seconds' where name = 'the-pod'")
    assert await client.beat() == 204
    assert world.one("select now() - beat_at < interval '5 seconds' from service where name = 'the-pod'")
    key = "xcoms/sales/r1/extract/return_value"
    assert await client.ask("POST", key, [1, 2], raw=None) == (201, "ok")
    assert await client.ask("GET", key) == (200, {"key": "return_value", "value": [1, 2]})
    assert await client.ask("PATCH", f"task-instances/{client.id}/skip-downstream", {"tasks": ["load"]}) == (204, None)
    assert (await client.state("success", end_date="2026-03-01T00:00:00Z"))[0] == 204
    assert reported(world, epoch)[1] == ("exit", {"outcome": "success", "skip": [2]})
    assert world.one("select value, length from xcom where key = 'return_value'") == ([1, 2], 2)
    assert world.one("select state from service where name = 'the-pod'") == "stopped"


async def test_a_start_that_is_asked_for_again_is_the_same(world: World, client: TaskClient) -> None:
    """The client repeats what has had no answer in five seconds, and another process of a copied token gets nothing."""
    first = client.token
    assert (await client.begin())[0] == 200
    client.token = first
    assert (await client.begin())[0] == 200
    assert world.one("select count(*) from service where name = 'the-pod'") == 1
    client.token = first
    status, told = await client.begin(pid=8)
    assert (status, told["detail"]["reason"], told["detail"]["previous_state"]) == (409, "invalid_state", "running")


async def test_a_try_that_is_to_end_hears_so_at_its_next_heartbeat(world: World, client: TaskClient, epoch: int) -> None:
    """The client then kills its task."""
    await client.begin()
    world.conn.execute("update dispatch set kill_at = now() where epoch = %s", [epoch])
    assert await client.beat() == 409
    world.end(epoch)
    assert await client.beat() == 409


async def test_a_token_is_good_for_its_own_try(world: World, client: TaskClient, http: aiohttp.ClientSession) -> None:
    """R-SE1: before the start for the start alone, afterwards for this try, and when that is over for nothing."""
    assert (await client.ask("GET", "variables/x"))[0] == 403
    await client.begin()
    other = TaskClient(http, client._url, client.token, 99)
    assert (await other.state("success"))[0] == 403
    assert (await client.ask("POST", "xcoms/sales/r1/load/key", 1))[0] == 403
    assert (await client.ask("GET", "xcoms/other/r1/load/key"))[0] == 403
    world.end(1)
    status, told = await client.ask("GET", "variables/x")
    assert (status, told["detail"]["reason"]) == (409, "stale_epoch")


async def test_nobody_else_may_ask(world: World, client: TaskClient) -> None:
    """R-SE1: neither a service nor a program without a token."""
    for token in (service_token(world.conn, "worker", 1), t.mint(key_state(world.conn), t.FleetToken("worker"), ttl=60), ""):
        client.token = token
        assert (await client.begin())[0] in (401, 403)
    assert world.one("select count(*) from dispatch where worker_id is not null") == 0


@pytest.mark.parametrize("date", ["2025-11-05", "2027-01-01", ""])
async def test_another_date_is_refused_before_anything_begins(world: World, client: TaskClient, date: str) -> None:
    body = {"hostname": "h", "pid": 1}
    status, told = await client.ask("PATCH", f"task-instances/{client.id}/run", body, date=date)
    assert (status, told["detail"]["reason"]) == (400, "wrong_version")
    assert "2026-04-06 (SDK 1.2) and 2026-06-30 (SDK 1.3)" in told["detail"]["message"]
    assert world.one("select count(*) from dispatch where worker_id is not null") == 0


async def test_secrets_are_the_vaults_and_not_those_of_the_apis_host(
    client: TaskClient, rest: RestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE2: what stands in the environment of an API server is for nobody's task."""
    monkeypatch.setenv("EVENFLOW_CONN_HERE", "http://me:secret@here")
    monkeypatch.setenv("EVENFLOW_VAR_HERE", "1")
    await rest.set_connection("there", uri="http://me:open-sesame@there:80/db")
    await client.begin()
    status, told = await client.ask("GET", "connections/here")
    assert (status, told["detail"]["message"]) == (404, "Connection 'here' is not defined. Did you mean 'there'?")
    assert (await client.ask("GET", "variables/here"))[0] == 404
    status, told = await client.ask("GET", "connections/there")
    assert (status, told["password"], told["port"]) == (200, "open-sesame", 80)


async def test_a_large_value_goes_to_object_storage(world: World, client: TaskClient) -> None:
    await client.begin()
    large = "x" * MAX_INLINE_XCOM
    assert (await client.ask("POST", "xcoms/sales/r1/extract/k", large))[0] == 201
    assert world.one("select object is not null, size from xcom where key = 'k'") == (True, len(large) + 2)
    assert await client.ask("GET", "xcoms/sales/r1/extract/k") == (200, {"key": "k", "value": large})


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"state": 7}', b"[" * 100_000])
async def test_what_cannot_be_read_is_refused_and_not_asked_again(client: TaskClient, body: bytes) -> None:
    """The client repeats what fails with 500 and above."""
    await client.begin()
    assert 400 <= (await client.ask("PATCH", f"task-instances/{client.id}/state", raw=body))[0] < 500
    assert (await client.ask("GET", "connections/x?a=1&b=2"))[0] in (404, 422)
    assert (await client.ask("GET", "what/is/this"))[0] == 422


async def test_a_deferral_is_kept_for_its_trigger(world: World, client: TaskClient, epoch: int) -> None:
    await client.begin()
    defers = {"classpath": "a.B", "trigger_kwargs": {"x": 1}, "next_method": "go", "next_kwargs": {}, "trigger_timeout": "PT9S"}
    assert (await client.state("deferred", **defers))[0] == 204
    _, (kind, exit_) = reported(world, epoch)
    assert (kind, exit_["outcome"], exit_["defer"]["timeout_s"]) == ("exit", "deferred", 9.0)
    assert "trigger_kwargs" not in exit_["defer"], "they are sealed"


async def test_a_try_that_a_worker_has_may_ask_with_its_own_token(
    http: aiohttp.ClientSession, api_url: str, world: World, client: TaskClient
) -> None:
    """Its worker beats for it."""
    own = world.dispatch(world.run(world.add_dag()), 2)
    worker = world.service()
    world.conn.execute("update dispatch set worker_id = %s, claim_key = 'k' where epoch = 2", [worker])
    world.conn.execute("update service set beat_at = now() - interval '9 seconds' where service_id = %s", [worker])
    held = TaskClient(http, api_url, world.try_token(own), own)
    assert (await held.begin())[0] == 200
    assert await held.beat() == 204
    assert world.one("select now() - beat_at > interval '5 seconds' from service where service_id = %s", worker)


async def test_the_log_of_a_try_says_where_it_runs(client: TaskClient, rest: RestClient) -> None:
    await client.begin()
    log = await rest.read_log("sales", "r1", "extract")
    assert "by Airflow's SDK on pod-1, process 7" in str(log)


_EVENT = {"dest_asset_key": {"name": "a", "uri": "s3://a"}, "extra": {"n": 1}}


@pytest.mark.parametrize(
    "said",
    [
        {"state": "up_for_retry", "retry_delay_seconds": "soon"},
        {"state": "deferred", "classpath": "a.B", "next_method": ["go"]},
        {"state": "deferred", "classpath": "a.B", "next_method": "go", "next_kwargs": [1]},
        {"state": "deferred", "classpath": "a.B", "next_method": "go", "queue": 7},
        {"state": "success", "outlet_events": [{**_EVENT, "dest_asset_key": {"name": 7, "uri": "s3://a"}}]},
        {"state": "success", "outlet_events": [{**_EVENT, "extra": [1]}]},
        {"state": "success", "outlet_events": [{**_EVENT, "source_alias_name": 7}]},
        {"state": "success", "outlet_events": [{**_EVENT, "dest_asset_key": {"name": "a\0", "uri": "s3://a"}}]},
    ],
)
async def test_an_end_of_wrong_types_is_refused_and_not_stored(
    world: World, client: TaskClient, epoch: int, said: dict[str, Any]
) -> None:
    """Stored, it would stop a scheduler or the next worker."""
    await client.begin()
    status, told = await client.ask("PATCH", f"task-instances/{client.id}/state", said)
    assert (status, len(reported(world, epoch))) == (422, 1), told


STRANGE: list[tuple[str, str, Any]] = [
    ("POST", "xcoms/sales/r1/extract/%00", 1),
    ("POST", "xcoms/sales/r1/extract/k", "\0"),
    ("POST", "xcoms/sales/r1/extract/k", float("nan")),
    ("POST", "xcoms/sales/r1/extract/k", "\ud800"),
    ("POST", "xcoms/sales/r1/extract/return_value", float("nan")),
    ("POST", "xcoms/sales/r1/extract/return_value", "\ud800"),
    ("GET", "xcoms/sales/%00/extract/k", None),
    ("GET", "xcoms/sales/r1/extract/%00", None),
    ("GET", "xcoms/sales/r1/extract/k?map_index=99999999999", None),
    ("GET", "xcoms/sales/r1/extract/k?map_index=99999999999&include_prior_dates=1", None),
    ("GET", "xcoms/sales/r1/extract/%00?include_prior_dates=1", None),
    ("GET", "xcoms/sales/r1/extract/k/item/99999999999999999999", None),
    ("GET", "xcoms/sales/r1/extract/k/slice?step=0", None),
    ("GET", "variables/%00", None),
    ("GET", "variables/%ff", None),
    ("GET", "connections/%00", None),
    ("PUT", "variables/%00", {"val": "x"}),
    ("PUT", "variables/ok", {"val": "x\0"}),
    ("PUT", "variables/ok", {"val": "\ud800"}),
    ("PUT", "variables/ok", {"val": "x", "description": "\0"}),
    ("DELETE", "variables/%00", None),
    ("GET", "dag-runs/sales/%00/state", None),
    ("GET", "dag-runs/%00/r1/state", None),
    ("GET", "dag-runs/count?dag_id=%00&run_ids=r1", None),
    ("GET", "dag-runs/count?dag_id=sales&logical_dates=soon", None),
    ("GET", "task-instances/states?dag_id=sales&run_ids=r1&task_ids=%00", None),
    ("GET", "task-instances/states?dag_id=sales&run_ids=r1&task_group_id=%00", None),
    ("POST", "dag-runs/sales/%00", {"conf": {}}),
    ("POST", "dag-runs/sales/n1", {"conf": {"a": "\0"}}),
    ("POST", "dag-runs/sales/n2", {"conf": {"a": "\ud800"}}),
    ("POST", "dag-runs/sales/n3", {"logical_date": "9999-12-31T23:59:59.999999-12:00"}),
    ("PUT", "task-instances/{id}/rtif", {"a": "\0"}),
    ("PUT", "task-instances/{id}/rtif", {"a": "\ud800"}),
    ("PUT", "store/ti/{id}/%00", {"value": 1}),
    ("PUT", "store/ti/{id}/k", {"value": "\0"}),
    ("PUT", "store/ti/{id}/k", {"value": "\ud800"}),
    ("GET", "store/ti/{id}/%00", None),
    ("GET", "store/asset/by-name/value?name=%00&key=k", None),
    ("GET", "assets/by-name?name=%00", None),
    ("GET", "asset-events/by-asset?name=%00", None),
    ("POST", "hitlDetails/{id}", {"subject": "\0", "options": ["a"]}),
    ("POST", "hitlDetails/{id}", {"subject": "\ud800", "options": ["a"]}),
    ("POST", "hitlDetails/{id}", {"subject": 7, "options": "ab", "params": [1]}),
    ("PATCH", "task-instances/{id}/skip-downstream", {"tasks": [["load"], 7]}),
    ("PATCH", "task-instances/{id}/state", {"state": "up_for_reschedule", "reschedule_date": "0001-01-01T00:00:00+14:00"}),
    ("PATCH", "task-instances/{id}/state", {"state": "deferred", "classpath": "a.B", "next_method": "\ud800"}),
    ("PATCH", "task-instances/{id}/state", {"state": "deferred", "classpath": "a\ud800", "next_method": "go"}),
    ("PATCH", "task-instances/{id}/state", {"state": "success", "outlet_events": [{**_EVENT, "extra": {"a": "\0"}}]}),
    (
        "PATCH",
        "task-instances/{id}/state",
        {"state": "success", "outlet_events": [{**_EVENT, "dest_asset_key": {"name": "\ud800", "uri": "u"}}]},
    ),
]


async def test_no_request_of_a_client_is_an_error_of_the_server(client: TaskClient) -> None:
    """It would be repeated for minutes."""
    await client.begin()
    got = {(method, path, str(body)): await client.ask(method, path.format(id=client.id), body) for method, path, body in STRANGE}
    assert [asked for asked, (status, _) in got.items() if status >= 500] == []


@pytest.mark.parametrize(
    "said", [{"hostname": "h\0", "pid": 7}, {"hostname": "h", "pid": 2**40}, {"hostname": "h" * 9_999, "pid": 7}]
)
async def test_a_client_that_cannot_be_is_refused(client: TaskClient, said: dict[str, Any]) -> None:
    status, told = await client.ask("PATCH", f"task-instances/{client.id}/run", said)
    assert 400 <= status < 500, told


@pytest.mark.parametrize("path", [b"variables/\xff", b"variables/a%", b"variables/%zz", b"variables/x?key=y", b"variables/x?\xff"])
async def test_a_path_of_other_bytes_is_refused(client: TaskClient, api_url: str, path: bytes) -> None:
    await client.begin()
    host, _, port = api_url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    heads = f"Authorization: Bearer {client.token}\r\nAirflow-API-Version: {NEWEST}\r\nHost: a\r\nConnection: close\r\n\r\n"
    writer.write(b"GET " + AIRFLOW_API.encode() + b"/" + path + b" HTTP/1.1\r\n" + heads.encode())
    status = (await reader.readline()).split()[1]
    writer.close()
    assert 400 <= int(status) < 500, status
