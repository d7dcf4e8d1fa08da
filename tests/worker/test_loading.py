"""DAG code on its way into a process: what cannot be imported, what dies, what hangs; and templates that come and go."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.errors import ApiUnavailable
from evenflow.forking.owned_template import OwnedTemplate
from evenflow.masker import Masker
from evenflow.membership import limits
from evenflow.membership.code_cache import CodeCache
from evenflow.membership.given_values import GivenValues
from evenflow.membership.templates import TemplateKey, TemplatePool
from evenflow.wire.code import archive_hash, pack
from evenflow.wire.messages import AskValue, GivenValue
from evenflow.worker import limits as worker_limits
from evenflow.worker.service import TASK_PROCESS, WorkerService
from tests.observed import observations
from tests.waiting import until
from tests.worker.conftest import StartWorker
from tests.worker.world import World, number_in, runs, wait_for

SPEC = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python"),))


async def test_import_error(world: World, worker: WorkerService) -> None:
    """R-CS5: "cannot start", with a reason that says what is missing, where; the traceback is in the try's log."""
    epoch = world.task("pass", head="import os\nimport foo_that_is_missing\n")
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "cannot_start"
    expected = (
        "cannot import DAG file dag.py: ModuleNotFoundError: No module named 'foo_that_is_missing' (line 3). foo_that_is_missing "
        "is not installed here. If that is the name of the package on PyPI, too, install it for the processor and for all workers; "
        f"here: {sys.executable} -m pip install foo_that_is_missing"
    )
    assert ended["reason"] == expected
    log = await world.logged(epoch, "ModuleNotFoundError")
    assert 'File "dag.py", line 3' in log
    assert "evenflow/process" not in log


async def test_an_error_in_a_module(world: World, worker: WorkerService) -> None:
    files = {"dag.py": b"import lib.names\n", "lib/names.py": b"\n\nX = 1 / 0\n"}
    ended = await world.exit_of(world.dispatch(world.run(world.add_dag(SPEC, files))))
    assert ended["reason"] == "cannot import DAG file dag.py: ZeroDivisionError: division by zero (lib/names.py line 3)"


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("import os; os._exit(3)", "the process ended with exit code 3"),
        ("import sys; sys.exit(3)", "it called sys.exit(3) (line 2)"),
        ("import ctypes; ctypes.string_at(0)", "crashed with SIGSEGV"),
        ("def f(:", "SyntaxError: invalid syntax (line 2)"),
    ],
)
async def test_a_file_that_ends_its_template(world: World, worker: WorkerService, head: str, reason: str) -> None:
    ended = await world.exit_of(world.task("pass", head=f"{head}\n"))
    assert ended["outcome"] == "cannot_start"
    assert ended["reason"].startswith(f"cannot import DAG file dag.py: {reason}")


async def test_a_file_that_hangs_while_it_is_imported(world: World, worker: WorkerService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log shows where it hangs."""
    monkeypatch.setattr(limits, "LOAD_TIMEOUT", 1.0)
    epoch = world.task("pass", head="import time\ntime.sleep(600)\n")
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "cannot_start"
    assert ended["reason"].startswith("cannot import DAG file dag.py: it was not loaded after 1 s")
    assert 'dag.py", line 3' in await world.logged(epoch, "Fatal Python error: Aborted")


async def test_a_try_that_is_not_started_in_time(world: World, worker: WorkerService, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-CS6: it is given back, for another worker may be quicker."""
    monkeypatch.setattr(worker_limits, "START_WITHIN", 0.5)
    monkeypatch.setattr(limits, "LOAD_TIMEOUT", 5.0)
    ended = await world.exit_of(world.task("pass", head="import time\ntime.sleep(600)\n"))
    assert ended["outcome"] == "cannot_start"
    assert ended["reason"] == "it was not started within 0.5 s of its assignment"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("b'caf\\xe9.csv'.decode('utf-8', 'surrogateescape')", "caf\\udce9.csv"),  # as the name of a file that is not UTF-8
        ("'\\u6f22' * 20000 + ' is the end'", "\u6f22 is the end"),  # longer than a message of the template may be
    ],
)
async def test_an_error_in_any_writing(world: World, worker: WorkerService, message: str, shown: str) -> None:
    epoch = world.task("pass", head=f"raise ValueError({message})\n")
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "cannot_start"
    assert ended["reason"].startswith("cannot import DAG file dag.py: ValueError: ")
    await world.logged(epoch, shown)


async def test_an_error_of_the_worker_itself(world: World, worker: WorkerService, monkeypatch: pytest.MonkeyPatch) -> None:
    """The try does not wait for what never comes, and the worker's log says more."""

    async def fetch(self: CodeCache, code_hash: str) -> Path:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(CodeCache, "fetch", fetch)
    with observations() as logs:
        ended = await world.exit_of(world.task("pass"))
    assert [entry["file"] for entry in logs if entry["trace"]] == ["dag.py"]
    assert ended["outcome"] == "cannot_start"
    assert ended["reason"] == "cannot load DAG file dag.py: RuntimeError: can't start new thread"


