"""Issue 18: the providers of docs/reference/airflow-providers.md load, and run where their other side can be played here.

They are in an environment of their own, of 2 GB: EVENFLOW_TEST_PROVIDERS names its Python.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenflow.client.rest import RestClient
from tests.airflow.conftest import INSIDE, ROOT, run_inside
from tests.airflow.stand_ins import Played, played
from tests.kubernetes.cluster import Cluster, kubernetes
from tests.running import RunningEvenflow, running_evenflow
from tests.waiting import wait_until

HERE = Path(__file__).parent / "providers"
PAGE = ROOT / "docs" / "reference" / "airflow-providers.md"
PYTHON = Path(os.environ.get("EVENFLOW_TEST_PROVIDERS", "/nowhere"))

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("airflow"),
    pytest.mark.skipif(not PYTHON.exists(), reason="EVENFLOW_TEST_PROVIDERS names no Python with all providers"),
]


def _told() -> dict[str, tuple[str, str]]:
    """Version and run of each provider, as the page has them."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text(encoding="utf-8").splitlines()]
    return {row[0].strip("`"): (row[1], row[2]) for row in rows if len(row) == 3 and row[0].startswith("`")}


@pytest.fixture(scope="module")
def loaded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run_inside(PYTHON, "load_files.py", str(HERE)).splitlines()[-1])
    return found


def test_those_of_the_page_load_in_the_version_that_it_says(loaded: dict[str, Any]) -> None:
    assert loaded["loads"]["error"] == ""
    asked = "import json, sys; from importlib.metadata import version; print(json.dumps([version(n) for n in sys.argv[1:]]))"
    told = _told()
    names = [f"apache-airflow-providers-{name}" for name in told]
    versions = subprocess.run([PYTHON, "-c", asked, *names], capture_output=True, text=True, check=True).stdout
    assert dict(zip(told, json.loads(versions), strict=True)) == {name: row[0] for name, row in told.items()}
    assert loaded["loads"]["dags"].keys() == told.keys()


def test_names_that_providers_no_longer_have(loaded: dict[str, Any]) -> None:
    assert loaded["old_names"]["error"] == ""
    assert len(loaded["old_names"]["dags"]["old_names"]["tasks"]) == 6


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    with subprocess.Popen(
        [PYTHON, INSIDE / "play_servers.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as servers:
        assert servers.stdout is not None
        yield json.loads(servers.stdout.readline())
        assert servers.stdin is not None
        servers.stdin.close()


@pytest.fixture(scope="module")
def clouds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with played(tmp_path_factory.mktemp("clouds")) as there:
        yield there


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with kubernetes() as there:
        yield there


def _connections(ports: dict[str, int], clouds: Played, cluster: Cluster) -> dict[str, Any]:
    ssh = {"host": "127.0.0.1", "port": ports["ssh"], "login": "me", "password": "any"}
    aws = {"endpoint_url": f"http://127.0.0.1:{ports['aws']}", "region_name": "eu-central-1"}
    of_cluster = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{cluster.port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "default"}}],
        "current-context": "x",
    }
    snowflake = {"account": "me", "authenticator": "programmatic_access_token"}
    return {
        "web": f"http://127.0.0.1:{ports['web']}",
        "aws": {"conn_type": "aws", "login": "key", "password": "secret", "extra": aws},
        "slack": {"conn_type": "slackwebhook", "password": f"http://127.0.0.1:{ports['web']}/services/T/B/X"},
        "host": {"conn_type": "ssh", **ssh, "extra": {"no_host_key_check": True}},
        "spark": {"conn_type": "spark", "host": "local[1]"},
        "files": {"conn_type": "sftp", **ssh, "extra": {"no_host_key_check": True}},
        "cluster": {"conn_type": "kubernetes", "extra": {"kube_config": json.dumps(of_cluster), "namespace": "default"}},
        "dbt": {"conn_type": "dbt_cloud", "login": "1", "password": "token", "host": f"127.0.0.1:{clouds.secure_port}"},
        "databricks": {
            "conn_type": "databricks",
            "schema": "http",
            "host": "127.0.0.1",
            "port": clouds.port,
            "password": "token",
        },
        "snowflake": {"conn_type": "snowflake", "login": "me", "password": "token", "extra": snowflake},
        "google": {"conn_type": "google_cloud_platform", "extra": {"is_anonymous": True, "project": "p"}},
    }


