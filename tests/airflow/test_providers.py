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


@pytest.fixture
def ports() -> Iterator[dict[str, int]]:
    with subprocess.Popen(
        [PYTHON, INSIDE / "play_servers.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as servers:
        assert servers.stdout is not None
        yield json.loads(servers.stdout.readline())
        assert servers.stdin is not None
        servers.stdin.close()


async def _connect(running: RunningEvenflow, connections: dict[str, str]) -> None:
    async with RestClient(running.api_url, running.token) as api:
        for name, uri in connections.items():
            await api.set_connection(name, uri=uri)


def test_those_whose_other_side_is_here_run(ports: dict[str, int], database_url: str) -> None:
    environments = json.dumps({"providers": str(PYTHON)})
    ssh = {"host": "127.0.0.1", "port": ports["ssh"], "login": "me", "password": "any"}
    aws = {"endpoint_url": f"http://127.0.0.1:{ports['aws']}", "region_name": "eu-central-1"}
    slack = {"conn_type": "slackwebhook", "password": f"http://127.0.0.1:{ports['web']}/services/T/B/X"}
    connections = {
        "web": f"http://127.0.0.1:{ports['web']}",
        "warehouse": database_url.replace("postgresql://", "postgres://"),
        "aws": json.dumps({"conn_type": "aws", "login": "key", "password": "secret", "extra": aws}),
        "slack": json.dumps(slack),
        "host": json.dumps({"conn_type": "ssh", **ssh, "extra": {"no_host_key_check": True}}),
        "spark": json.dumps({"conn_type": "spark", "host": "local[1]"}),
        "files": json.dumps({"conn_type": "sftp", **ssh, "extra": {"no_host_key_check": True}}),
    }
    path = f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}"  # with spark-submit
    with running_evenflow(EVENFLOW_ENVIRONMENTS=environments, EVENFLOW_DAGS_ENVIRONMENT="providers", PATH=path) as running:
        asyncio.run(_connect(running, connections))
        (running.dags / "runs.py").write_text((HERE / "runs.py").read_text())
        wait_until(lambda: "run_sftp" in running.evenflow("dags", "list", "--json").stdout, "the DAGs", within_s=400)
        for dag_id in (ran := [f"run_{name}" for name, (_, run) in _told().items() if not run.startswith("not run")]):
            running.evenflow("runs", "trigger", dag_id, "--run-id", "one")

        def states() -> dict[str, str]:
            shown = {dag_id: running.evenflow("runs", "show", dag_id, "--run", "one", "--json").stdout for dag_id in ran}
            return {dag_id: json.loads(text)["state"] for dag_id, text in shown.items()}

        wait_until(lambda: set(states().values()) <= {"success", "failed"}, "the ends of the runs", within_s=400)
        assert states() == dict.fromkeys(ran, "success")