async def test_a_file_that_waits_for_a_value_is_not_told_to_wait_for_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA4: by the line of the worker's log that people look for."""
    monkeypatch.setattr("evenflow.membership.backoff.FIRST_PAUSE_S", 0.01)
    away = [ApiUnavailable("the API is away")]

    class Values:
        async def value(self, message: AskValue) -> GivenValue:
            if away:
                raise away.pop()
            return GivenValue(text="x")

    class Code:
        async def get_code(self, code_hash: str) -> bytes:
            raise AssertionError("nothing is fetched")

    pool = TemplatePool(TASK_PROCESS, CodeCache(tmp_path / "code", Code()), os.environ, values=Values())
    given = GivenValues(Values(), "dag.py", Masker())
    with observations() as logs:
        answer = await pool._answer(given, TemplateKey("", "dag.py"), {"kind": "variable", "name": "region"})
    assert answer["text"] == "x"
    assert [(each["fact"], each["file"], each["reason"]) for each in logs] == [("value_waits", "dag.py", "the API is away")]
    await pool.close()


async def test_who_comes_at_the_moment_when_a_template_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks for one that is loaded to be loaded: that would return at once, and find it missing, for ever."""
    files = {"dag.py": b""}
    file = TemplateKey(archive_hash(files), "dag.py")

    class Code:
        async def get_code(self, code_hash: str) -> bytes:
            return pack(files)

    pool = TemplatePool(TASK_PROCESS, CodeCache(tmp_path / "code", Code()), os.environ)
    fork, comers, loads = OwnedTemplate.fork, [], 0

    async def come() -> None:
        nonlocal loads
        while pool.ready(file) is None:
            loads += 1
            assert loads < 3
            await pool.load(file)

    async def fork_as_another_comes(*args: Any, **kwargs: Any) -> OwnedTemplate:
        template = await fork(*args, **kwargs)
        comers.append(asyncio.create_task(come()))  # whose turn is next
        return template

    monkeypatch.setattr(OwnedTemplate, "fork", fork_as_another_comes)
    try:
        await pool.load(file)
        await asyncio.gather(*comers)
        assert (len(comers), loads) == (1, 0)
    finally:
        await pool.close()


async def test_a_burst_meets_a_broken_file_once(world: World, start_worker: StartWorker, tmp_path: Path) -> None:
    await start_worker(slots=10)
    count = tmp_path / "count"
    epochs = [world.task("pass", head=f"open({str(count)!r}, 'a').write('.')\n1 / 0\n") for _ in range(10)]
    for epoch in epochs:
        assert (await world.exit_of(epoch))["outcome"] == "cannot_start"
    assert count.read_text() == "."


async def test_code_that_nobody_has(world: World, worker: WorkerService) -> None:
    version = world.add_dag(SPEC, {"dag.py": b"from evenflow import DAG\n"})
    world.conn.execute("alter table dag_version drop constraint dag_version_code_hash_fkey")
    world.conn.execute("delete from code")
    ended = await world.exit_of(world.dispatch(world.run(version)))
    assert ended["outcome"] == "cannot_start"
    assert ended["reason"].startswith("cannot get the code of dag.py (version ")


async def test_code_that_is_not_what_its_name_says(world: World, worker: WorkerService) -> None:
    version = world.add_dag(SPEC, {"dag.py": b"from evenflow import DAG\n"})
    world.add_dag(SPEC, {"dag.py": b"raise SystemExit"})
    world.conn.execute("update code set archive = (select max(archive) from code)")
    world.conn.execute("update code set archive = (select min(archive) from code)")
    ends = [await world.exit_of(world.dispatch(world.run(v))) for v in (version, version + 1)]
    assert sum("has hash" in str(ended.get("reason")) for ended in ends) == 1


async def test_a_template_is_shared_by_tries_of_its_file(world: World, worker: WorkerService) -> None:
    """The file is imported once, and its tries see what it made then."""
    run = world.run(world.add_dag(SPEC, {"dag.py": _FILE_WITH_A_STAMP}))
    stamps = set()
    for _ in range(3):
        epoch = world.dispatch(run)
        await world.exit_of(epoch)
        stamps.add(world.xcom(epoch))
        world.end(epoch)
    assert len(stamps) == 1


async def test_a_template_that_dies_takes_its_tries_along(world: World, worker: WorkerService, tmp_path: Path) -> None:
    """They fail with a reason, nothing of them is left, and the next try gets a new template."""
    pids = tmp_path / "child"
    epoch = world.task(
        "import os, subprocess, time\n"
        "subprocess.Popen(['sleep', '600'], start_new_session=False)\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}}.')\n"
        "print(os.getppid(), flush=True)\n"
        "time.sleep(600)"
    )
    pid = await until(lambda: number_in(pids), "the task's start")
    template = int(await world.logged(epoch, "\n"))
    group = _processes_of_group(pid)
    assert len(group) == 2
    os.kill(template, signal.SIGKILL)
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "failed"
    assert ended["reason"].startswith("the template process that this one was forked from ended: killed by SIGKILL")
    for process in group:
        await until(lambda process=process: not runs(process), f"the end of {process}")
    assert (await world.exit_of(world.task("pass")))["outcome"] == "success"


async def test_a_spare_process_that_dies_is_replaced(world: World, worker: WorkerService) -> None:
    """The next try's process is forked ahead; nobody notices when it is killed while it waits."""
    run = world.run(world.add_dag(SPEC, {"dag.py": _FILE_WITH_A_STAMP}))
    first = world.dispatch(run)
    await world.exit_of(first)
    world.end(first)
    (template,) = worker._templates._templates.values()
    spare = await until(lambda: template._spare and template._spare.pid, "the spare process")
    os.kill(spare, signal.SIGKILL)
    await until(lambda: template._spare is None, "the news of its end")
    second = world.dispatch(run)
    assert (await world.exit_of(second))["outcome"] == "success"


