"""R-AF1: a file that asks for Evenflow's variables and connections at its top is loaded by a real processor and a real worker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import RunningEvenflow, running_evenflow
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.timeout(900), pytest.mark.xdist_group("airflow")]

FILE = """
from airflow.hooks.base import BaseHook
from airflow.models import Variable
from airflow.sdk import DAG, task

REGION = Variable.get("region")
TEAM = Variable.get("team", default_var="nobody's")
LONG = Variable.get("long")
HOST = BaseHook.get_connection("warehouse").host
PASSWORD = BaseHook.get_connection("warehouse").password

with DAG("asking", tags=[REGION]):

    @task
    def told() -> None:
        print(f"region={REGION} team={TEAM} long={len(LONG)} host={HOST} password={PASSWORD}")

    told()
"""
RULED = "from airflow.sdk import DAG, Variable\n\nwith DAG('ruled', tags=[Variable.get('ruled', default='x')]):\n    pass\n"
LONG = '"\\ü🚀' * 6_000


@pytest.fixture(scope="module")
def running(airflow_python: Path) -> Iterator[RunningEvenflow]:
    environments = {"EVENFLOW_ENVIRONMENTS": json.dumps({"airflow": str(airflow_python)}), "EVENFLOW_DAGS_ENVIRONMENT": "airflow"}
    with running_evenflow(**environments) as running:
        yield running


def _asked(running: RunningEvenflow, *arguments: str) -> str:
    done = running.evenflow(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _set(running: RunningEvenflow, kind: str, name: str, text: str, *options: str) -> None:
    file = running.home / "value.txt"
    file.write_text(text)
    _asked(running, kind, "set", name, "--file", str(file), *options)


def _errors(running: RunningEvenflow) -> str:
    return json.dumps(json.loads(_asked(running, "dags", "list", "--json"))["parse_errors"])


def _tags(running: RunningEvenflow) -> list[str]:
    return [tag for dag in json.loads(_asked(running, "dags", "list", "--json"))["dags"] for tag in dag["tags"]]


def _log(running: RunningEvenflow, run_id: str) -> str:
    _asked(running, "runs", "trigger", "asking", "--run-id", run_id)

    def ended() -> bool:
        return json.loads(_asked(running, "runs", "show", "asking", "--run", run_id, "--json"))["state"] in ("success", "failed")

    wait_until(ended, f"the end of {run_id}", within_s=400)
    return _asked(running, "tasks", "logs", "asking", "told", "--run", run_id)


def test_a_file_gets_them_where_it_is_loaded_and_what_changes_is_followed(running: RunningEvenflow) -> None:
    """Also by a warm template of a worker; what is secret shows nowhere."""
    (running.dags / "asking.py").write_text(FILE)
    (running.dags / "ruled.py").write_text(RULED)
    _set(running, "variables", "ruled", "y", "--dag", "ruled")
    wait_until(lambda: "evenflow variables set region" in _errors(running), "the file's error", within_s=400)
    assert "evenflow variables set region" in _asked(running, "dags", "sources")
    wait_until(lambda: "The variable 'ruled' is for certain DAGs only" in _errors(running), "the other's", within_s=100)

    _set(running, "variables", "long", LONG)
    _set(running, "connections", "warehouse", "postgresql://etl:open-sesame@db-host/sales")
    _set(running, "variables", "region", "eu")
    wait_until(lambda: _tags(running) == ["eu"], "the DAG", within_s=100)
    log = _log(running, "one")
    assert f"region=eu team=nobody's long={len(LONG)} host=db-host password=***" in log

    _set(running, "variables", "region", "us")
    _set(running, "variables", "team", "ours")
    wait_until(lambda: _tags(running) == ["us"], "the DAG as it is now", within_s=100)
    runs = iter(range(100))
    wait_until(lambda: "region=us team=ours" in _log(running, f"later-{next(runs)}"), "a try in a new template", within_s=200)

    _asked(running, "variables", "allow", "ruled")
    wait_until(lambda: sorted(_tags(running)) == ["us", "y"], "the other DAG", within_s=100)
    events = _asked(running, "events", "--json")
    assert "DAG file asking.py" in events
    assert "open-sesame" not in events + running.log + _errors(running)
