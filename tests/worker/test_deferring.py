"""Tries that are deferred and resume, on real workers; the scheduler's part is played by the tests."""

from __future__ import annotations

import base64
import json
import os
import signal
import textwrap
from pathlib import Path

import pytest

from evenflow.api.vault import Vault
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.store.serving.sealed import ONCE, WAITING
from evenflow.worker import limits
from evenflow.worker.service import WorkerService
from tests.waiting import until
from tests.worker.conftest import StartWorker
from tests.worker.world import World, number_in, runs, wait_for

OPERATOR = """
import os, time
from datetime import timedelta
from evenflow import DAG, BaseOperator, TimeDeltaTrigger, get_connection

class Job(BaseOperator):
    def execute(self, context):
        {execute}

    def resume(self, context, event, **kept):
        {resume}
{more}
with DAG("d"):
    Job(task_id="t")
"""
DEFER = 'self.defer(trigger=TimeDeltaTrigger(timedelta(hours=1)), method_name="resume", kwargs={kwargs})'


def job(world: World, *, execute: str = "", resume: str = "", more: str = "", kwargs: str = "{}", **spec: object) -> int:
    """A try of an operator with these bodies, which defers after ``execute``."""
    body = f"{execute}\n{DEFER.format(kwargs=kwargs)}" if execute else DEFER.format(kwargs=kwargs)
    source = OPERATOR.format(
        execute=textwrap.indent(body, " " * 8).strip(),
        resume=textwrap.indent(resume or "return None", " " * 8).strip(),
        more=textwrap.indent(textwrap.dedent(more), " " * 4),
    )
    dag = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="Job", **spec),))  # type: ignore[arg-type]
    return world.dispatch(world.run(world.add_dag(dag, {"dag.py": source.encode()})), queue=str(spec.get("queue", "default")))


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """Of the API."""
    return Vault(tmp_path / "secrets.key")


def run_of(world: World, epoch: int) -> str:
    return str(world.one("select run_key from dispatch where epoch = %s", epoch))


async def deferred(world: World, epoch: int) -> dict[str, object]:
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "deferred", ended
    said: dict[str, object] = ended["defer"]
    return said


async def test_what_a_task_waits_for_is_not_said_to_be_left(world: World, worker: WorkerService) -> None:
    """R-CS10: an author who has started nothing himself, as of SparkSubmit, need not look for it."""
    epoch = job(world, execute="import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)")
    await deferred(world, epoch)
    said = await world.logged(epoch, "-- deferred, with 1 process of its own: sleep ")
    assert " left " not in said
    os.kill(int(said.rpartition("(pid ")[2].partition(")")[0]), signal.SIGKILL)


async def test_a_deferral_is_reported_sealed_and_goes_on_in_another_process(
    world: World, worker: WorkerService, vault: Vault
) -> None:
    """The database sees the path of the trigger, and nothing of its arguments. The try is the same one."""
    epoch = job(
        world,
        execute="print('before', os.getpid())",
        kwargs="{'job': 'job-77', 'pid': os.getpid()}",
        resume="assert os.getpid() != kept['pid']\nreturn [kept['job'], event, context['ti'].try_number]",
    )
    said = await deferred(world, epoch)
    assert str(said["trigger"]).startswith("evenflow.")
    assert said["queue"] == "default"
    assert "job-77" not in json.dumps(world.reports(epoch))
    assert "job-77" in vault.open(WAITING, run_of(world, epoch), base64.b64decode(str(said["sealed"])))
    fresh = world.comes_back(epoch, event=vault.seal(WAITING, run_of(world, epoch), '{"status": "done"}'))
    assert (await world.exit_of(fresh))["outcome"] == "success"
    assert world.xcom(fresh) == ["job-77", {"status": "done"}, 1]


async def test_a_resume_gets_in_while_all_ordinary_slots_are_busy(world: World, start_worker: StartWorker, tmp_path: Path) -> None:
    """R-DQ3: a resume does not wait for an ordinary slot, and a first start takes none of those for resumes."""
    worker = await start_worker(slots=1, resume_slots=1)
    epoch = job(world, resume="return 'back'")
    await deferred(world, epoch)
    busy = world.task(wait_for(tmp_path / "go"))
    await until(lambda: busy in worker._tries.epochs, "the only ordinary slot is taken")
    other = world.task("return 'late'")
    fresh = world.comes_back(epoch)
    assert (await world.exit_of(fresh))["outcome"] == "success"
    assert not world.exits(busy)
    assert not world.claimed(other)
    (tmp_path / "go").touch()
    assert (await world.exit_of(other))["outcome"] == "success"
    assert (await world.exit_of(busy))["outcome"] == "success"


