"""R-CS7, R-DQ9: triggerers, and processes of theirs, that die, stand still, block or leave: what they had in hand goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from evenflow.api.execution import services as beat_route
from evenflow.api.service import ApiService
from evenflow.core import lease, metrics
from evenflow.core.limits import MARGIN_S
from evenflow.core.service import ServiceKind
from evenflow.runtime.settings import Settings
from evenflow.scheduler.duties.leases import watch_leases
from evenflow.store.db.connect import connect
from evenflow.triggerer import limits
from evenflow.triggerer.service import TriggererService
from tests.apis import running_api
from tests.tokens import fleet_token
from tests.triggerer.conftest import StartTriggerer
from tests.triggerer.world import FILE_TRIGGER, WATCH, World, begun, below, cleaned
from tests.waiting import until
from tests.worker.world import runs

LEASE_S = MARGIN_S + 1.0
# What blocks the loop of these files' processes for half a second has blocked it.
IMPATIENT = "from evenflow.triggerer import limits\nlimits.LOOK, limits.BLOCKED = 0.05, 0.5\n"
BLOCKS = (
    IMPATIENT
    + FILE_TRIGGER
    + """
class Blocks(BaseTrigger):
    def __init__(self, path):
        self.path = path

    async def run(self):
        with open(self.path + ".begun", "a") as begun:
            begun.write(f"{os.getpid()}\\n")
        await asyncio.sleep(0.2)
        self.wait()
        yield TriggerEvent("unblocked")

    def wait(self):
        while not os.path.exists(self.path):
            time.sleep(0.02)
"""
)
DIES = (
    FILE_TRIGGER
    + """
class Dies(BaseTrigger):
    async def run(self):
        await asyncio.sleep(0.1)
        os._exit(3)
        yield
"""
)


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beat_route, "LEASE_S", LEASE_S)
    monkeypatch.setattr(lease, "LEASE_S", LEASE_S)


@contextmanager
def triggerer_process(api_url: str, token: str, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    settings = Settings(home=home, dags=home).for_service(name="other", api_url=api_url, token=token, metrics_port=-1)
    command = [sys.executable, "-m", "evenflow.runtime.service", str(ServiceKind.TRIGGERER)]
    process = subprocess.Popen(command, env=settings.environment(ServiceKind.TRIGGERER, os.environ))
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


async def lost(world: World, database_url: str, service: str) -> None:
    """A scheduler looks at leases until this triggerer's has lapsed, and its triggers are free."""
    with connect(database_url, name="scheduler") as conn:

        def look() -> bool:
            watch_leases(conn)
            row = world.conn.execute("select state from service where name = %s order by service_id limit 1", [service]).fetchone()
            return row == ("lost",)

        await until(look, "the lease of the triggerer")
        watch_leases(conn)


async def test_its_beats_say_what_it_has_heard(triggerer: TriggererService, world: World, tmp_path: Path) -> None:
    """R-DQ9: so that one that comes late frees nothing that was claimed since."""
    epoch = world.waits(WATCH, source=FILE_TRIGGER, path=str(tmp_path / "f"))
    await until(lambda: begun(tmp_path / "f"), "it begins")
    (claimed_at,) = world.conn.execute("select extract(epoch from claimed_at)::float8 from deferral").fetchone() or ()
    await triggerer._presence.beat_now()
    beat = triggerer._beat()
    assert beat.epochs == [epoch]
    assert beat.heard_at is not None
    assert beat.heard_at > claimed_at
    await until(lambda: triggerer._claims.polls.under_way, "its next claim")
    assert [claim.request_key for claim in triggerer._claims.polls.under_way] == [triggerer._beat().asks]


@pytest.mark.slow
async def test_triggers_of_a_killed_triggerer_go_on_elsewhere_after_its_lease(
    short_leases: None, api: ApiService, world: World, database_url: str, start_triggerer: StartTriggerer, tmp_path: Path
) -> None:
    """No process of it is left, each of its triggers begins anew once, and each event is there once."""
    paths = [tmp_path / f"f{n}" for n in range(20)]
    with triggerer_process(f"http://127.0.0.1:{api.port}", fleet_token(world.conn, "triggerer"), tmp_path / "other") as process:
        epochs = [world.waits(WATCH, source=FILE_TRIGGER, path=str(path)) for path in paths]
        await until(lambda: all(begun(path) for path in paths), "all begin")
        left = below(process.pid)
        process.kill()
        process.wait()
    await until(lambda: not any(runs(child.pid) for child in left), "the end of its processes")
    await start_triggerer()
    assert [world.claim_of(epoch)[1] for epoch in epochs] == [1] * 20  # they are the lost one's until its lease is over
    await lost(world, database_url, "other")
    await until(lambda: all(len(begun(path)) == 2 for path in paths), "all begin anew")
    for path in paths:
        path.write_text("x")
    assert [(await world.event_of(epoch))["claim"] for epoch in epochs] == [2] * 20
    assert [len(world.events(epoch)) for epoch in epochs] == [1] * 20


