"""Limits that the kernel keeps for the processes of a try, and what is told when it ends them. The cgroups are real ones."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenflow.core.metrics import WORKER_OUT_OF_MEMORY, WORKER_OUT_OF_PROCESSES
from evenflow.core.model import Resources
from evenflow.forking.census import look_at
from evenflow.worker.cgroups import CannotLimit, Tree, find_tree
from evenflow.worker.resources import LEFT, OF_TRY, Limits
from tests.observed import observations
from tests.waiting import until
from tests.worker.conftest import StartWorker
from tests.worker.world import World, number_in, runs, wait_for

MIB = 2**20
HUNGRY = "held = []\nfor _ in range(200): held.append(bytearray(b'x') * 2**20)\n"


def _groups(tree: Tree, worker: int | None = None) -> list[Path]:
    """Those of workers in a process, which is this one if none is named: tests beside this one have theirs in the same place."""
    pid = worker or os.getpid()
    return [folder for base in set(tree.bases.values()) for kind in (OF_TRY, LEFT) for folder in base.glob(f"{kind}-{pid}-*")]


@pytest.fixture
def tree() -> Iterator[Tree]:
    """Where this process may make groups; the test leaves none."""
    try:
        group = Limits("enforce", print).make(0, Resources(memory=64 * MIB), print, print)
    except CannotLimit as error:
        pytest.skip(f"no cgroups can be made here: {error}")
    assert group is not None
    group.close(leaves=False)
    found = find_tree()
    yield found
    assert _groups(found) == []


async def _gone(tree: Tree) -> None:
    await until(lambda: not _groups(tree), "the cgroups of ended tries")


async def test_a_try_that_uses_more_memory_than_its_task_may_fails_with_the_limit_and_the_peak(
    world: World, start_worker: StartWorker, tree: Tree
) -> None:
    """The kernel ends it, nothing else on the worker, and the metric counts it."""
    worker = await start_worker(resources="enforce")
    epoch = world.task(HUNGRY, resources=Resources(memory=64 * MIB))
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "failed"
    assert ended["reason"] == "out of memory: the kernel killed what used 64.0 of 64 MiB: raise resources(memory=...)"
    assert worker.health.meter.value(WORKER_OUT_OF_MEMORY) == 1
    await _gone(tree)


async def test_a_try_that_forks_more_than_it_may_fails_with_the_limit(world: World, start_worker: StartWorker, tree: Tree) -> None:
    """R-AS5: whatever its task says of the error; the worker and what it has beside it never feel it."""
    if "pids" not in tree.bases:
        pytest.skip("this worker's cgroup has no controller for processes")
    worker = await start_worker(resources="enforce", try_processes=32)
    body = "import os, time\nfor _ in range(300):\n    if os.fork() == 0: time.sleep(600)"
    ended = await world.exit_of(world.task(body, resources=Resources(memory=256 * MIB)))
    assert ended["outcome"] == "failed"
    assert ended["reason"] == (
        "BlockingIOError: [Errno 11] Resource temporarily unavailable (out of processes: the kernel refused it more than 32, "
        "threads included: raise EVENFLOW_TRY_PROCESSES of its worker)"
    )
    assert worker.health.meter.value(WORKER_OUT_OF_PROCESSES) == 1
    await _gone(tree)


async def test_a_fork_bomb_that_never_gives_up_is_ended_and_what_runs_beside_it_goes_on(
    world: World, start_worker: StartWorker, tree: Tree, tmp_path: Path
) -> None:
    """R-CS9: its processes are in sessions of their own, and each forks for as long as it lives."""
    if "pids" not in tree.bases:
        pytest.skip("this worker's cgroup has no controller for processes")
    worker = await start_worker(resources="enforce", try_processes=48)
    gate, over = tmp_path / "gate", tmp_path / "over"
    beside = world.task(wait_for(gate))
    body = f"""
    import os
    while not os.path.exists({str(over)!r}):
        try:
            if os.fork() == 0:
                os.setsid()
        except OSError:
            pass
    """
    try:
        ended = await world.exit_of(world.task(body, resources=Resources(memory=256 * MIB)))
    finally:
        over.touch()
    assert ended["outcome"] == "failed"
    assert ended["reason"].startswith("out of processes: the kernel refused it more than 48, threads included")
    await _gone(tree)
    assert worker._tries.epochs == [beside]
    gate.touch()
    assert (await world.exit_of(beside))["outcome"] == "success"


async def test_a_try_within_its_limits_ends_well_and_its_cgroup_goes(world: World, start_worker: StartWorker, tree: Tree) -> None:
    await start_worker(resources="enforce")
    body = "return [line.split(':', 2)[2].strip() for line in open('/proc/self/cgroup')]"
    epoch = world.task(body, resources=Resources(memory=128 * MIB, cpu=0.5))
    assert (await world.exit_of(epoch))["outcome"] == "success"
    assert sum(f"{OF_TRY}-{os.getpid()}-" in path for path in world.xcom(epoch)) == len(set(tree.bases.values()))
    await _gone(tree)


async def test_a_try_gets_as_much_of_a_processor_as_its_task_asks_for(world: World, start_worker: StartWorker, tree: Tree) -> None:
    """A tenth: for 0.1 s of work it waits most of a second."""
    if "cpu" not in tree.bases:
        pytest.skip("this worker's cgroup has no controller for processors")
    await start_worker(resources="enforce")
    body = "import time\nbegan = time.monotonic()\nwhile time.process_time() < 0.1: pass\nreturn time.monotonic() - began"
    epoch = world.task(body, resources=Resources(cpu=0.1))
    assert (await world.exit_of(epoch))["outcome"] == "success"
    assert world.xcom(epoch) > 0.35
    await _gone(tree)


async def test_a_failure_after_the_kernel_killed_a_process_of_the_try_says_so(
    world: World, start_worker: StartWorker, tree: Tree
) -> None:
    """On cgroup1 the kernel kills one process; its parent may report what that does to it."""
    await start_worker(resources="enforce")
    body = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {HUNGRY!r}], check=True)"
    epoch = world.task(body, resources=Resources(memory=64 * MIB))
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "failed"
    assert "out of memory: the kernel killed" in ended["reason"]
    assert "64 MiB: raise resources(memory=...)" in ended["reason"]
    await _gone(tree)


async def test_what_a_successful_try_leaves_running_keeps_its_limit_and_is_not_killed(
    world: World, start_worker: StartWorker, tree: Tree, tmp_path: Path
) -> None:
    await start_worker(resources="enforce")
    pid_file = tmp_path / "pid"
    body = f"""
    import subprocess
    left = subprocess.Popen(['sleep', '600'], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    open({str(pid_file)!r}, 'w').write(f'{{left.pid}}.')
    """
    epoch = world.task(body, resources=Resources(memory=64 * MIB))
    assert (await world.exit_of(epoch))["outcome"] == "success"
    pid = number_in(pid_file)
    try:
        groups = _groups(tree)
        assert {left.name.partition(f"-{os.getpid()}-")[0] for left in groups} == {LEFT}
        assert [(left / "cgroup.procs").read_text() for left in groups] == [f"{pid}\n"] * len(set(tree.bases.values()))
        Limits("enforce", print)
        assert runs(pid), "the next worker leaves it alone, too"
    finally:
        os.kill(pid, 9)
    await until(lambda: Limits("enforce", print) is not None and not _groups(tree), "the group that is empty")


def test_the_next_worker_ends_what_a_killed_one_has_left_in_its_cgroups(tree: Tree) -> None:
    """A worker that is killed with SIGKILL removes nothing."""
    ask = (
        "import subprocess\nfrom evenflow.core.model import Resources\nfrom evenflow.worker.resources import Limits\n"
        "group = Limits('enforce', print).make(7, Resources(memory=2**26), print, print)\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\ngroup.admit(child.pid)\nprint(child.pid, flush=True)\n"
        "import signal; signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", ask], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        pid = int(killed.stdout.readline())
        assert _groups(tree, killed.pid) != []
        Limits("enforce", print)
        assert runs(pid), "a worker that lives is not disturbed"
        killed.kill()
    limits = Limits("enforce", print)
    asyncio.run(until(lambda: (not runs(pid) and not _groups(tree, killed.pid)) or limits.look(), "the end of what was left"))


def test_a_group_that_a_task_has_made_keeps_no_worker_from_starting(tree: Tree) -> None:
    """Whatever it is called; the next worker there keeps limits all the same."""
    base = next(iter(tree.bases.values()))
    made = [base / f"{OF_TRY}-{name}" for name in ("x", "1", "a-b-c", "1-2-3-4", f"{'9' * 30}-1-1")]
    try:
        for folder in made:
            folder.mkdir()
        group = Limits("enforce", print).make(7, Resources(memory=64 * MIB), print, print)
        assert group is not None
        group.close(leaves=False)
    finally:
        for folder in made:
            folder.rmdir()


NESTS = """
import os, sys
os.chdir(sys.argv[1])
for _ in range(int(sys.argv[2])):
    os.mkdir(sys.argv[3])
    os.chdir(sys.argv[3])
with open("cgroup.procs", "w") as file:
    file.write(str(os.getpid()))
print("made", flush=True)
sys.stdin.read()
"""


@pytest.mark.system
@pytest.mark.parametrize(("depth", "name"), [("1100", "a"), ("25", "a" * 200)])
@pytest.mark.parametrize("by", ["its worker", "the next worker"])
def test_groups_that_a_task_makes_one_in_another_end_with_it(tree: Tree, depth: str, name: str, by: str) -> None:
    """They are deeper than Python's stack, or than any path: a worker fell over them when a try ended, and none started there any
    more. A process of the task is in the innermost one.
    """
    limits = Limits("enforce", print)
    killed = subprocess.Popen(["sleep", "600"])  # whose groups no worker ends while it lives, as of tests beside this one
    if by == "its worker":
        group = limits.make(7, Resources(memory=64 * MIB), print, print)
        assert group is not None
        folders = group._folders
    else:
        process = look_at(killed.pid)
        assert process is not None
        folders = [base / f"{OF_TRY}-{killed.pid}-{process.born}-7" for base in dict.fromkeys(tree.bases.values())]
        for folder in folders:
            tree.make(folder, Resources(memory=64 * MIB))
    made = [
        subprocess.Popen([sys.executable, "-c", NESTS, folder, depth, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for folder in folders
    ]
    try:
        for each in made:
            assert each.stdout is not None
            assert each.stdout.readline() == b"made\n"
        if by == "its worker":
            group.close(leaves=False)
        else:
            killed.kill()
            killed.wait()
            limits = Limits("enforce", print)
        assert [each.wait() for each in made] == [-9] * len(made)
        assert limits._tree is not None, "it keeps limits"
        worker = os.getpid() if by == "its worker" else killed.pid
        asyncio.run(until(lambda: not _groups(tree, worker) or limits.look(), "the end of all of them"))
    finally:
        for each in (*made, killed):
            each.kill()
            each.communicate()


async def test_where_limits_cannot_be_kept_enforce_sends_a_try_elsewhere_and_warn_runs_it(
    world: World, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-CS5: that it cannot start here does not use up a try."""

    def find(processes: int) -> Tree:
        raise CannotLimit("its cgroup is not its own")

    monkeypatch.setattr("evenflow.worker.resources.find_tree", find)
    with observations() as told:
        await start_worker(resources="enforce", queues=("strict",))
    assert [each["reason"] for each in told if each["fact"] == "limits_not_kept"] == ["its cgroup is not its own"]
    await start_worker(resources="warn", queues=("lax",))
    await start_worker(resources="off", queues=("pod",))
    refused = world.task("pass", resources=Resources(memory=64 * MIB), queue="strict")
    ended = await world.exit_of(refused)
    assert ended["outcome"] == "cannot_start"
    assert ended["reason"] == (
        'resources(memory="64 MiB") cannot be kept on this worker: its cgroup is not its own. '
        "By EVENFLOW_RESOURCES=warn it would run here without these limits"
    )
    warned = world.task("pass", resources=Resources(memory=64 * MIB), queue="lax")
    assert (await world.exit_of(warned))["outcome"] == "success"
    assert "It runs without these limits (EVENFLOW_RESOURCES=warn)" in await world.logged(warned, "resources")
    silent = world.task("print('here')", resources=Resources(memory=64 * MIB), queue="pod")
    assert (await world.exit_of(silent))["outcome"] == "success"
    assert "resources" not in await world.logged(silent, "here")


async def test_a_task_with_limits_gets_no_process_that_others_have_used(
    world: World, start_worker: StartWorker, tree: Tree, tmp_path: Path
) -> None:
    await start_worker(resources="enforce")
    pids = []
    for _ in range(2):
        epoch = world.task("import os\nreturn os.getpid()", reuse=True, resources=Resources(memory=64 * MIB))
        assert (await world.exit_of(epoch))["outcome"] == "success"
        pids.append(world.xcom(epoch))
    assert len(set(pids)) == 2
    await _gone(tree)


async def test_a_try_that_is_killed_leaves_no_cgroup(world: World, start_worker: StartWorker, tree: Tree, tmp_path: Path) -> None:
    await start_worker(resources="enforce")
    started = tmp_path / "started"
    body = f"open({str(started)!r}, 'w').close()\n" + wait_for(tmp_path / "never")
    epoch = world.task(body, resources=Resources(memory=64 * MIB))
    await until(started.exists, "the start of the try")
    world.ask_to_kill(epoch)
    assert (await world.exit_of(epoch))["reason"] == "ended on request"
    await _gone(tree)
