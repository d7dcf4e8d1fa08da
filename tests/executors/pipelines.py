"""DAGs of which every executor has to make the same. Their folder is in ``EXECUTORS_TEST``."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from evenflow import DAG, BaseOperator, Context, TimeDeltaTrigger, Variable, resources, task
from evenflow.triggers.file import FileTrigger

QUEUE = "work"
SPARK = "here"  # the connection of tasks on Spark
MARKS = Path(os.environ.get("EXECUTORS_TEST", "/nonexistent"))


def mark(name: str) -> int:
    """The how manieth this is of its name."""
    with open(MARKS / name, "a+") as file:
        file.write("x")
        file.seek(0)
        return len(file.read())


def wait_for(name: str) -> None:
    import time

    while not (MARKS / name).exists():
        time.sleep(0.05)


class Waits(BaseOperator):
    """Is deferred, and says what it got when it goes on."""

    def execute(self, context: Context) -> None:
        self.defer(trigger=TimeDeltaTrigger(timedelta(seconds=0.2)), method_name="go_on")

    def go_on(self, context: Context, event: Any) -> str:
        return "went on"


class WaitsForFile(Waits):
    """As :class:`Waits`, until a file is there, and marks that it goes on."""

    def execute(self, context: Context) -> None:
        self.defer(trigger=FileTrigger(filepath=MARKS / f"event-{context['run_id']}", poll_interval=0.1), method_name="go_on")

    def go_on(self, context: Context, event: Any) -> str:
        mark(f"back-{context['run_id']}")
        wait_for(f"open-{context['run_id']}")
        return "went on"


class Stoppable(BaseOperator):
    """Runs until it is stopped."""

    def execute(self, context: Context) -> None:
        mark("begun")
        wait_for("never")

    def on_kill(self) -> None:
        mark("stopped")


class StopsBadly(BaseOperator):
    """Runs until it is stopped, and then does as its name says."""

    def execute(self, context: Context) -> None:
        wait_for("never")

    def on_kill(self) -> None:
        mark(f"stopping-{self.task_id}")
        if self.task_id == "raises":
            raise RuntimeError("what it has started cannot be stopped")
        if self.task_id == "exits":
            sys.exit("what it has started cannot be stopped")
        wait_for("never")


class SentOn(BaseOperator):
    """Runs until a file is there; what it has started outside is for the next try."""

    def execute(self, context: Context) -> str:
        run_id = context["run_id"]
        mark(f"began-{run_id}")
        wait_for(f"open-{run_id}")
        return "done"

    def on_kill(self) -> None:
        mark("ended-outside")


with DAG("plain"):

    @task(queue=QUEUE)
    def two() -> int:
        print("a line of the log")
        return 2

    @task(queue=QUEUE)
    def plus(number: int) -> int:
        return number + 1

    plus(two())

with DAG("late"):

    @task(queue=QUEUE, execution_timeout=timedelta(seconds=1))
    def too_late() -> None:
        wait_for("never")

    too_late()

with DAG("deferred"):
    Waits(task_id="waits", queue=QUEUE)

with DAG("called_back"):
    WaitsForFile(task_id="waits", queue=QUEUE)

with DAG("stopped"):
    Stoppable(task_id="stoppable", queue=QUEUE)

with DAG("gated"):

    @task(queue=QUEUE)
    def gated(dag_run: Any = None) -> int:
        count = mark(f"gated-{dag_run.run_id}")
        wait_for(f"open-{dag_run.run_id}")
        return count

    gated()

with DAG("lost"):

    @task(queue=QUEUE)
    def lost(dag_run: Any = None) -> int:
        count = mark(f"lost-{dag_run.run_id}")
        if count == 1:
            (MARKS / f"pid-{dag_run.run_id}").write_text(str(os.getpid()))
            wait_for("never")
        return count

    lost()

with DAG("secret"):

    @task(queue=QUEUE)
    def secret() -> None:
        print("the password is", Variable.get("password"), "and no more")

    secret()

with DAG("spark"):

    @task.spark(queue=QUEUE, conn_id=SPARK)
    def counted(*, spark: Any) -> int:
        return int(spark.range(1000).count())

    counted()

with DAG("hungry"):

    @task(queue=QUEUE, resources=resources(memory="64MiB", cpu=1))
    def hungry() -> None:
        """A MiB at a time."""
        held = []
        while len(held) < 1024:
            held.append(bytearray(b"x") * 2**20)
        wait_for("never")

    hungry()

with DAG("traced"):

    @task(queue=QUEUE)
    def traced() -> str:
        return os.environ["TRACEPARENT"]

    traced()

with DAG("stubborn"):
    for name in ("raises", "exits", "hangs"):
        StopsBadly(
            task_id=name,
            queue=QUEUE,
            execution_timeout=timedelta(seconds=1),
            on_kill_callback=lambda context: mark(f"called-{context['ti'].task_id}"),
        )

with DAG("sent_on"):
    SentOn(task_id="sent_on", queue=QUEUE)

with DAG("bomb"):

    @task(queue=QUEUE, resources=resources(memory="512MiB", cpu=1))
    def bomb() -> None:
        """Never gives up; where nothing limits it, it ends when the test does."""
        while not (MARKS / "defused").exists():
            try:
                if os.fork() == 0:
                    os.setsid()
            except OSError:
                pass

    bomb()