async def test_idle_templates_are_ended(world: World, start_worker: StartWorker, tmp_path: Path) -> None:
    """Those for which there is no memory, the longest unused first; none that has work."""
    await start_worker(template_memory=50)
    busy = world.task("import os; print(os.getppid(), flush=True)\n" + wait_for(tmp_path / "go"))
    template = int(await world.logged(busy, "\n"))
    parents = []
    for number in range(3):
        epoch = world.task(f"import os; return [os.getppid(), {number}]", head="ballast = bytes(range(256)) * 4096 * 30\n")
        await world.exit_of(epoch)
        parents.append(world.xcom(epoch)[0])
        world.end(epoch)
    await until(lambda: not runs(parents[0]) and not runs(parents[1]), "the end of idle templates")
    assert runs(parents[2])
    assert runs(template)
    (tmp_path / "go").touch()
    assert (await world.exit_of(busy))["outcome"] == "success"


async def test_many_files_in_rotation(world: World, worker: WorkerService, tmp_path: Path) -> None:
    """Each is loaded once, however many they are, while all have room."""
    count = tmp_path / "count"
    runs_of_files = []
    for number in range(12):
        source = _FILE_WITH_A_STAMP.replace(b"stamp =", f"open({str(count)!r}, 'a').write('{number}.')\nstamp =".encode())
        runs_of_files.append(world.run(world.add_dag(SPEC, {"dag.py": source})))
    for run in runs_of_files * 2:
        epoch = world.dispatch(run)
        assert (await world.exit_of(epoch))["outcome"] == "success"
        world.end(epoch)
    assert sorted(count.read_text().split(".")) == sorted(["", *map(str, range(12))])


async def test_a_trunk_that_dies(world: World, worker: WorkerService) -> None:
    """Templates that it has forked go on, and the next file gets a new one."""
    run = world.run(world.add_dag(SPEC, {"dag.py": _FILE_WITH_A_STAMP}))
    first = world.dispatch(run)
    await world.exit_of(first)
    stamp = world.xcom(first)
    world.end(first)
    trunk = worker._templates._trunks[""]
    assert trunk is not None
    os.kill(trunk.pid, signal.SIGKILL)
    await until(lambda: not trunk.alive, "the news of its end")
    again = world.dispatch(run)
    await world.exit_of(again)
    assert world.xcom(again) == stamp
    assert (await world.exit_of(world.task("pass")))["outcome"] == "success"
    assert worker._templates._trunks[""] is not trunk


async def test_a_template_has_nothing_of_another_file(world: World, worker: WorkerService) -> None:
    """Both come from one trunk."""
    spoil = "import json, os\njson.spoilt = True\nos.environ['SPOILT'] = '1'\nos.chdir('/')\n"
    assert (await world.exit_of(world.task("pass", head=spoil)))["outcome"] == "success"
    epoch = world.task("import json, os; return [hasattr(json, 'spoilt'), 'SPOILT' in os.environ, os.getcwd() == '/']")
    assert (await world.exit_of(epoch))["outcome"] == "success"
    assert world.xcom(epoch) == [False, False, False]


async def test_the_end_of_the_worker_ends_its_templates_and_tries(world: World, worker: WorkerService) -> None:
    epoch = world.task("import os, time; print(os.getppid(), os.getpid(), flush=True); time.sleep(600)")
    template, pid = map(int, (await world.logged(epoch, "\n")).split())
    # As when the worker dies: the kernel closes its sockets.
    file = next(iter(worker._templates._templates))
    assert isinstance(file, TemplateKey)
    worker._templates._templates[file]._socket.shutdown(2)
    await until(lambda: not runs(template) and not runs(pid), "the end of both")


def _processes_of_group(group: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[2]) == group:
                found.append(int(stat.parent.name))
        except OSError:
            continue
    return found


_FILE_WITH_A_STAMP = b"""
import time
from evenflow import DAG, task
stamp = time.time_ns()
with DAG("d"):
    @task
    def t():
        return stamp
    t()
"""