@pytest.mark.slow
async def test_a_triggerer_that_stands_still_stops_its_triggers_and_its_late_event_changes_nothing(
    short_leases: None, api: ApiService, world: World, database_url: str, start_triggerer: StartTriggerer, tmp_path: Path
) -> None:
    """Its templates stop its hosts before others get the triggers. What it had heard before comes late, under the old claim."""
    fires, waits = tmp_path / "fires", tmp_path / "waits"
    with triggerer_process(f"http://127.0.0.1:{api.port}", fleet_token(world.conn, "triggerer"), tmp_path / "other") as process:
        first, second = (world.waits(WATCH, source=FILE_TRIGGER, path=str(path)) for path in (fires, waits))
        await until(lambda: begun(fires) and begun(waits), "both begin")
        (host,) = begun(waits)
        process.send_signal(signal.SIGSTOP)
        fires.write_text("x")  # its host sees that, and tells nobody who listens
        await until(lambda: psutil.Process(host).status() == psutil.STATUS_STOPPED, "its host stands still")
        assert world.claim_of(second)[1] == 1
        await start_triggerer()
        await lost(world, database_url, "other")
        assert (await world.event_of(first))["claim"] == 2
        assert world.resumes(first) == 1
        await until(lambda: len(begun(waits)) == 2, "the other trigger begins elsewhere")
        process.send_signal(signal.SIGCONT)
        await until(lambda: not runs(host), "its host is killed")
        registered = "select count(*) from service where name = 'other' and state = 'active'"
        await until(lambda: world.conn.execute(registered).fetchone() == (1,), "it registers anew")
        waits.write_text("x")
        assert (await world.event_of(second))["claim"] == 2
        assert {event["claim"] for event in world.events(first)} <= {1}  # for the scheduler, stale
        assert len(begun(waits)) == 2


async def test_triggers_stand_still_during_an_outage_and_go_on_after_it(
    short_leases: None, api: ApiService, world: World, database_url: str, triggerer: TriggererService, tmp_path: Path
) -> None:
    path, port = tmp_path / "f", api.port
    epoch = world.waits(WATCH, source=FILE_TRIGGER, path=str(path))
    (host,) = await until(lambda: begun(path), "begin")
    await api.stop()
    await until(lambda: psutil.Process(host).status() == psutil.STATUS_STOPPED, "its host stands still")
    path.write_text("x")
    async with running_api(database_url, tmp_path, port=port):
        assert (await world.event_of(epoch))["claim"] == 1
    assert begun(path) == [host]


async def test_a_trigger_that_blocks_is_named_and_isolated_while_others_go_on(
    triggerer: TriggererService, world: World, tmp_path: Path
) -> None:
    """R-DQ1's others: they begin anew in a fresh process, and fire while it blocks in its own. When it ends it has its event."""
    paths = [tmp_path / f"f{n}" for n in range(50)]
    epochs = [world.waits(WATCH, source=BLOCKS, path=str(path)) for path in paths]
    await until(lambda: all(begun(path) for path in paths), "all begin")
    blocker = world.waits("evenflow_dag_dag.Blocks", source=BLOCKS, path=str(tmp_path / "b"))
    await until(lambda: len(begun(tmp_path / "b")) == 2, "it begins in a process of its own")
    for path in paths:
        path.write_text("x")
    for epoch in epochs:
        assert (await world.event_of(epoch))["event"] == "x"
    alone = begun(tmp_path / "b")[1]
    assert alone not in {pid for path in paths for pid in begun(path)}
    log = await world.logged(blocker, "the trigger keeps the event loop that it shares with others to itself")
    assert "in wait\n    time.sleep(0.02)" in log
    assert triggerer.health.meter.value(metrics.TRIGGERS_BLOCKED) == 1
    assert world.claim_of(blocker)[1:] == (1, 0)
    (tmp_path / "b").touch()
    assert (await world.event_of(blocker))["event"] == "unblocked"


async def test_many_that_fire_at_once_are_not_taken_for_one_that_blocks(triggerer: TriggererService, world: World) -> None:
    """Each takes 30 ms of the loop, together they take 0.9 s; none is named, and none begins twice."""
    source = f"""{IMPATIENT}
class Works(BaseTrigger):
    def __init__(self, at):
        self.at = at

    async def run(self):
        await asyncio.sleep(self.at - time.time())
        end = time.monotonic() + 0.03
        while time.monotonic() < end:
            pass
        yield TriggerEvent(1)
"""
    first = world.waits("evenflow_dag_dag.Works", source=source, number=30, at=time.time() + 0.5)
    events = "select count(*) from report where kind = 'event'"
    await until(lambda: world.conn.execute(events).fetchone() == (30,), "all events")
    assert triggerer.health.meter.value(metrics.TRIGGERS_BLOCKED) == 0
    assert {event["claim"] for epoch in range(first, first + 30) for event in world.events(epoch)} == {1}