async def test_resumes_take_free_ordinary_slots_first(world: World, start_worker: StartWorker, tmp_path: Path) -> None:
    """R-DQ3: with two ordinary slots and one for resumes, three resumes run at once, and no first start beside them."""
    worker = await start_worker(slots=2, resume_slots=1)
    epochs = [job(world, resume=f"{wait_for(tmp_path / 'go')}return 'back'".replace("import os, time\n", "")) for _ in range(3)]
    for epoch in epochs:
        await deferred(world, epoch)
    fresh = [world.comes_back(epoch) for epoch in epochs]
    await until(lambda: set(fresh) <= set(worker._tries.epochs), "three resumes run")
    other = world.task("return 1")
    assert (worker._tries.free, worker._tries.spare) == (0, 0)
    assert not world.claimed(other)
    (tmp_path / "go").touch()
    assert (await world.exit_of(other))["outcome"] == "success"


async def test_its_log_is_stored_when_a_deferral_is_reported(world: World, worker: WorkerService) -> None:
    """What its trigger and its return log comes after it: one log, in order."""
    epoch = job(world, execute="print('first part')", resume="print('second part')")
    await deferred(world, epoch)
    assert "first part" in world.log(epoch)
    fresh = world.comes_back(epoch)
    await world.exit_of(fresh)
    await world.logged(fresh, "second part")


async def test_secrets_that_a_task_kept_while_it_waited_stay_hidden(world: World, worker: WorkerService, vault: Vault) -> None:
    """R-SEC: the process that goes on has not asked for the connection, and its log is masked all the same."""
    world.conn.execute(
        "insert into sealed_value (kind, name, sealed, changed_by) values ('connection', 'c', %s, 'ada')",
        [vault.seal("connection", "c", "http://me:open-sesame@host")],
    )
    epoch = job(world, kwargs="{'password': get_connection('c').password}", resume="print('it is', kept['password'])")
    await deferred(world, epoch)
    fresh = world.comes_back(epoch)
    await world.exit_of(fresh)
    assert "it is ***" in await world.logged(fresh, "it is")
    assert not world.one("select 1 from report where payload::text like '%%open-sesame%%'")


@pytest.mark.parametrize(("purpose", "error"), [("timeout", "TaskDeferralTimeout"), ("failed", "TriggerFailed")])
async def test_without_an_event_the_method_is_not_called(world: World, worker: WorkerService, purpose: str, error: str) -> None:
    epoch = job(world, resume="print('called')")
    await deferred(world, epoch)
    fresh = world.comes_back(epoch, purpose=purpose, reason="ValueError: no such host")
    ended = await world.exit_of(fresh)
    assert ended["outcome"] == "failed"
    assert ended["error_types"][0] == f"evenflow.errors.{error}"
    assert ("no such host" in ended["reason"]) == (purpose == "failed")
    assert "called" not in world.log(fresh)


async def test_what_no_key_opens_fails_the_try_and_says_why(world: World, worker: WorkerService, tmp_path: Path) -> None:
    epoch = job(world)
    await deferred(world, epoch)
    (tmp_path / "secrets.key").unlink()
    Vault(tmp_path / "secrets.key").seal("variable", "v", "anything")
    ended = await world.exit_of(world.comes_back(epoch))
    assert ended["outcome"] == "failed"
    assert "sealed with a key that this API does not have" in ended["reason"]


async def test_execution_timeout_counts_from_the_first_start(world: World, worker: WorkerService) -> None:
    epoch = job(world, execution_timeout=30.0, resume="time.sleep(600)")
    await deferred(world, epoch)
    ended = await world.exit_of(world.comes_back(epoch, began_s=29.9))
    assert (ended["outcome"], ended["reason"]) == ("failed", "execution_timeout of 30 s exceeded")


async def test_execution_timeout_may_leave_out_waiting(world: World, worker: WorkerService) -> None:
    epoch = job(world, execution_timeout=30.0, execution_timeout_counts_waiting=False, resume="return 1")
    await deferred(world, epoch)
    ended = await world.exit_of(world.comes_back(epoch, began_s=1000.0))
    assert ended["outcome"] == "success"


# -- on_kill -----------------------------------------------------------------------------------------------------------


def killed(to: Path) -> str:
    """An ``on_kill`` that writes who called it."""
    return f"""
    def on_kill(self):
        with open({str(to)!r}, "a") as file:
            file.write(f"{{os.getpid()}}.")
    """


def started(to: Path) -> str:
    return f"open({str(to)!r}, 'w').write(f'{{os.getpid()}}.')"


