"""Whoever needs no token costs the database next to nothing, and keeps nobody out who has one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from evenflow.api import limits
from evenflow.api.kept import SharedReading
from evenflow.api.service import ApiService
from evenflow.cli.commands import status as command
from evenflow.client.rest import RestClient
from evenflow.contracts.rest.system import DatabaseStatus, PushExecutorStatus, Status
from evenflow.core.service import missing_kinds
from evenflow.explaining.serving import executor_trouble
from evenflow.runtime.exits import ExitCode
from tests.api.world import World
from tests.tokens import fleet_token

PATHS = ("/health", "/health/ready", "/metrics/targets")


class Counting:
    """What is read, and how often; it goes on when it is let."""

    def __init__(self) -> None:
        self.times = 0
        self.go = asyncio.Event()

    async def read(self) -> int:
        self.times += 1
        await self.go.wait()
        if self.times == 2:
            raise ValueError("the second")
        return self.times


async def test_however_many_ask_it_is_read_once() -> None:
    """R-SE2: and an error is told to all who wait for it, too."""
    counting = Counting()
    kept = SharedReading(counting.read, kept_s=3600.0, at_most_s=60.0)
    asking = [asyncio.create_task(kept.get()) for _ in range(50)]
    await asyncio.sleep(0)
    asking[0].cancel()  # who goes takes nobody with them
    counting.go.set()
    assert await asyncio.gather(*asking[1:]) == [1] * 49
    assert await kept.get() == 1
    kept._until = 0.0
    failed = await asyncio.gather(*(kept.get() for _ in range(50)), return_exceptions=True)
    assert {str(error) for error in failed} == {"the second"}
    assert counting.times == 2


async def test_what_takes_too_long_is_told_so() -> None:
    kept = SharedReading(Counting().read, kept_s=1.0, at_most_s=0.01)
    with pytest.raises(TimeoutError):
        await kept.get()


async def test_probes_are_answered_while_every_other_connection_is_taken(api: ApiService, api_url: str, world: World) -> None:
    """R-HA4: and a flood of them is one look at the database."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(60):

        async def ask(path: str) -> int:
            async with session.get(f"{api_url}{path}") as answer:
                await answer.read()
                return answer.status

        *others, probing = api._pools
        taken = [(pool, await pool.getconn()) for pool in others for _ in range(pool.max_size)]
        try:
            assert [await ask(path) for path in PATHS] == [503, 200, 200]
            assert await ask("/metrics") == 200
        finally:
            for pool, connection in taken:
                await pool.putconn(connection)
        before = probing.get_stats()["requests_num"]
        begun = asyncio.get_running_loop().time()
        await asyncio.gather(*(ask(path) for path in PATHS * 30))
        took = asyncio.get_running_loop().time() - begun
        assert probing.get_stats()["requests_num"] - before <= 1 + took / limits.PROBES_KEPT


# -- what is missing ---------------------------------------------------------------------------------------------------

ALL = ("api", "scheduler", "processor", "worker")


@pytest.mark.parametrize(
    ("healthy", "triggers", "missing"),
    [
        (ALL, 0, []),
        (ALL, 1, ["triggerer"]),
        ((*ALL, "triggerer"), 1, []),
        (("api", "worker", "worker"), 0, ["scheduler", "processor"]),
        ((), 3, [*ALL, "triggerer"]),
    ],
)
def test_a_triggerer_is_needed_by_deferred_tasks_only(healthy: tuple[str, ...], triggers: int, missing: list[str]) -> None:
    assert missing_kinds(healthy, triggers=triggers) == missing


