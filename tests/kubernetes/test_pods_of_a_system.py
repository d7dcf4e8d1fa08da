"""Tasks that are pods, in a whole Evenflow: while all slots are busy, and to the end of everything when a DAG is switched off."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.kubernetes.cluster import Cluster
from tests.running import RunningEvenflow, evenflow_json, running_evenflow
from tests.waiting import wait_until

pytestmark = pytest.mark.system

SECRET = "hunter2-hunter2"
DAGS = """
import os, time
from evenflow import DAG, BaseHook, KubernetesPod, task

HERE = {here!r}
HOW = dict(image="busybox", cmds=["sh", "-c"], poll_interval=0.3)

with DAG("pods"):
    for name in ("a", "b", "c"):
        KubernetesPod(
            task_id=name,
            arguments=["echo " + name + " begins with $PASSWORD; echo 1 > /evenflow/result.json; while [ ! -e " + HERE + "/go ]; do sleep 0.1; done; echo ends"],
            env_vars={{"PASSWORD": "{{{{ conn.shop.password }}}}"}},
            do_xcom_push=True,
            **HOW,
        )

for name in ("drained", "off"):
    with DAG(name):
        @task
        def told(number: int) -> int:
            return number + 1

        pod = KubernetesPod(
            task_id="pod",
            arguments=["echo 6 > /evenflow/result.json; while [ ! -e " + HERE + "/go ]; do sleep 0.1; done"],
            do_xcom_push=True,
            **HOW,
        )
        told(pod.output)

with DAG("busy"):
    @task
    def holds():
        while not os.path.exists(HERE + "/free"):
            time.sleep(0.05)
    for number in range(4):  # as many as its worker has slots
        holds.override(task_id=f"holds-{{number}}")()

with DAG("endless"):
    for name in ("a", "b"):
        KubernetesPod(task_id=name, arguments=["sleep 600"], retries=1, retry_delay=0, **HOW)
