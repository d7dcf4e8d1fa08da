"""spark_chaos: Spark applications on a real standalone cluster and queries on a Connect server; each run loses one of the processes
that it stands on.

Each driver appends to a ledger, several times a second, so that it is known afterwards how many of one task ran at a time; of a
query its rows do. A run is a task of SparkSubmit, in client or cluster mode, or one of ``@task.spark`` on the Connect server of
``evenflow up``, with tries to spare. Killed with SIGKILL, once: the driver's Python, its JVM, its wrapper, an executor, the master,
the Connect server, or the worker, triggerer or scheduler of Evenflow, when the driver has just been ordered, when it runs, or
when it ends; or the run is cancelled. The master comes back where it was, by the harness; the Connect server by Evenflow.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.running import RunningEvenflow, evenflow_json, running_evenflow
from tests.spark.servers import Cluster, recovering_cluster
from tests.waiting import wait_until

CASE = "spark_chaos"
OF_EVENFLOW = ("worker", "scheduler", "cancel")
OF_APPLICATIONS = ("python", "jvm", "wrapper", "executor", "master", "triggerer", *OF_EVENFLOW)
PAIRS = [
    *((mode, victim) for victim in OF_APPLICATIONS for mode in ("client", "cluster")),
    *(("connect", victim) for victim in ("python", "connect", *OF_EVENFLOW)),
]  # in turn
MOMENTS = ("ordered", "running", "ending")
WORKS_S, ENDS_S = 6.0, 1.5  # of an application: long enough to be met in the middle
ORPHAN_S = 30.0
RUN_WITHIN_S = 600.0

APPLICATION = f"""
import json, os, sys, threading, time
from pyspark.sql import SparkSession

ledger, run, key = sys.argv[1], sys.argv[2], os.urandom(6).hex()

def say(what, **more):
    with open(ledger, "a") as file:
        file.write(json.dumps(dict(run=run, key=key, what=what, at=time.time(), pid=os.getpid(), jvm=os.getppid(), **more)) + "\\n")

def beat():
    while True:
        say("beat")
        time.sleep(0.1)

threading.Thread(target=beat, daemon=True).start()
spark = SparkSession.builder.getOrCreate()
say("running", app=spark.sparkContext.applicationId)
until = time.monotonic() + {WORKS_S}
while time.monotonic() < until:
    assert spark.range(1000).count() == 1000
say("done")
time.sleep({ENDS_S})
spark.stop()
"""

DAG_FILE = """
import json, os, time
from evenflow import DAG, SparkSubmit, get_current_context, task

LEDGER, WORKS_S, ENDS_S = {ledger!r}, {works_s}, {ends_s}

def say(what, **more):
    with open(LEDGER, "a") as file:
        file.write(json.dumps(dict(what=what, at=time.time(), **more)) + "\\n")

with DAG("connect"):
    @task.spark(conn_id="spark_connect", retries=4, retry_delay=0)
    def query(*, spark):
        of_it = dict(run=get_current_context()["run_id"], client=os.getpid())
        say("begun", key=os.urandom(6).hex(), **of_it)

        def rows(batches):
            key, until = os.urandom(6).hex(), time.monotonic() + WORKS_S
            say("running", key=key, **of_it)
            while time.monotonic() < until:
                say("beat", key=key, **of_it)
                time.sleep(0.1)
            say("done", key=key, **of_it)
            yield from batches

        assert spark.range(0, 1, 1, 1).mapInArrow(rows, "id long").count() == 1
        time.sleep(ENDS_S)

    query()

SMALL = {{"spark.executor.memory": "512m", "spark.driver.memory": "512m", "spark.cores.max": "1"}}
for mode in ("client", "cluster"):
    with DAG(mode):
        SparkSubmit(task_id="app", application="app.py", args=[LEDGER, "{{{{ run_id }}}}"], conf=SMALL, conn_id=mode,
                    retries=4, retry_delay=0)
