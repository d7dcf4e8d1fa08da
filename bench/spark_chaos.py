"""spark_chaos: Spark applications on a real standalone cluster, of which each run loses one of the processes that it stands on.

Each driver appends to a ledger, several times a second, so that it is known afterwards how many of one task ran at a time. A run is
a task of SparkSubmit with tries to spare, in client or cluster mode. Killed with SIGKILL, once: the driver's Python, its JVM, its
wrapper, an executor, or the worker, triggerer or scheduler of Evenflow, when the driver has just been ordered, when it runs, or
when it ends; or the run is cancelled.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.running import RunningEvenflow, evenflow_json, running_evenflow
from tests.spark.servers import Cluster, cluster_with_rest
from tests.waiting import wait_until

CASE = "spark_chaos"
VICTIMS = ("python", "jvm", "wrapper", "executor", "worker", "triggerer", "scheduler", "cancel")
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
from evenflow import DAG, SparkSubmit

SMALL = {{"spark.executor.memory": "512m", "spark.driver.memory": "512m", "spark.cores.max": "1"}}
for mode in ("client", "cluster"):
    with DAG(mode):
        SparkSubmit(task_id="app", application="app.py", args=[{ledger!r}, "{{{{ run_id }}}}"], conf=SMALL, conn_id=mode,
                    retries=4, retry_delay=0)
"""


def run(*, runs: int) -> Iterator[dict[str, Any]]:
    """One result for all ``runs``."""
    with tempfile.TemporaryDirectory(prefix="spark-chaos-") as folder, cluster_with_rest(Path(folder), cores=3) as cluster:
        base = Path(folder, "evidence")
        with running_evenflow(None, **_connections(cluster, base)) as system:
            chaos = _Chaos(system, Path(folder, "ledger"), base)
            told = [chaos.once(number) for number in range(runs)]
            ended = chaos.ledger()
            time.sleep(ORPHAN_S)
            yield _judged(told, ended, chaos.ledger())


def _connections(cluster: Cluster, base: Path) -> dict[str, Any]:
    common = f"rest={cluster.rest}&evidence={base}&python={sys.executable}"
    return {f"EVENFLOW_CONN_{mode.upper()}": f"{cluster.uri}?deploy_mode={mode}&{common}" for mode in ("client", "cluster")}


class _Chaos:
    def __init__(self, system: RunningEvenflow, ledger: Path, base: Path) -> None:
        self._system, self._ledger, self._base = system, ledger, base
        (system.dags / "app.py").write_text(APPLICATION)
        (system.dags / "chaos.py").write_text(DAG_FILE.format(ledger=str(ledger)))
        wait_until(lambda: len(evenflow_json(system.home, "dags", "list")["dags"]) >= 2, lambda: system.log, within_s=120)

    def ledger(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._ledger.read_text().splitlines()] if self._ledger.exists() else []

    def once(self, number: int) -> dict[str, Any]:
        chance = random.Random(number)
        mode, victim, moment = chance.choice(("client", "cluster")), VICTIMS[number % len(VICTIMS)], chance.choice(MOMENTS)
        before = {path.parent for path in self._base.glob("*/*/order.json")}
        run_id = evenflow_json(self._system.home, "runs", "trigger", mode)["run_id"]
        order = wait_until(
            lambda: next(({path.parent for path in self._base.glob("*/*/order.json")} - before).__iter__(), None), within_s=120
        )
        if moment != "ordered" or victim in ("python", "jvm", "executor"):
            what = "done" if moment == "ending" else "running"
            wait_until(lambda: any(line["what"] == what for line in self._of(run_id)), within_s=RUN_WITHIN_S)
        assert order is not None
        hit = self._strike(victim, mode, run_id, order)
        state = wait_until(lambda: self._ended(mode, run_id), within_s=RUN_WITHIN_S)
        told = {"run": run_id, "mode": mode, "victim": victim, "moment": moment, "hit": hit, "state": state, "at": time.time()}
        print(json.dumps(told), file=sys.stderr, flush=True)
        return told

    def _of(self, run_id: str) -> list[dict[str, Any]]:
        return [line for line in self.ledger() if line["run"] == run_id]

    def _ended(self, mode: str, run_id: str) -> str | None:
        (found,) = (each for each in evenflow_json(self._system.home, "runs", "list", mode)["runs"] if each["run_id"] == run_id)
        return found["state"] if found["state"] in ("success", "failed") else None

    def _strike(self, victim: str, mode: str, run_id: str, folder: Path) -> bool:
        """Whether there was something to strike."""
        last: dict[str, Any] = next((line for line in reversed(self._of(run_id))), {})
        finders: dict[str, Callable[[], int | None]] = {
            "python": lambda: last.get("pid"),
            "jvm": lambda: last.get("jvm"),
            "wrapper": lambda: self._wrapper(folder),
            "executor": self._executor,
        }
        if victim == "cancel":
            return self._system.evenflow("runs", "cancel", f"{mode}/{run_id}", "--yes").returncode == 0
        pid = finders[victim]() if victim in finders else self._system.service(victim).pid
        if pid is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
            return True
        return False

    def _wrapper(self, folder: Path) -> int | None:
        claim = folder / "claim.json"
        return int(json.loads(claim.read_text())["pid"]) if claim.exists() else None

    def _executor(self) -> int | None:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                words = process.cmdline()
                if any("CoarseGrainedExecutorBackend" in word for word in words) and str(self._base.parent) in " ".join(
                    [process.cwd(), *words]
                ):
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
    """Of the spans from the first to the last line of each driver, the most that share an instant."""
    spans: dict[str, list[float]] = defaultdict(list)
    for line in lines:
        spans[line["key"]].append(line["at"])
    moves = sorted(move for ats in spans.values() for move in ((min(ats), 1), (max(ats), -1)))
    now = most = 0
    for _, change in moves:
        now += change
        most = max(most, now)
    return most
