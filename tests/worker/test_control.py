"""Who ends a try, and how: its timeout, the control plane, a drain, a stop, a lease that is over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evenflow.api.service import ApiService
from evenflow.core.limits import MAX_INLINE_XCOM
from evenflow.membership.service import Member
from evenflow.wire.large_values import LargeValues
from evenflow.wire.objects import ObjectStorage
from evenflow.worker import limits
from evenflow.worker.service import WorkerService
from tests.apis import running_api
from tests.waiting import until
from tests.worker.conftest import StartWorker
from tests.worker.world import World, number_in, runs, sleeper, wait_for


@pytest.fixture
def pid_file(tmp_path: Path) -> Path:
    return tmp_path / "pid"


async def test_execution_timeout(world: World, worker: WorkerService, pid_file: Path) -> None:
    """R-CS6: an infinite sleep ends at its limit, in time for its `finally`s."""
    epoch = world.task(sleeper(pid_file), execution_timeout=0.5)
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "failed"
    assert ended["reason"] == "execution_timeout of 0.5 s exceeded"
    assert ended["exit_code"] == -15
    assert 0.5 <= ended["ran_s"] < 4.5
    assert not runs(number_in(pid_file))


async def test_execution_timeout_of_a_task_that_ignores_sigterm(
    world: World, worker: WorkerService, pid_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So do its children, which ignore it too: the whole group is gone."""
    monkeypatch.setattr(limits, "TERM_GRACE", 0.3)
    epoch = world.task(
        f"import os, signal, subprocess\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"child = subprocess.Popen(['sh', '-c', \"trap '' TERM; sleep 600 & echo grandchild $!; wait; sleep 600\"])\n"
        f"print('child', child.pid, flush=True)\n{sleeper(pid_file)}",
        execution_timeout=0.5,
    )
    ended = await world.exit_of(epoch)
    assert ended["reason"] == "execution_timeout of 0.5 s exceeded"
    assert ended["exit_code"] == -9
    log = await world.logged(epoch, "grandchild")
    pids = [int(line.split()[1]) for line in log.splitlines() if line.startswith(("child", "grandchild"))]
    assert len(pids) == 2
    for pid in pids:
        await until(lambda pid=pid: not runs(pid), f"the end of {pid}")


async def test_a_result_after_the_timeout_comes_too_late(world: World, worker: WorkerService) -> None:
    epoch = world.task(
        "import signal, time\n"
        "late = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: late.append(1))\n"
        "while not late: time.sleep(0.01)",
        execution_timeout=0.2,
    )
    ended = await world.exit_of(epoch)
    assert (ended["outcome"], ended["reason"]) == ("failed", "execution_timeout of 0.2 s exceeded")


async def test_kill_on_request(world: World, worker: WorkerService, pid_file: Path) -> None:
    """R-CS8: an operator's wish ends the process at once, and its exit is reported, so that its holds are released."""
    epoch = world.task(sleeper(pid_file))
    pid = await until(lambda: number_in(pid_file), "the task's start")
    world.ask_to_kill(epoch)
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "failed"
    assert ended["reason"].startswith("ended on request")
    assert not runs(pid)


async def test_a_try_that_was_taken_back_is_killed(world: World, worker: WorkerService, pid_file: Path) -> None:
    """R-CS3: an epoch that is no longer this worker's ends with the next beat."""
    epoch = world.task(sleeper(pid_file))
    pid = await until(lambda: number_in(pid_file), "the task's start")
    world.end(epoch)
    await until(lambda: not runs(pid), "the end of the task")


async def test_a_try_whose_assignment_was_lost_is_sent_again(world: World, worker: WorkerService) -> None:
    """It was claimed, but the answer never arrived: the next beats reveal that."""
    epoch = world.task("return 5", queue="asked by nobody")
    world.conn.execute(
        "update dispatch set worker_id = (select max(service_id) from service where kind = 'worker'), claim_key = 'lost',"
        " claimed_at = now() - interval '10 s' where epoch = %s",
        [epoch],
    )
    assert (await world.exit_of(epoch))["outcome"] == "success"
    assert world.xcom(epoch) == 5


async def test_an_assignment_that_comes_again_when_its_try_has_ended_begins_nothing(
    world: World, worker: WorkerService, tmp_path: Path
) -> None:
    """R-CS7: an answer may be late by any time, and another one may have said the same before."""
    epoch = world.task(f"open({str(tmp_path / 'runs')!r}, 'a').write('x')")
    await world.exit_of(epoch)
    told_at = world.one(
        "update dispatch set claimed_at = now() - interval '10 s' where epoch = %s returning clock_timestamp()", epoch
    )
    world.conn.execute("delete from report")  # so that a beat finds a try that is nowhere
    for _ in range(2):
        await until(lambda at=told_at: world.one("select beat_at > %s from service where kind = 'worker'", at), "a beat")
        told_at = world.one("select clock_timestamp()")
    assert (await world.exit_of(world.task("pass")))["outcome"] == "success"
    assert (tmp_path / "runs").read_text() == "x"
    world.end(epoch)


async def test_running_is_reported_while_it_runs_and_only_then(world: World, worker: WorkerService, pid_file: Path) -> None:
    """R-CS2. A task that has ended before needs no report of its start."""
    epoch = world.task(sleeper(pid_file))
    assert (await until(lambda: world.reports(epoch), "the start"))[0][0] == "started"
    short = world.task("pass")
    await world.exit_of(short)
    world.ask_to_kill(epoch)
    await world.exit_of(epoch)
    assert [kind for kind, _ in world.reports(epoch)] == ["started", "exit"]


async def test_slots_are_the_limit(world: World, start_worker: StartWorker, tmp_path: Path) -> None:
    await start_worker(slots=2)
    epochs = [world.task(wait_for(tmp_path / "go")) for _ in range(5)]
    await until(lambda: sum(map(world.claimed, epochs)) == 2, "two claims")
    assert not any(world.exits(epoch) for epoch in epochs)
    assert sum(map(world.claimed, epochs)) == 2
    (tmp_path / "go").touch()
    for epoch in epochs:
        assert (await world.exit_of(epoch))["outcome"] == "success"
        world.end(epoch)


async def test_queues(world: World, start_worker: StartWorker) -> None:
    await start_worker(queues=("big", "small"))
    other, big, small = world.task("pass"), world.task("pass", queue="big"), world.task("pass", queue="small")
    await world.exit_of(big)
    await world.exit_of(small)
    assert not world.claimed(other)


async def test_drain(world: World, worker: WorkerService, tmp_path: Path) -> None:
    """Nothing new is claimed, what runs ends in its own time, and everything is delivered."""
    go = tmp_path / "go"
    epoch = world.task("print('here', flush=True)\n" + wait_for(go) + "print('done')")
    await world.logged(epoch, "here")
    draining = asyncio.create_task(worker.drain())
    await until(lambda: world.one("select state from service where kind = 'worker'") == "draining", "the state")
    late = world.task("pass")
    assert not draining.done()
    go.touch()
    await asyncio.wait_for(draining, 20)
    assert world.exits(epoch)[0]["outcome"] == "success"
    assert world.log(epoch) == "here\ndone\n"
    assert not world.claimed(late)


async def test_drain_on_request(world: World, worker: WorkerService) -> None:
    """An operator, too, can drain a worker; it stays, and claims nothing."""
    told_at = world.one("update service set state = 'draining' where kind = 'worker' returning clock_timestamp()")
    await until(lambda: world.one("select beat_at > %s from service where kind = 'worker'", told_at), "a beat")
    assert not world.claimed(world.task("pass"))
    await asyncio.wait_for(worker.drain(), 20)


async def test_stop_kills_and_says_so(world: World, start_worker: StartWorker, pid_file: Path) -> None:
    """The control plane need not wait for the lease: the service is 'stopped', so its tries are lost at once."""
    worker = await start_worker()
    epoch = world.task(sleeper(pid_file))
    pid = await until(lambda: number_in(pid_file), "the task's start")
    await worker.stop()
    assert not runs(pid)
    assert world.one("select state from service where kind = 'worker'") == "stopped"
    assert world.exits(epoch) == []


async def test_an_exit_survives_the_loss_of_the_api(
    world: World, api: ApiService, database_url: str, start_worker: StartWorker, tmp_path: Path
) -> None:
    """R-CS3: the task ends while no API listens; its exit, result and log arrive when one does."""
    await start_worker()
    go = tmp_path / "go"
    epoch = world.task("print('here', flush=True)\n" + wait_for(go) + "print('done')\nreturn 5")
    await world.logged(epoch, "here")
    port = api.port
    await api.stop()
    go.touch()
    async with running_api(database_url, tmp_path, port=port):
        assert (await world.exit_of(epoch))["outcome"] == "success"
        assert world.xcom(epoch) == 5
        await until(lambda: world.log(epoch) == "here\ndone\n", "the log")


async def test_given_up_by_the_control_plane(world: World, worker: WorkerService, pid_file: Path) -> None:
    """R-CS7: a worker that learns that it counts as lost kills its tries, and registers anew."""
    world.task(sleeper(pid_file))
    pid = await until(lambda: number_in(pid_file), "the task's start")
    world.conn.execute("update service set state = 'lost' where kind = 'worker'")
    await until(lambda: not runs(pid), "the end of the task")
    await until(lambda: world.one("select count(*) from service where kind = 'worker' and state = 'active'"), "a new registration")
    assert (await world.exit_of(world.task("pass")))["outcome"] == "success"


async def test_a_token_that_is_no_good(api: ApiService, tmp_path: Path) -> None:
    worker = WorkerService(
        Member(name="w", api_url=f"http://127.0.0.1:{api.port}", token="nonsense", home=tmp_path),
        slots=1,
        resume_slots=1,
        queues=["default"],
        values=LargeValues(ObjectStorage(str(tmp_path / "xcom")), MAX_INLINE_XCOM),
    )
    with pytest.raises(Exception, match="token"):
        await worker.start()
