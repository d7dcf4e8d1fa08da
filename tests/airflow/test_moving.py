"""R-AF1: what an Airflow keeps in its database is brought here. The databases are made by a real Airflow, one on SQLite and one on
PostgreSQL.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography.fernet import Fernet

from evenflow.runtime.embedded import EmbeddedPostgres
from tests.airflow.conftest import INSIDE
from tests.running import RunningEvenflow, evenflow, running_evenflow
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.timeout(900), pytest.mark.xdist_group("airflow")]

KEY = Fernet.generate_key().decode()
NIGHTLY = """\
from datetime import UTC, datetime
from {sdk} import DAG, {operator}

with DAG("nightly", schedule="@daily", start_date=datetime(2026, 11, 1, tzinfo=UTC), catchup=True):
    EmptyOperator(task_id="only")
"""
ITS = NIGHTLY.format(sdk="airflow.sdk", operator="").replace(
    "DAG, \n", "DAG\nfrom airflow.providers.standard.operators.empty import EmptyOperator\n"
)
OURS = NIGHTLY.format(sdk="evenflow", operator="EmptyOperator")


def _make_house(python: Path, home: Path, dsn: str) -> None:
    folder = home / "airflow-dags"
    folder.mkdir()
    (folder / "nightly.py").write_text(ITS)
    environ = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__FERNET_KEY": KEY,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": dsn,
    }
    airflow = [[python.parent / "airflow", "db", "migrate"], [python, INSIDE / "make_house.py", folder]]
    for command in airflow:
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@pytest.fixture(scope="module")
def running() -> Iterator[RunningEvenflow]:
    """New DAGs are paused; this one is that of the house."""
    with running_evenflow() as running:
        assert running.evenflow("settings", "set", "dags_are_paused_at_creation", "true").returncode == 0
        (running.dags / "nightly.py").write_text(OURS)
        wait_until(lambda: '"nightly"' in running.evenflow("dags", "list", "--json").stdout, "the DAG")
        yield running


def _moved(running: RunningEvenflow, *options: str, **settings: str) -> dict[tuple[str, str], tuple[str, str]]:
    done = evenflow(running.home, "migrate", "from-airflow", *options, "--json", **settings)
    assert done.stdout, done.stderr
    assert "open-sesame" not in done.stdout + done.stderr
    return {(each["kind"], each["name"]): (each["fate"], each["why"]) for each in json.loads(done.stdout)["moved"]}


def _shown(running: RunningEvenflow, *arguments: str) -> Any:
    return json.loads(running.evenflow(*arguments, "--json").stdout)


def test_a_house_on_sqlite_moves(airflow_python: Path, running: RunningEvenflow, tmp_path: Path) -> None:
    dsn = f"sqlite:///{tmp_path}/airflow.db"
    _make_house(airflow_python, tmp_path, dsn)
    (tmp_path / "key").write_text(KEY)

    without = _moved(running, "--dsn", dsn)
    assert without["connection", "shop"][0] == "left"
    assert "AIRFLOW__CORE__FERNET_KEY" in without["connection", "shop"][1]

    options = ("--dsn", dsn, "--fernet-key-file", str(tmp_path / "key"))
    dry = _moved(running, *options)
    fates = {place: fate for place, (fate, _) in dry.items()}
    assert fates == {
        ("connection", "shop"): "moved",
        ("variable", "api_password"): "moved",
        ("pool", "default_pool"): "kept",
        ("pool", "narrow"): "moved",
        ("pool", "wide"): "moved",
        ("dates", "nightly"): "moved",
        ("pause", "nightly"): "moved",
        ("runs", "nightly"): "left",
    }
    assert _shown(running, "connections", "list")["connections"] == [], "nothing is written without --write"

    assert _moved(running, *options, "--write") == dry
    assert _shown(running, "connections", "show", "shop", "--reveal")["uri"] == (
        "postgres://me:open-sesame@db:5432/orders?sslmode=require"
    )
    assert _shown(running, "variables", "show", "api_password", "--reveal")["value"] == "hush"
    pools = {pool["name"]: (pool["slots"], pool["while_deferred"]) for pool in _shown(running, "pools", "list")["pools"]}
    assert pools["narrow"] == (3, "hold")
    assert pools["wide"] == (2**31 - 1, "release")

    def first() -> str:
        runs = _shown(running, "runs", "list", "--limit", "100")["runs"]
        return min((run["logical_date"] for run in runs), default="")

    assert str(wait_until(first, "the first run")).startswith("2026-11-04"), "the three that were run there count as done"
    again = _moved(running, *options, "--write")
    assert {fate for fate, _ in (again["connection", "shop"], again["variable", "api_password"], again["pool", "wide"])} == {"kept"}
    assert ("pause", "nightly") not in again


def test_a_house_on_postgresql_is_read(
    airflow_python: Path, running: RunningEvenflow, tmp_path: Path, postgres: EmbeddedPostgres
) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as conn:
        conn.execute("create database house")
    dsn = _sqlalchemy(postgres.url("house"))
    _make_house(airflow_python, tmp_path, dsn)
    with psycopg.connect(postgres.url("house"), autocommit=True) as conn:
        conn.execute("insert into job (job_type, state, latest_heartbeat) values ('SchedulerJob', 'running', now())")
    moved = _moved(running, AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=dsn, AIRFLOW__CORE__FERNET_KEY=KEY)
    assert moved["connection", "shop"][0] in ("moved", "kept")
    assert moved["dates", "nightly"] == ("moved", "up to 2026-11-03T23:59:59+00:00 they are done")
    running.evenflow("dags", "pause", "nightly")
    fate, why = _moved(running, AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=dsn, AIRFLOW__CORE__FERNET_KEY=KEY)["pause", "nightly"]
    assert (fate, "scheduler of Airflow's runs" in why) == ("left", True), "both would run it"


def _sqlalchemy(url: str) -> str:
    """The URL of the tests' server as Airflow writes it."""
    return url.replace("postgresql://", "postgresql+psycopg2://", 1)
