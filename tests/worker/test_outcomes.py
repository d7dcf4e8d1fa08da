"""What becomes of a try, however its process ends: the right outcome, and a reason that a person understands."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from evenflow.core.model import DagSpec, TaskSpec
from tests.waiting import until
from tests.worker.world import World, number_in, runs, wait_for

SPEC = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python"),))

pytestmark = pytest.mark.usefixtures("worker")


async def test_success_with_its_result(world: World) -> None:
    """R-CS1: the worker reports; the result comes with the report."""
    epoch = world.task("return {'n': ti.try_number, 'list': [1, 2]}")
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "success"
    assert ended["exit_code"] == 0
    assert 0 <= ended["ran_s"] < 30
    assert "reason" not in ended
    assert world.xcom(epoch) == {"n": 1, "list": [1, 2]}


async def test_an_exception_fails_the_try(world: World) -> None:
    """What a retry is decided from: the outcome, and the classes of the exception."""
    epoch = world.task("raise FileNotFoundError(2, 'No such file', 'x.csv')", retries=2)
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "failed"
    assert ended["reason"] == "FileNotFoundError: [Errno 2] No such file: 'x.csv'"
    assert ended["error_types"][:2] == ["FileNotFoundError", "OSError"]
    assert "dag.py" in await world.logged(epoch, "FileNotFoundError: [Errno 2]")


async def test_an_exception_that_quotes_what_is_no_unicode(world: World) -> None:
    """As file names may be."""
    ended = await world.exit_of(world.task("raise ValueError('caf\\udce9.csv')"))
    assert ended["reason"] == "ValueError: caf\\udce9.csv"


async def test_a_task_writes_as_it_likes(world: World) -> None:
    """In another encoding, whatever its service writes to; and not at all."""
    epoch = world.task(
        "import sys\nsys.stdout.reconfigure(encoding='ascii', errors='replace')\nprint('caf\u00e9')\nsys.stdout.close()"
    )
    assert (await world.exit_of(epoch))["outcome"] == "success"
    await world.logged(epoch, "caf?")


async def test_questions_that_cannot_be_asked_are_answered(world: World) -> None:
    """The task hears what is wrong with each, and goes on."""
    epoch = world.task(
        """
        from evenflow.errors import ApiRefused
        heard = []
        for arguments in ({"dag_id": "d", "conf": {"n": 2**70}}, {"dag_id": "d", "conf": {"n": float("nan")}}, {"dag_id": 7}):
            try:
                ti.control.ask("trigger", arguments)
            except ApiRefused as error:
                heard.append(str(error))
        ti.progress("half way", 0.5, 1)
        return heard
        """
    )
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "success", ended
    too_long, no_json, no_name = world.xcom(epoch)
    assert "cannot be told to the API" in too_long
    assert "asked in another way" in no_json
    assert "asked in another way" in no_name


@pytest.mark.parametrize(
    ("error", "outcome"), [("TaskSkipped('nothing new')", "skipped"), ("TaskFailedForGood('bad input')", "failed_for_good")]
)
async def test_a_task_says_how_it_ends(world: World, error: str, outcome: str) -> None:
    epoch = world.task(f"raise {error}", head="from evenflow import TaskSkipped, TaskFailedForGood\n")
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == outcome
    assert ended["reason"]


async def test_sigkill(world: World, tmp_path: Path) -> None:
    epoch = world.task(f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}}.'); time.sleep(600)")
    pid = await until(lambda: number_in(tmp_path / "pid"), "the task's pid")
    os.kill(pid, signal.SIGKILL)
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "failed"
    assert ended["exit_code"] == -9
    assert ended["reason"].startswith("killed by SIGKILL; if nobody did that, the host probably ran out of memory")


async def test_os_exit(world: World) -> None:
    epoch = world.task("import os; print('so far'); os._exit(3)")
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "failed"
    assert ended["exit_code"] == 3
    assert ended["reason"].startswith("the process ended with exit code 3 without reporting a result; something called os._exit")
    assert "so far" in await world.logged(epoch, "so far")


async def test_os_exit_zero_is_no_success(world: World) -> None:
    epoch = world.task("import os; os._exit(0)")
    ended = await world.exit_of(epoch)
    assert (ended["outcome"], ended["exit_code"]) == ("failed", 0)
    assert "without reporting a result" in ended["reason"]


async def test_sys_exit(world: World) -> None:
    epoch = world.task("import sys; sys.exit('no input today')")
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "failed"
    assert "sys.exit('no input today')" in ended["reason"]


async def test_segmentation_fault(world: World) -> None:
    epoch = world.task("import ctypes; ctypes.string_at(0)")
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "failed"
    assert ended["exit_code"] == -signal.SIGSEGV
    assert ended["reason"].startswith("crashed with SIGSEGV")
    assert "dag.py" in await world.logged(epoch, "Fatal Python error: Segmentation fault")


async def test_out_of_memory_in_python(world: World) -> None:
    epoch = world.task(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (300 * 2**20, 300 * 2**20))
        x = bytearray(2**30)
        """
    )
    ended = await world.exit_of(epoch)
    assert (ended["outcome"], ended["reason"]) == ("failed", "MemoryError")