"""


def run(*, runs: int) -> Iterator[dict[str, Any]]:
    """One result for all ``runs``."""
    with (
        tempfile.TemporaryDirectory(prefix="spark-chaos-") as folder,
        recovering_cluster(Path(folder), workers=2, cores=2) as (cluster, kill_master),
    ):
        base = Path(folder, "evidence")
        with running_evenflow(None, "--spark-connect", **_connections(cluster, base)) as system:
            chaos = _Chaos(system, Path(folder, "ledger"), base, kill_master)
            told = [chaos.once(number) for number in range(runs)]
            ended = chaos.ledger()
            time.sleep(ORPHAN_S)
            yield _judged(told, ended, chaos.ledger())


def _connections(cluster: Cluster, base: Path) -> dict[str, Any]:
    common = f"rest={cluster.rest}&evidence={base}&python={sys.executable}"
    return {f"EVENFLOW_CONN_{mode.upper()}": f"{cluster.uri}?deploy_mode={mode}&{common}" for mode in ("client", "cluster")}


class _Chaos:
    def __init__(self, system: RunningEvenflow, ledger: Path, base: Path, kill_master: Callable[[], None]) -> None:
        self._system, self._ledger, self._base, self._kill_master = system, ledger, base, kill_master
        (system.dags / "app.py").write_text(APPLICATION)
        (system.dags / "chaos.py").write_text(DAG_FILE.format(ledger=str(ledger), works_s=WORKS_S, ends_s=ENDS_S))
        wait_until(lambda: len(evenflow_json(system.home, "dags", "list")["dags"]) >= 3, lambda: system.log, within_s=120)

    def ledger(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._ledger.read_text().splitlines()] if self._ledger.exists() else []

    def once(self, number: int) -> dict[str, Any]:
        (mode, victim), moment = PAIRS[number % len(PAIRS)], random.Random(number).choice(MOMENTS)
        before = self._orders()
        run_id = evenflow_json(self._system.home, "runs", "trigger", mode)["run_id"]
        if mode == "connect":
            order = None
            self._await(run_id, "begun")
        else:
            order = wait_until(lambda: next(iter(self._orders() - before), None), within_s=120)
        if moment != "ordered" or victim in ("python", "jvm", "executor"):
            self._await(run_id, "done" if moment == "ending" else "running")
        hit = self._strike(victim, mode, run_id, order)
        state = wait_until(lambda: self._ended(mode, run_id), within_s=RUN_WITHIN_S)
        told = {"run": run_id, "mode": mode, "victim": victim, "moment": moment, "hit": hit, "state": state, "at": time.time()}
        print(json.dumps(told), file=sys.stderr, flush=True)
        return told

    def _orders(self) -> set[Path]:
        return {path.parent for path in self._base.glob("*/*/order.json")}

    def _await(self, run_id: str, what: str) -> None:
        wait_until(lambda: any(line["what"] == what for line in self._of(run_id)), within_s=RUN_WITHIN_S)

    def _of(self, run_id: str) -> list[dict[str, Any]]:
        return [line for line in self.ledger() if line["run"] == run_id]

    def _ended(self, mode: str, run_id: str) -> str | None:
        (found,) = (each for each in evenflow_json(self._system.home, "runs", "list", mode)["runs"] if each["run_id"] == run_id)
        return found["state"] if found["state"] in ("success", "failed") else None

    def _strike(self, victim: str, mode: str, run_id: str, folder: Path | None) -> bool:
        """Whether there was something to strike."""
        last: dict[str, Any] = next((line for line in reversed(self._of(run_id))), {})
        finders: dict[str, Callable[[], int | None]] = {
            "python": lambda: last.get("client", last.get("pid")),
            "jvm": lambda: last.get("jvm"),
            "wrapper": lambda: self._wrapper(folder),
            "executor": lambda: _jvm_of(psutil.process_iter(), "CoarseGrainedExecutorBackend", str(self._base.parent)),
            "connect": lambda: _jvm_of(psutil.Process(self._system.process.pid).children(recursive=True), "SparkConnectServer"),
        }
        if victim == "cancel":
            return self._system.evenflow("runs", "cancel", f"{mode}/{run_id}", "--yes").returncode == 0
        if victim == "master":
            self._kill_master()
            return True
        pid = finders[victim]() if victim in finders else self._system.service(victim).pid
        if pid is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
            return True
        return False

    def _wrapper(self, folder: Path | None) -> int | None:
        claim = folder and folder / "claim.json"
        return int(json.loads(claim.read_text())["pid"]) if claim and claim.exists() else None


def _jvm_of(processes: Iterable[psutil.Process], main: str, words: str = "") -> int | None:
    """The pid of one that runs this class and has ``words`` in its folder or arguments."""
    for process in processes:
        with suppress(psutil.Error):
            command = process.cmdline()
            if any(main in word for word in command) and words in " ".join([process.cwd(), *command]):
                return int(process.pid)
    return None


def _judged(told: list[dict[str, Any]], ended: list[dict[str, Any]], later: list[dict[str, Any]]) -> dict[str, Any]:
    at_once = max((_most_at_once([line for line in later if line["run"] == each["run"]]) for each in told), default=0)
    done = {line["run"] for line in later if line["what"] == "done"}
    false = [each["run"] for each in told if each["state"] == "success" and each["run"] not in done]
    ends = {each["run"]: each["at"] for each in told}
    orphans = {line["key"] for line in later if line["at"] > ends[line["run"]] + ORPHAN_S}
    wrong = [each["run"] for each in told if each["victim"] != "cancel" and each["state"] != "success"]
    return {
        "ok": at_once <= 1 and not false and not orphans,
        "runs": len(told),
        "hit": sum(each["hit"] for each in told),
        "drivers": len({line["key"] for line in later}),
        "at_once_max": at_once,
        "false_success": len(false),
        "orphans_after_30_s": len(orphans),
        "not_brought_to_success": len(wrong),
    }


def _most_at_once(lines: list[dict[str, Any]]) -> int:
    """Of the spans from the first to the last line of each driver, the most that share an instant. A client of a Connect server is
    none: its query is.
    """
    spans: dict[str, list[float]] = defaultdict(list)
    for line in lines:
        spans[line["key"]].append(line["at"])
    moves = sorted(move for ats in spans.values() for move in ((min(ats), 1), (max(ats), -1)))
    now = most = 0
    for _, change in moves:
        now += change
        most = max(most, now)
    return most
