"""A worker that is told to end (SIGTERM: a node that is drained, a spot notice, a scale-down) sends on what it has not begun."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from evenflow.api.service import ApiService
from evenflow.client.execution import ExecutionClient
from evenflow.wire.messages import Claim, ClaimAnswer
from evenflow.worker.service import WorkerService
from tests.observed import observations
from tests.waiting import until
from tests.worker.conftest import StartWorker, worker_process
from tests.worker.world import World, number_in, runs, sleeper, wait_for


async def test_what_it_has_claimed_and_not_begun_goes_back_at_once(world: World, worker: WorkerService, tmp_path: Path) -> None:
    """R-AS8, R-CS5: though its drain may take long, and without a loss; the one that runs ends in its own time."""
    go = tmp_path / "go"
    running = world.task("print('here', flush=True)\n" + wait_for(go) + "print('done')")
    await world.logged(running, "here")
    loading = world.task("pass", head=wait_for(tmp_path / "never"))
    await until(lambda: world.claimed(loading), "its claim")
    draining = asyncio.create_task(worker.drain(20.0))
    ended = await world.exit_of(loading)
    assert (ended["outcome"], ended["given_back"]) == ("cannot_start", True)
    assert ended["reason"] == "its worker was told to end before it had begun it"
    assert not draining.done()
    await world.logged(running, "what has not ended within 20 s begins anew on another one")
    go.touch()
    await asyncio.wait_for(draining, 60)
    assert world.exits(running)[0]["outcome"] == "success"


async def test_what_it_has_claimed_and_never_heard_of_goes_back_with_its_farewell(
    world: World, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-AS6, R-AS8: the answer to its claim is slower than its end. Nothing is lost, as nothing had begun."""
    ask, late = ExecutionClient.claim, asyncio.Event()

    async def claim(client: ExecutionClient, message: Claim) -> ClaimAnswer:
        answer = await ask(client, message)
        if answer.assignments:
            await late.wait()
        return answer

    monkeypatch.setattr(ExecutionClient, "claim", claim)
    monkeypatch.setattr("evenflow.api.limits.RESEND_AFTER", 3_600.0)  # no beat brings it
    worker = await start_worker()
    epoch = world.task("pass")
    await until(lambda: world.claimed(epoch), "its claim")
    await worker.drain(20.0)
    assert world.reports(epoch) == []
    await worker.stop()
    ((kind, ended),) = world.reports(epoch)
    assert (kind, ended["outcome"], ended["given_back"]) == ("exit", "cannot_start", True)
    assert ended["reason"] == f"worker w on {os.uname().nodename} ended before it had begun it"


async def test_what_would_not_end_in_time_is_told_and_ended(world: World, start_worker: StartWorker, tmp_path: Path) -> None:
    """R-AS8: a drain is bounded. The control plane need not wait for a lease."""
    worker, pid_file = await start_worker(), tmp_path / "pid"
    epoch = world.task(sleeper(pid_file))
    pid = await until(lambda: number_in(pid_file), "the task's start")
    with observations() as seen:
        draining = asyncio.create_task(worker.drain(0.5))
        done, _ = await asyncio.wait({draining}, timeout=0.5)
        assert not done
        draining.cancel()
        await worker.stop()
    assert {"tries_to_end", "tries_sent_on"} <= {each["fact"] for each in seen}
    assert not runs(pid)
    assert world.exits(epoch) == []
    assert world.one("select state from service where kind = 'worker'") == "stopped"


@pytest.mark.system
async def test_sigterm_to_its_process_sends_on_what_has_not_begun(
    world: World, api: ApiService, worker_token: str, tmp_path: Path
) -> None:
    """R-AS8: what a node that is drained, or a spot notice, does to a worker: all that it has claimed ends or is another's."""
    go = tmp_path / "go"
    async with worker_process(api, worker_token, tmp_path) as process:
        running = world.task("print('here', flush=True)\n" + wait_for(go) + "print('done')")
        await until(lambda: "here" in world.log(running), "its first line", within_s=120)
        loading = world.task("pass", head=wait_for(tmp_path / "never"))
        await until(lambda: world.claimed(loading), "its claim", within_s=60)
        process.terminate()
        await until(lambda: world.exits(loading), "its return", within_s=60)
        assert world.exits(loading)[0]["given_back"]
        assert process.poll() is None
        go.touch()
        assert await asyncio.to_thread(process.wait, 60) == 0
    assert world.exits(running)[0]["outcome"] == "success"
    assert world.one("select state from service where kind = 'worker'") == "stopped"