async def _connect(running: RunningEvenflow, connections: dict[str, Any]) -> None:
    async with RestClient(running.api_url, running.token) as api:
        for name, text in connections.items():
            await api.set_connection(name, uri=text if isinstance(text, str) else json.dumps(text))


@pytest.fixture(scope="module")
def running(ports: dict[str, int], clouds: Played, cluster: Cluster) -> Iterator[RunningEvenflow]:
    environment = {
        "EVENFLOW_ENVIRONMENTS": json.dumps({"providers": str(PYTHON)}),
        "EVENFLOW_DAGS_ENVIRONMENT": "providers",
        "PATH": f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}",  # with spark-submit
        "EVENFLOW_PARSE_TIMEOUT": "200",  # all providers at once
        **clouds.environment,
    }
    with running_evenflow(**environment) as running:
        asyncio.run(_connect(running, _connections(ports, clouds, cluster)))
        (running.dags / "runs.py").write_text((HERE / "runs.py").read_text())
        wait_until(
            lambda: "run_sftp" in running.evenflow("dags", "list", "--json").stdout or "cannot be loaded" in running.log,
            lambda: running.log,
            within_s=400,
        )
        assert "cannot be loaded" not in running.log, running.log
        yield running


def _run(running: RunningEvenflow, name: str, run_id: str = "one") -> None:
    """To its success."""
    dag_id = f"run_{name}"
    running.evenflow("runs", "trigger", dag_id, "--run-id", run_id)

    def state() -> str:
        return str(json.loads(running.evenflow("runs", "show", dag_id, "--run", run_id, "--json").stdout)["state"])

    wait_until(lambda: state() in ("success", "failed"), f"the end of the run of {dag_id}", within_s=400)
    shown = json.loads(running.evenflow("tasks", "list", dag_id, "--run", run_id, "--json").stdout)["tasks"]
    logs = [
        running.evenflow("tasks", "logs", dag_id, task["task_id"], "--run", run_id).stdout
        for task in shown
        if task["state"] == "failed"
    ]
    assert state() == "success", "\n".join(logs)


_RUN = [name for name, (_, run) in _told().items() if not run.startswith("not run")]


@pytest.mark.parametrize("name", [name for name in _RUN if name != "postgres"])
def test_one_whose_other_side_is_here_runs(running: RunningEvenflow, name: str) -> None:
    _run(running, name)


def test_a_pod_that_a_task_waits_for_without_a_slot_resumes_it_directly(running: RunningEvenflow, cluster: Cluster) -> None:
    """R-AF3: its own trigger waits in a triggerer; no selection stands between its event and the next process of the task."""
    _run(running, "cncf-kubernetes", "two")
    for task_id in ("deferred", "logged"):
        log = running.evenflow("tasks", "logs", "run_cncf-kubernetes", task_id, "--run", "two").stdout
        assert "two ends" in log
    events = asyncio.run(_events(running, "run_cncf-kubernetes", "two", "deferred"))
    assert events == ["grant", "start", "defer", "resume", "start", "succeed"]
    assert not [pod for pod in cluster.objects() if "deletionTimestamp" not in pod["metadata"]], "they are deleted when they end"


async def _events(running: RunningEvenflow, dag_id: str, run_id: str, task_id: str) -> list[str]:
    async with RestClient(running.api_url, running.token) as api:
        return [entry.event for entry in (await api.list_task_events(dag_id, run_id, task_id)).items]


def test_links_of_a_provider_are_told(running: RunningEvenflow) -> None:
    """R-AF1: as its operators name them."""
    _run(running, "databricks", "linked")
    told = running.evenflow("tasks", "links", "run_databricks", "submit", "--run", "linked", "--json").stdout
    ((name, url),) = json.loads(told)["links"].items()
    assert name == "See Databricks Job Run"
    assert url.startswith("https://databricks.example/#job/1/run/")


def test_postgres_runs(running: RunningEvenflow, database_url: str) -> None:
    asyncio.run(_connect(running, {"warehouse": database_url.replace("postgresql://", "postgres://")}))
    _run(running, "postgres")