async def test_a_resume_that_is_killed_while_its_file_loads_stops_what_is_outside(
    world: World, worker: WorkerService, start_worker: StartWorker, tmp_path: Path
) -> None:
    """R-DQ9. On a worker that has not loaded it yet; nothing of the task but its on_kill runs."""
    loads, goes_on, resumed, stopped = (tmp_path / name for name in ("loads", "goes-on", "resumed", "stopped"))
    slow = f"""
    if os.path.exists({str(goes_on)!r}):
        open({str(loads)!r}, "w").close()
        while os.path.exists({str(goes_on)!r}):
            time.sleep(0.01)
    """
    epoch = job(world, resume=started(resumed), more=killed(stopped) + slow)
    await deferred(world, epoch)
    await worker.stop()
    goes_on.touch()
    other = await start_worker()
    fresh = world.comes_back(epoch)
    await until(loads.exists, "the file is being loaded")
    world.ask_to_kill(fresh)
    await until(lambda: other._tries._attempts[fresh].state.owes, "the worker knows")
    goes_on.unlink()
    ended = await world.exit_of(fresh)
    assert (ended["outcome"], ended["reason"]) == ("failed", "ended on request")
    assert number_in(stopped)
    assert not resumed.exists()


@pytest.mark.parametrize("how", ["kill", "timeout"])
async def test_a_resume_that_is_ended_before_it_resumes_stops_what_is_outside(
    world: World, worker: WorkerService, tmp_path: Path, how: str
) -> None:
    """R-DQ9. Its process is there, and has not come by the method that goes on; then it is too late for its own on_kill."""
    made, again, stopped = tmp_path / "made", tmp_path / "again", tmp_path / "stopped"
    hangs = f"""
    template_fields = ("x",)

    @property
    def x(self):
        if os.path.exists({str(again)!r}):
            os.unlink({str(again)!r})
            open({str(made)!r}, "w").write(f"{{os.getpid()}}.")
            time.sleep(600)

    @x.setter
    def x(self, value):
        pass
    """
    limit = {"execution_timeout": 30.0} if how == "timeout" else {}
    epoch = job(world, resume="time.sleep(600)", more=killed(stopped) + hangs, **limit)
    await deferred(world, epoch)
    if how == "kill":
        again.touch()
    fresh = world.comes_back(epoch, began_s=31.0 if how == "timeout" else 1.0)
    if how == "kill":
        await until(lambda: number_in(made), "its process")
        world.ask_to_kill(fresh)
    ended = await world.exit_of(fresh)
    assert ended["outcome"] == "failed"
    assert ended["reason"] == ("ended on request" if how == "kill" else "execution_timeout of 30 s exceeded")
    assert number_in(stopped) not in (0, number_in(made))


async def test_a_kill_runs_on_kill_in_the_process_of_the_try(world: World, worker: WorkerService, tmp_path: Path) -> None:
    """R-DQ9: what was started outside is stopped."""
    epoch = job(world, execute=f"{started(tmp_path / 'pid')}\ntime.sleep(600)", more=killed(tmp_path / "killed"))
    pid = await until(lambda: number_in(tmp_path / "pid"), "the task's start")
    world.ask_to_kill(epoch)
    ended = await world.exit_of(epoch)
    assert (ended["outcome"], ended["exit_code"]) == ("failed", -signal.SIGTERM)
    assert (tmp_path / "killed").read_text() == f"{pid}."
    assert "stopping what it has started outside" in await world.logged(epoch, "stopping")


async def test_on_kill_may_ask_for_a_connection_in_the_middle_of_a_question(
    world: World, worker: WorkerService, tmp_path: Path
) -> None:
    """The signal comes while the task waits for an answer: on_kill has its turn when that is there."""
    more = f"""
    def on_kill(self):
        open({str(tmp_path / "found")!r}, "w").write(get_current_context()["ti"].once_key("x"))
    """
    epoch = job(
        world,
        execute=f"{started(tmp_path / 'pid')}\nwhile True: context['ti'].once_key('x')",
        more=more.replace("get_current_context()", "__import__('evenflow').get_current_context()"),
    )
    await until(lambda: number_in(tmp_path / "pid"), "the task's start")
    world.ask_to_kill(epoch)
    assert (await world.exit_of(epoch))["exit_code"] == -signal.SIGTERM
    assert (tmp_path / "found").read_text() == world.one("select key from once_value")