async def test_deferred_tasks_without_a_triggerer_are_no_good_health(
    api: ApiService, api_url: str, operator_token: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA4: in ``/health`` and ``evenflow status`` alike."""
    for kind in ALL[1:]:
        world.service(kind, kind)

    async def told() -> tuple[int, list[str], int]:
        api._probes._kept._until = 0.0  # what was read a moment ago is no longer kept
        async with aiohttp.ClientSession() as session, session.get(f"{api_url}/health") as answer:
            status, health = answer.status, await answer.json()
        return status, health["missing"], await exit_code()

    async def exit_code() -> int:
        def remote() -> RestClient:
            return RestClient(api_url, operator_token)

        monkeypatch.setattr(command, "remote", remote)
        return await command.status(json=True)

    assert await told() == (200, [], ExitCode.OK)
    world.resume(world.run(world.add_dag()), 5)
    world.conn.execute("update deferral set purpose = null, due_at = now()")
    assert await told() == (503, ["triggerer"], ExitCode.UNREACHABLE)
    world.service("triggerer", "t")
    world.conn.execute("update deferral set triggerer_id = (select service_id from service where kind = 'triggerer')")
    assert await told() == (200, [], ExitCode.OK)
    world.conn.execute("update service set beat_at = now() - interval '1 minute' where kind = 'triggerer'")
    assert await told() == (503, ["triggerer"], ExitCode.UNREACHABLE), "those of one that is silent run nowhere"


def test_people_are_told_what_waits(capsys: pytest.CaptureFixture[str]) -> None:
    """R-HA4."""
    found = Status(
        pace=None,
        version="0",
        services=[],
        missing=["triggerer"],
        outrun=[],
        queues=[],
        executors=[
            PushExecutorStatus.model_validate({**row, "trouble": executor_trouble(row)})
            for row in (
                {"name": "k8s", "kind": "kubernetes", "queues": ["etl"], "launchers": 0, "refusal": None, "looked_for": False},
                {"name": "batch", "kind": "celery", "queues": ["gpu"], "launchers": 0, "refusal": "no broker is set"},
                {"name": "fine", "kind": "celery", "queues": ["x"], "launchers": 1, "refusal": None, "waiting": 0},
            )
        ],
        runs_queued=0,
        inbox=0,
        oldest_report_s=None,
        quarantined={},
        database=DatabaseStatus(server_version="18", schema_version=1, database_bytes=1, oldest_snapshot_s=None),
        not_active=[],
        triggers_waiting=2,
        triggers_running=0,
        history_days_ahead=7,
    )
    command._show(found)
    shown = capsys.readouterr()
    said = " ".join((shown.out + shown.err).split())
    assert "Nothing runs the triggers of 2 deferred tasks. No triggerer is healthy. Start one: evenflow triggerer" in said
    assert "No launcher serves k8s, the executor of etl: nothing is sent there. Start one: evenflow launcher" in said
    assert "No launcher serves batch, the executor of gpu: nothing is sent there. One that lives says: no broker is set" in said
    assert "fine" not in said


# -- a token comes before a body ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/dags/sales/runs"),
        ("PATCH", "/api/v1/dags/sales"),
        ("POST", "/api/v1/there/is/no/such/path"),
        ("POST", "/execution/v1/claim"),
        ("POST", "/execution/v1/files/parsed"),
        ("PUT", f"/execution/v1/code/{'0' * 64}"),
    ],
)
@pytest.mark.parametrize("framing", ["content-length: 900000000", "transfer-encoding: chunked"])
@pytest.mark.parametrize("token", ["none", "bad", "foreign"])
async def test_who_has_no_good_token_is_refused_before_their_body_is_read(
    api_url: str, world: World, method: str, path: str, framing: str, token: str
) -> None:
    """R-SE2: nothing of the body is sent here, so who waits for it never answers."""
    shown = {"none": "", "bad": "authorization: bearer abc\r\n"}.get(token) or ""
    if token == "foreign":
        kind = "triggerer" if path.startswith("/execution") else "worker"
        shown = f"authorization: bearer {fleet_token(world.conn, kind)}\r\n"
    host, port = api_url.removeprefix("http://").split(":")
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"{method} {path} HTTP/1.1\r\nhost: x\r\n{shown}{framing}\r\ncontent-type: application/json\r\n\r\n".encode())
        answer = await reader.read()  # to the end: the connection is closed, for the body would follow
        writer.close()
    assert answer.startswith(b"HTTP/1.1 403" if token == "foreign" else b"HTTP/1.1 401"), answer
    assert b"connection: close" in answer.lower()


async def test_an_endless_body_with_a_bad_token_is_not_read_on(api_url: str, world: World) -> None:
    """R-SE2."""
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 65_536
            yield b"x" * 65_536

    async with aiohttp.ClientSession(headers={"Authorization": "Bearer abc"}) as session, asyncio.timeout(60):
        for path in ("/api/v1/dags/sales/runs", "/execution/v1/claim"):
            try:
                async with session.post(f"{api_url}{path}", data=endless()) as answer:
                    assert answer.status == 401
            except aiohttp.ClientConnectionError:
                pass  # it hung up while we were sending, and that is as good
    assert sent < 64 * 2**20, "what the kernel has room for"