async def test_a_result_that_is_too_large(world: World) -> None:
    epoch = world.task("return 'x' * 2**25")
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "failed"
    assert "33,554,434 bytes as JSON, above the limit of 33,554,432" in ended["reason"]
    assert world.xcom(epoch) is None


async def test_a_result_that_the_api_refuses_fails_the_try(world: World) -> None:
    """The exit is reported again, as a failure, when its result cannot be stored. PostgreSQL cannot store this one."""
    epoch = world.task("return dict(n=1)", head="import evenflow.sdk.xcom as x\nx.to_json = lambda *_: b'[1, 2'\n")
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "failed"
    assert "result" in ended["reason"]
    assert world.xcom(epoch) is None
    assert len(world.exits(epoch)) == 1


async def test_a_fork_that_comes_back_from_the_task_says_nothing(world: World) -> None:
    epoch = world.task("import os; pid = os.fork(); pid and os.waitpid(pid, 0); return 'parent' if pid else 'child'")
    assert (await world.exit_of(epoch))["outcome"] == "success"
    assert world.xcom(epoch) == "parent"


async def test_what_a_task_leaves_behind_is_killed(world: World, tmp_path: Path) -> None:
    """The whole process group is gone before the exit is reported; also what changed its group, but not its session."""
    epoch = world.task(
        """
        import subprocess
        processes = [subprocess.Popen(["sleep", "600"]), subprocess.Popen(["sleep", "600"], process_group=0)]
        return [p.pid for p in processes]
        """
    )
    assert (await world.exit_of(epoch))["outcome"] == "success"
    for pid in world.xcom(epoch):
        await until(lambda pid=pid: not runs(pid), f"the end of {pid}")


async def test_a_task_runs_in_a_session_of_its_own_without_input(world: World) -> None:
    epoch = world.task("import os, sys; return [os.getpid() == os.getsid(0) == os.getpgid(0), sys.stdin.read()]")
    await world.exit_of(epoch)
    assert world.xcom(epoch) == [True, ""]


async def test_params_and_xcoms_pass_through_the_worker(world: World) -> None:
    epoch = world.task(
        """
        ti.xcom_push("where", {"n": ctx["params"]["n"], "run": ctx["run_id"]})
        return [ti.xcom_pull("t", key="where"), ti.xcom_pull("t", key="absent")]
        """.replace("ctx", "get_current_context()"),
        params={"n": 7},
    )
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "success", ended
    where = world.xcom(epoch, "where")
    assert where["n"] == 7
    assert world.xcom(epoch) == [where, None]


async def test_progress_shows_while_itruns(world: World, tmp_path: Path) -> None:
    progress = "ti.progress('part', 1, 4)\nti.progress('part', 2, 4, rows=10)\n"
    epoch = world.task(progress + wait_for(tmp_path / "go"))
    query = "select payload from task_progress where epoch = %s and payload ->> 'done' = '2'"
    shown = await until(lambda: world.one(query, epoch), "the progress")
    assert shown == {"label": "part", "done": 2, "total": 4, "detail": {"rows": 10}}
    (tmp_path / "go").touch()
    assert (await world.exit_of(epoch))["outcome"] == "success"


async def test_an_unknown_task_cannot_start(world: World) -> None:
    """R-CS5: no try is used up."""
    version = world.add_dag(SPEC, {"dag.py": b"from evenflow import DAG\nwith DAG('d'):\n    pass\n"})
    ended = await world.exit_of(world.dispatch(world.run(version)))
    assert ended["outcome"] == "cannot_start"
    assert ended["reason"].startswith("dag.py does not define task 't' of DAG 'd'")


async def test_a_report_that_the_database_has_lost_is_said_again(world: World) -> None:
    """R-HA18: a try whose exit was acknowledged and then forgotten does not hang: it is lost, and so is sent again."""
    epoch = world.task("print('once')")
    assert (await world.exit_of(epoch))["outcome"] == "success"
    world.conn.execute("delete from report where epoch = %s", [epoch])
    world.conn.execute("update dispatch set claimed_at = claimed_at - interval '1 hour' where epoch = %s", [epoch])
    ended = await world.exit_of(epoch)
    assert (ended["outcome"], ended["reason"]) == ("lost", "it has ended, and the report of its end was lost")
    assert world.log(epoch).count("once") == 1
