"""Tasks that wait deferred, through the whole of ``evenflow up``: processor, scheduler, worker, triggerer, and what people see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import RunningEvenflow, evenflow_json, make_home, remove_home, running_evenflow
from tests.waiting import wait_until

DAGS = '''
import asyncio, logging, os, time
from evenflow import DAG, BaseOperator, BaseTrigger, FileSensor, TriggerEvent, get_current_context, task, wait_for

HERE = os.path.dirname({home!r} + "/x")

class Appears(BaseTrigger):
    """Of the DAG file: a host of its own runs it."""

    def __init__(self, name):
        self.name = name

    async def run(self):
        logging.getLogger("appears").info("part two")
        while not os.path.exists(os.path.join(HERE, self.name)):
            await asyncio.sleep(0.05)
        yield TriggerEvent(self.name)

class Job(BaseOperator):
    def execute(self, context):
        print("part one")
        context["ti"].xcom_push("early", "kept")
        self.defer(trigger=Appears("appeared"), method_name="resume", kwargs={{"n": 7}})

    def resume(self, context, event, n):
        print("part three")
        return [event, n, context["ti"].xcom_pull(key="early"), context["ti"].try_number]

    def on_kill(self):
        open(os.path.join(HERE, "killed"), "a").write(get_current_context()["ti"].once_key("job") + " ")

with DAG("waits"):
    Job(task_id="job")
    FileSensor(task_id="sensor", filepath=os.path.join(HERE, "appeared"), deferrable=True, poke_interval=0.1)

    @task
    async def awaits():
        first = await wait_for(Appears("appeared"))
        second = await wait_for(Appears("appeared"))
        return [first, second]

    awaits()

with DAG("busy"):
    for number in range(4):
        @task(task_id=f"busy_{{number}}", priority_weight=100)
        def busy():
            while not os.path.exists(os.path.join(HERE, "go")):
                time.sleep(0.05)
        busy()
'''

pytestmark = pytest.mark.slow


@pytest.fixture
def home() -> Iterator[Path]:
    directory = make_home()
    (directory / "dags").mkdir()
    (directory / "dags" / "waiting.py").write_text(DAGS.format(home=str(directory)))
    yield directory
    remove_home(directory)


@pytest.fixture
def running(home: Path) -> Iterator[RunningEvenflow]:
    with running_evenflow(home) as running:
        wait_until(lambda: len(evenflow_json(home, "dags", "list")["dags"]) >= 2, "the DAGs")
        yield running
        assert running.end() == 0, running.log


def begin(home: Path, dag_id: str) -> str:
    run: str = evenflow_json(home, "runs", "trigger", dag_id)["run_id"]
    return run


def states(home: Path, dag_id: str, run_id: str) -> dict[str, str]:
    return {row["task_id"]: row["state"] for row in evenflow_json(home, "tasks", "list", f"{dag_id}/{run_id}")["tasks"]}


def test_resumes_get_in_while_every_ordinary_slot_is_busy(home: Path, running: RunningEvenflow) -> None:
    """R-DQ3, R-DQ1: all four slots stay taken, and what was deferred comes back and ends. What it pushed before it waited is there,
    its log is one, and it is still the first try.
    """
    waits = begin(home, "waits")
    wait_until(lambda: set(states(home, "waits", waits).values()) == {"deferred"}, "all three are deferred")
    busy = begin(home, "busy")
    wait_until(lambda: set(states(home, "busy", busy).values()) == {"running"}, "four slots are taken")
    (home / "appeared").touch()
    wait_until(lambda: set(states(home, "waits", waits).values()) == {"success"}, "all three are back and have ended")
    assert set(states(home, "busy", busy).values()) == {"running"}
    assert evenflow_json(home, "xcoms", "show", f"waits/{waits}", "job")["value"] == ["appeared", 7, "kept", 1]
    assert evenflow_json(home, "xcoms", "show", f"waits/{waits}", "awaits")["value"] == ["appeared", "appeared"]
    log = running.evenflow("tasks", "logs", f"waits/{waits}", "job").stdout
    places = [log.index(part) for part in ("part one", "part two", "part three")]
    assert places == sorted(places)
    (home / "go").touch()
    wait_until(lambda: set(states(home, "busy", busy).values()) == {"success"}, "the others end")
    assert running.evenflow("audit").returncode == 0


def test_cancelling_a_run_stops_what_its_deferred_task_has_started(home: Path, running: RunningEvenflow) -> None:
    """R-DQ9: the process of the task is long gone, so a worker runs its on_kill, with the key that it had."""
    waits = begin(home, "waits")
    wait_until(lambda: set(states(home, "waits", waits).values()) == {"deferred"}, "all three are deferred")
    assert running.evenflow("runs", "cancel", f"waits/{waits}").returncode == 0
    wait_until(lambda: set(states(home, "waits", waits).values()) == {"failed"}, "the run has ended")
    assert len((home / "killed").read_text().split()) == 1
