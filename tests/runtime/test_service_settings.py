"""What travels from the command line to a service, and what must not."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenflow.core.bundle import BundleSource
from evenflow.core.service import ServiceKind
from evenflow.errors import SettingsError
from evenflow.runtime.compose import build_service
from evenflow.runtime.service_settings import ServiceSettings, command_of
from evenflow.telemetry.health import HealthMonitor
from evenflow.worker.service import WorkerService

SETTINGS = ServiceSettings(
    home=Path("/home"),
    name="worker-1",
    database_url="postgresql://me:open-sesame@host/db",
    api_url="http://127.0.0.1:8974",
    token="a.b.c",
    api_host="127.0.0.1",
    api_port=8974,
    sources=(
        BundleSource(name="dags-1", folder="/dags", environment="airflow"),
        BundleSource(name="etl", git="https://host/etl.git", refresh=5.0),
    ),
    environments={"airflow": "/opt/airflow/bin/python"},
    parse_timeout=30.0,
    parse_memory=1024,
    slots=4,
    resume_slots=1,
    template_memory=64,
    reuse_tries=7,
    reuse_age=60.0,
    reuse_memory=32,
    queues=("default", "spark"),
    capacity=100,
    trigger_queues=(),
    log_level="info",
    log_format="json",
    drain_timeout=30.0,
)


def test_logs_show_no_credentials_of_addresses() -> None:
    """R-SE4: those of a cluster and of each broker, as they are written and as they are sent."""
    settings = replace(
        SETTINGS, kubernetes="kubernetes://:one@h/?namespace=n&token=two%2F", celery_broker="redis://:three@a;redis://:fo%2Fur@b"
    )
    assert {"open-sesame", "one", "two/", "two%2F", "three", "fo/ur", "fo%2Fur"} <= set(settings.secrets)


@pytest.mark.parametrize("kind", ServiceKind)
def test_a_service_reads_what_the_command_line_wrote(kind: ServiceKind) -> None:
    read = ServiceSettings.from_environment(SETTINGS.environment(kind, {}))
    for name in (
        "home",
        "name",
        "api_url",
        "api_host",
        "api_port",
        "sources",
        "environments",
        "slots",
        "resume_slots",
        "queues",
        "capacity",
        "trigger_queues",
    ):
        assert getattr(read, name) == getattr(SETTINGS, name)


@pytest.mark.parametrize("kind", [kind for kind in ServiceKind if kind.runs_user_code])
def test_what_runs_user_code_gets_no_database(kind: ServiceKind) -> None:
    inherited = {"EVENFLOW_DATABASE_URL": SETTINGS.database_url, "EVENFLOW_TOKEN": "of the operator", "PATH": "/bin"}
    environment = SETTINGS.environment(kind, inherited)
    assert "open-sesame" not in "\n".join(environment.values())
    assert environment["EVENFLOW_TOKEN"] == "a.b.c"
    assert environment["PATH"] == "/bin"


def test_what_has_the_database_gets_no_token() -> None:
    for kind in (kind for kind in ServiceKind if not kind.runs_user_code):
        assert "EVENFLOW_TOKEN" not in SETTINGS.environment(kind, {"EVENFLOW_TOKEN": "x"})


def test_connections_reach_tasks() -> None:
    connection = {"EVENFLOW_CONN_SPARK_DEFAULT": "local[2]"}
    assert SETTINGS.environment(ServiceKind.WORKER, connection)["EVENFLOW_CONN_SPARK_DEFAULT"] == "local[2]"


@pytest.mark.parametrize("kind", [kind for kind in ServiceKind if kind.runs_user_code])
def test_without_a_token_it_says_how_to_get_one(kind: ServiceKind) -> None:
    environment = SETTINGS.environment(kind, {}) | {"EVENFLOW_TOKEN": ""}
    with pytest.raises(SettingsError, match=f"evenflow tokens create {kind}. Then set EVENFLOW_TOKEN"):
        build_service(kind, ServiceSettings.from_environment(environment), HealthMonitor(kind, "w"))


@pytest.mark.parametrize(("told", "resumes"), [({}, 1), ({"handed_at": "/run/handed"}, 1), ({"only_try": 7, "slots": 1}, 0)])
def test_a_worker_has_slots_for_resumes_unless_it_is_for_one_try(told: dict[str, Any], resumes: int, tmp_path: Path) -> None:
    """R-DQ3: those of a worker that is handed its tries come on top of the places of Celery's pool."""
    settings = ServiceSettings.from_environment(replace(SETTINGS, home=tmp_path, **told).environment(ServiceKind.WORKER, {}))
    worker = build_service(ServiceKind.WORKER, settings, HealthMonitor(ServiceKind.WORKER, "w"))
    assert isinstance(worker, WorkerService)
    assert worker._resume_slots == resumes


def test_only_who_seals_gets_the_keys_and_only_user_code_the_connections() -> None:
    """An API, and a launcher, which makes the tokens of pods."""
    settings = replace(SETTINGS, secret_keys="key-of-the-vault")
    inherited = {"EVENFLOW_SECRET_KEYS": "x", "EVENFLOW_CONN_DB": "x://", "EVENFLOW_VAR_A": "1"}
    inherited["EVENFLOW_SECRETS_DIR"] = "/run/secrets"
    for kind in ServiceKind:
        environment = settings.environment(kind, inherited)
        assert environment.get("EVENFLOW_SECRET_KEYS") == (
            "key-of-the-vault" if kind in (ServiceKind.API, ServiceKind.LAUNCHER) else None
        )
        for name in ("EVENFLOW_CONN_DB", "EVENFLOW_VAR_A", "EVENFLOW_SECRETS_DIR"):
            assert (name in environment) is (kind.runs_user_code)


@pytest.mark.parametrize("kind", ServiceKind)
def test_no_module_beside_dag_files_is_a_services(kind: ServiceKind, tmp_path: Path) -> None:
    """R-CS1: a file of an author, named as a library is, would else run in the scheduler. Each stops for want of its settings."""
    for name in ("attr", "msgspec"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EVENFLOW_")}
    done = subprocess.run(command_of(kind), cwd=tmp_path, env=clean, capture_output=True, timeout=60, check=False)
    assert done.returncode != 0
    assert not (tmp_path / "ran").exists()