async def test_a_try_that_cannot_hear_is_killed_after_the_grace(
    world: World, worker: WorkerService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python calls no handler while a call into C does not return."""
    monkeypatch.setattr(limits, "TERM_GRACE", 0.3)
    deaf = "import itertools; sum(itertools.repeat(1))"
    epoch = job(world, execute=f"{started(tmp_path / 'pid')}\n{deaf}", more=killed(tmp_path / "killed"))
    pid = await until(lambda: number_in(tmp_path / "pid"), "the task's start")
    world.ask_to_kill(epoch)
    assert (await world.exit_of(epoch))["exit_code"] == -signal.SIGKILL
    assert not runs(pid)
    assert not (tmp_path / "killed").exists()


async def test_on_kill_has_more_time_than_the_grace_but_not_for_ever(
    world: World, worker: WorkerService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TERM_GRACE", 0.1)
    monkeypatch.setattr(limits, "CLEAN_UP_GRACE", 1.0)
    more = f"""
    def on_kill(self):
        time.sleep(0.3)
        open({str(tmp_path / "after")!r}, "w").write("1.")
        time.sleep(600)
    """
    epoch = job(world, execute=f"{started(tmp_path / 'pid')}\ntime.sleep(600)", more=more)
    await until(lambda: number_in(tmp_path / "pid"), "the task's start")
    world.ask_to_kill(epoch)
    assert (await world.exit_of(epoch))["exit_code"] == -signal.SIGKILL
    assert number_in(tmp_path / "after") == 1


async def test_a_process_that_the_task_forked_does_not_run_on_kill(world: World, worker: WorkerService, tmp_path: Path) -> None:
    execute = f"if os.fork() == 0:\n    time.sleep(600)\n{started(tmp_path / 'pid')}\ntime.sleep(600)"
    epoch = job(world, execute=execute, more=killed(tmp_path / "killed"))
    pid = await until(lambda: number_in(tmp_path / "pid"), "the task's start")
    world.ask_to_kill(epoch)
    await world.exit_of(epoch)
    assert (tmp_path / "killed").read_text() == f"{pid}."


async def test_a_clean_up_runs_on_kill_and_nothing_else(world: World, worker: WorkerService, tmp_path: Path) -> None:
    """R-DQ9: a deferred task has no process; one is made for it. Its execution timeout, which may be why, does not count."""
    epoch = job(world, resume="print('called')", more=killed(tmp_path / "killed"), execution_timeout=30.0)
    await deferred(world, epoch)
    fresh = world.comes_back(epoch, purpose="clean_up", reason="cancelled by ada", began_s=100.0)
    ended = await world.exit_of(fresh)
    assert (ended["outcome"], ended["reason"]) == ("failed", "cancelled by ada")
    assert number_in(tmp_path / "killed") > 0
    assert "called" not in world.log(fresh)


async def test_a_kill_that_comes_while_a_try_defers_loses_nothing(world: World, worker: WorkerService, tmp_path: Path) -> None:
    """R-DQ9: it is told in time and stops what is outside, or it defers and who wanted its end is told that; perhaps both."""
    epoch = job(world, more=killed(tmp_path / "killed"), execute=started(tmp_path / "pid"))
    await until(lambda: number_in(tmp_path / "pid"), "the task's start")
    for attempt in list(worker._tries._attempts.values()):
        attempt.end("ended on request")
    ended = await world.exit_of(epoch)
    assert ended["outcome"] == "deferred" or (tmp_path / "killed").exists()


# -- once --------------------------------------------------------------------------------------------------------------


async def test_what_is_done_once_is_not_done_again_by_the_next_try(world: World, worker: WorkerService, tmp_path: Path) -> None:
    """The worker dies after the job was submitted; the next try goes on with it. The key was the same."""
    file = tmp_path / "submitted"
    body = f"""
    def submit():
        open({str(file)!r}, "a").write(ti.once_key("submit") + "\\n")
        return {{"id": 7}}
    handle = ti.once("submit", submit)
    if ti.try_number == 1:
        os.kill(os.getpid(), 9)
    return [handle, ti.once_key("submit")]
    """
    epoch = world.task(body, head="import os\n")
    assert (await world.exit_of(epoch))["exit_code"] == -signal.SIGKILL
    run = world.one("select run_key from dispatch where epoch = %s", epoch)
    world.end(epoch)
    again = world.dispatch(run, tries=2)
    assert (await world.exit_of(again))["outcome"] == "success"
    (key,) = file.read_text().split()
    assert world.xcom(again) == [{"id": 7}, key]


async def test_what_holds_a_secret_is_stored_sealed_and_stays_hidden(world: World, worker: WorkerService, vault: Vault) -> None:
    world.conn.execute(
        "insert into sealed_value (kind, name, sealed, changed_by) values ('connection', 'c', %s, 'ada')",
        [vault.seal("connection", "c", "http://me:open-sesame@host")],
    )
    head = "from evenflow import get_connection\n"
    first = world.task("print('kept', ti.once('password', lambda: get_connection('c').password))", head=head)
    assert (await world.exit_of(first))["outcome"] == "success"
    value, sealed = world.conn.execute("select value, sealed from once_value").fetchone() or (None, None)
    assert value is None
    assert "open-sesame" in vault.open(ONCE, f"{run_of(world, first)}/password", sealed)
    run = world.one("select run_key from dispatch where epoch = %s", first)
    world.end(first)
    again = world.dispatch(run, tries=2)
    assert (await world.exit_of(again))["outcome"] == "success"
    assert "kept ***" in await world.logged(again, "kept")