"""  # noqa: E501


@pytest.fixture
def running() -> Iterator[RunningEvenflow]:
    with running_evenflow() as running:
        yield running


@pytest.fixture
def ready(running: RunningEvenflow, cluster: Cluster, tmp_path: Path) -> RunningEvenflow:
    for name, uri in (("kubernetes_default", cluster.uri), ("shop", f"http://me:{SECRET}@shop")):
        (running.home / name).write_text(uri)
        stored = running.evenflow("connections", "set", name, "--file", str(running.home / name))
        assert stored.returncode == 0, stored.stderr
    (running.dags / "pods.py").write_text(DAGS.format(here=str(tmp_path)))
    wait_until(lambda: len(evenflow_json(running.home, "dags", "list")["dags"]) >= 5, lambda: running.log)
    return running


def states(running: RunningEvenflow, run: str) -> dict[str, str]:
    return {row["task_id"]: row["state"] for row in evenflow_json(running.home, "tasks", "list", run)["tasks"]}


def begin(running: RunningEvenflow, dag: str) -> str:
    return f"{dag}/{evenflow_json(running.home, 'runs', 'trigger', dag)['run_id']}"


def _run(pod: Any) -> bool:
    return bool(pod["status"]["phase"] == "Running")


def test_pods_run_while_every_slot_is_busy_and_their_secrets_are_in_no_log(
    ready: RunningEvenflow, cluster: Cluster, tmp_path: Path
) -> None:
    """R-DQ10: they wait without a slot, come back ahead of others, and are gone afterwards."""
    run = begin(ready, "pods")
    wait_until(lambda: len([pod for pod in cluster.objects() if _run(pod)]) == 3, lambda: (cluster.objects(), ready.log))
    wait_until(lambda: set(states(ready, run).values()) == {"deferred"}, lambda: states(ready, run))
    logged = lambda: ready.evenflow("tasks", "logs", run, "a").stdout  # noqa: E731
    wait_until(lambda: "a begins with" in logged(), lambda: logged())
    busy = begin(ready, "busy")
    wait_until(lambda: list(states(ready, busy).values()) == ["running"] * 4, lambda: states(ready, busy))
    (tmp_path / "go").touch()
    wait_until(lambda: set(states(ready, run).values()) == {"success"}, lambda: (states(ready, run), ready.log))
    assert list(states(ready, busy).values()) == ["running"] * 4
    assert evenflow_json(ready.home, "xcoms", "show", run, "a")["value"] == 1
    assert cluster.objects() == []
    assert logged().count("ends") == 1
    assert SECRET not in logged() + ready.log
    (tmp_path / "free").touch()


def test_pods_of_a_dag_that_is_paused_and_of_a_run_that_is_cancelled_are_cleaned_up(
    ready: RunningEvenflow, cluster: Cluster
) -> None:
    """R-DQ10, with the triggerer killed meanwhile: another one goes on with the same pods, and none is left."""
    run = begin(ready, "endless")
    wait_until(lambda: len([pod for pod in cluster.objects() if _run(pod)]) == 2, lambda: (cluster.objects(), ready.log))
    wait_until(lambda: set(states(ready, run).values()) == {"deferred"}, lambda: states(ready, run))
    pids = [cluster.container(pod).pid for pod in cluster.objects()]
    os.kill(ready.service("triggerer").pid, signal.SIGKILL)
    paused = ready.evenflow("dags", "pause", "endless")
    assert paused.returncode == 0, paused.stderr
    assert len(cluster.objects()) == 2
    cancelled = ready.evenflow("runs", "cancel", run)
    assert cancelled.returncode == 0, cancelled.stderr
    wait_until(lambda: not cluster.objects(), lambda: (cluster.objects(), ready.log))
    wait_until(lambda: not any(map(psutil.pid_exists, pids)), "the end of their processes")
    wait_until(lambda: "deferred" not in states(ready, run).values(), lambda: states(ready, run))


def test_a_pod_that_waits_while_its_dag_drains_or_is_paused_ends_with_its_result(
    ready: RunningEvenflow, cluster: Cluster, tmp_path: Path
) -> None:
    """R-DQ7, R-DQ10: its direct resume takes the result and the pod away. What follows runs in the DAG that drains, and waits in
    the one that is off.
    """
    runs = {dag: begin(ready, dag) for dag in ("drained", "off")}
    wait_until(lambda: len([pod for pod in cluster.objects() if _run(pod)]) == 2, lambda: (cluster.objects(), ready.log))
    for run in runs.values():
        wait_until(lambda run=run: states(ready, run)["pod"] == "deferred", lambda run=run: states(ready, run))
    for order in (("drain", "drained"), ("pause", "off")):
        given = ready.evenflow(*order)
        assert given.returncode == 0, given.stderr
    (tmp_path / "go").touch()
    wait_until(lambda: states(ready, runs["drained"])["told"] == "success", lambda: (states(ready, runs["drained"]), ready.log))
    wait_until(lambda: states(ready, runs["off"])["pod"] == "success", lambda: (states(ready, runs["off"]), ready.log))
    assert cluster.objects() == []
    for run in runs.values():
        assert evenflow_json(ready.home, "xcoms", "show", run, "pod")["value"] == 6
    assert states(ready, runs["off"])["told"] not in ("running", "success")
    wait_until(lambda: "paused" in _service_state(ready, "drained"), lambda: _service_state(ready, "drained"))
    assert ready.evenflow("activate", "off").returncode == 0
    wait_until(lambda: states(ready, runs["off"])["told"] == "success", lambda: (states(ready, runs["off"]), ready.log))
    assert evenflow_json(ready.home, "xcoms", "show", runs["off"], "told")["value"] == 7


def _service_state(running: RunningEvenflow, dag: str) -> str:
    return str([row for row in evenflow_json(running.home, "dags", "list")["dags"] if row["dag_id"] == dag])