async def test_a_trigger_that_blocks_for_good_is_killed_and_has_failed(
    triggerer: TriggererService, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BLOCKED_FOR_GOOD", 0.8)
    epoch = world.waits("evenflow_dag_dag.Blocks", source=BLOCKS, path=str(tmp_path / "b"))
    (host,) = await until(lambda: begun(tmp_path / "b"), "begin")
    await world.logged(epoch, "the trigger failed: it blocked the event loop of its process for")
    await until(lambda: not runs(host), "its host is killed")
    await until(lambda: world.claim_of(epoch)[2] == 1, "one failure")


async def test_the_trigger_that_ends_its_process_is_found_among_others(
    triggerer: TriggererService, world: World, tmp_path: Path
) -> None:
    """By halves; none of the others counts as failed, or is claimed anew."""
    paths = [tmp_path / f"f{n}" for n in range(7)]
    epochs = [world.waits(WATCH, source=DIES, path=str(path)) for path in paths]
    await until(lambda: all(begun(path) for path in paths), "all begin")
    killer = world.waits("evenflow_dag_dag.Dies", source=DIES)
    log = await world.logged(killer, "the trigger failed: the process that it ran in ended")
    assert "exit code 3" in log
    for path in paths:
        path.write_text("x")
    for epoch in epochs:
        assert (await world.event_of(epoch))["claim"] == 1
        assert world.claim_of(epoch)[2] == 0
    assert world.claim_of(killer)[2] >= 1


async def test_a_host_that_is_killed_is_made_anew(triggerer: TriggererService, world: World, tmp_path: Path) -> None:
    """kill -9 by somebody else: the triggers begin anew, and their tasks' logs say why."""
    paths = [tmp_path / "a", tmp_path / "b"]
    epochs = [world.waits(WATCH, source=FILE_TRIGGER, path=str(path)) for path in paths]
    await until(lambda: all(begun(path) for path in paths), "all begin")
    os.kill(begun(paths[0])[0], signal.SIGKILL)
    await until(lambda: all(len(begun(path)) == 2 for path in paths), "both begin anew")
    await world.logged(epochs[0], "the process of 2 triggers ended, and this one begins anew: killed by SIGKILL")
    assert [world.claim_of(epoch)[1:] for epoch in epochs] == [(1, 0), (1, 0)]


async def test_a_drained_triggerer_gives_its_triggers_back_at_once(
    start_triggerer: StartTriggerer, world: World, tmp_path: Path
) -> None:
    """They clean up, and run elsewhere under a fresh claim; no lease is waited for, nothing counts as failed."""
    paths = [tmp_path / f"f{n}" for n in range(20)]
    leaving = await start_triggerer(name="leaving", home="one")
    epochs = [world.waits(WATCH, source=FILE_TRIGGER, path=str(path)) for path in paths]
    await until(lambda: all(begun(path) for path in paths), "all begin")
    await start_triggerer(name="staying", home="two")
    await asyncio.wait_for(leaving.drain(), 20)
    assert all(cleaned(path) for path in paths)
    await until(lambda: all(len(begun(path)) == 2 for path in paths), "all begin elsewhere")
    assert [world.claim_of(epoch)[1:] for epoch in epochs] == [(2, 0)] * 20
    for path in paths:
        path.write_text("x")
    assert [(await world.event_of(epoch))["claim"] for epoch in epochs] == [2] * 20


async def test_triggers_are_spread_evenly_also_over_one_that_joins(
    start_triggerer: StartTriggerer, world: World, tmp_path: Path
) -> None:
    """Who has more than its share stops the rest, which go on where there is room; an event comes once whatever was moved."""
    paths = [tmp_path / f"f{n}" for n in range(40)]
    first = await start_triggerer(name="first", home="one")
    epochs = [world.waits(WATCH, source=FILE_TRIGGER, path=str(path)) for path in paths]
    await until(lambda: all(begun(path) for path in paths), "all begin")
    second = await start_triggerer(name="second", home="two")
    await until(lambda: second._in_hand.count == 20 and first._in_hand.count == 20, "half of them begin elsewhere")
    moved = [epoch for epoch in epochs if world.claim_of(epoch)[1] == 2]
    assert len(moved) == 20
    for path in paths:
        path.write_text("x")
    for epoch, path in zip(epochs, paths, strict=True):
        assert (await world.event_of(epoch))["claim"] == (2 if epoch in moved else 1)
        assert [len(world.events(epoch)), len(begun(path))] == [1, 2 if epoch in moved else 1]


async def test_triggers_stay_where_others_have_no_room_or_other_queues(
    start_triggerer: StartTriggerer, world: World, tmp_path: Path
) -> None:
    """No trigger begins anew for nothing: what is given back is what another one takes."""
    first = await start_triggerer(name="first", home="one")
    world.waits(WATCH, source=FILE_TRIGGER, path=str(tmp_path / "never"), number=40)
    await until(lambda: first._in_hand.count == 40, "all begin")
    await start_triggerer(name="other", home="two", queues=("other",))
    small = await start_triggerer(name="small", home="three", capacity=12)
    await until(lambda: small._in_hand.count == 12, "it is full")
    moment = world.one("select now()")
    await until(lambda: world.one("select min(beat_at) from service where kind = 'triggerer'") > moment, "further beats")
    assert (first._in_hand.count, small._in_hand.count) == (28, 12)
