"""Pods of images that have Airflow and not Evenflow: its own entry point runs the task, by Airflow's Task Execution API (R-AF1)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from evenflow.api.service import ApiService
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.launcher.service import LauncherService
from evenflow.store.db.notify import DISPATCH
from tests.airflow.conftest import airflow_python
from tests.kubernetes.cluster import Cluster
from tests.pods.world import QUEUE, PodWorld, launcher_of, of_epoch, pods_told
from tests.waiting import until

__all__ = ["airflow_python"]
pytestmark = [pytest.mark.system, pytest.mark.timeout(600), pytest.mark.xdist_group("airflow")]

DAG = """
from airflow.sdk import dag, task

@dag(schedule=None)
def sales():
    @task(retries=1)
    def extract(params=None):
        print("hello from the image")
        return [1, params["p"]]

    @task
    def fails():
        raise ValueError("no luck")

    extract(), fails()

sales()
"""
SPEC = DagSpec(
    dag_id="sales",
    environment="airflow",
    tasks=(TaskSpec(task_id="extract", operator="_PythonDecoratedOperator", retries=1), TaskSpec(task_id="fails", operator="_P")),
)


@pytest.fixture
async def launcher(
    api: ApiService, cluster: Cluster, database_url: str, tmp_path: Path, airflow_python: Path
) -> AsyncIterator[LauncherService]:
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "sales.py").write_text(DAG)
    said = {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    env = [{"name": name, "value": value} for name, value in said.items()]
    container = {"name": "try", "image": "airflow", "command": [str(airflow_python)], "env": env}
    template = tmp_path / "pod.yaml"
    template.write_text(json.dumps({"kind": "Pod", "spec": {"containers": [container]}}))
    service = launcher_of(database_url, tmp_path, cluster.uri, template, f"http://127.0.0.1:{api.port}", "launcher")
    await service.start()
    yield service
    await service.stop()


def begin(world: PodWorld, task: int) -> int:
    version = world.add_dag(SPEC, {"sales.py": DAG.encode()})
    world.conn.execute("update dag_version set bundle = 'main' where version_key = %s", [version])
    epoch = world.dispatch(world.run(version, params={"p": 2}), task=task, queue=QUEUE)
    world.notify(DISPATCH)
    return epoch


async def ended(world: PodWorld, epoch: int) -> dict[str, Any]:
    found = await until(lambda: world.exits(epoch), f"the end of {epoch}", within_s=300)
    return dict(found[0])


async def test_a_task_runs_in_an_image_without_evenflow(world: PodWorld, cluster: Cluster, launcher: LauncherService) -> None:
    """R-AF1, R-EX2: its result and its end come by the token of its try; the pod's log has what it said."""
    world.executor(runs="airflow")
    epoch = begin(world, 0)
    end = await ended(world, epoch)
    assert end["outcome"] == "success"
    assert world.one("select value from xcom where key = 'return_value'") == [1, 2]
    (pod,) = of_epoch(cluster, epoch)
    name = pod["metadata"]["name"]
    of_pod = "select name, state from service where kind = 'worker'"
    await until(lambda: world.one(of_pod) == (name, "stopped"), "its worker leaves, which the API was for it")
    assert "hello from the image" in "\n".join(pods_told(cluster))
    world.over(epoch)
    await until(lambda: not cluster.objects(), "the pod goes with its try", within_s=60)


async def test_a_task_that_fails_there_has_failed(world: PodWorld, launcher: LauncherService) -> None:
    world.executor(runs="airflow")
    end = await ended(world, begin(world, 1))
    assert (end["outcome"], end["reason"]) == ("failed", "The task has failed.")


async def test_a_dag_of_evenflows_is_no_task_for_such_an_image(world: PodWorld, launcher: LauncherService) -> None:
    world.executor(runs="airflow")
    end = await ended(world, world.pod("return 1"))
    assert end["outcome"] == "failed"
    assert "run tasks of Airflow's DAGs, and DAG" in end["reason"]
