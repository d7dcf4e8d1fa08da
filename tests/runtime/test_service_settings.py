"""What travels from the command line to a service, and what must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.errors import SettingsError
from evenflow.runtime.compose import build_service
from evenflow.runtime.service_settings import RUNS_USER_CODE, Kind, ServiceSettings

SETTINGS = ServiceSettings(
    home=Path("/home"),
    name="worker-1",
    database_url="postgresql://me:open-sesame@host/db",
    api_url="http://127.0.0.1:8974",
    token="a.b.c",
    api_host="127.0.0.1",
    api_port=8974,
    dags=Path("/dags"),
    bundle="dags-1",
    slots=4,
    queues=("default", "spark"),
    log_level="info",
    log_format="json",
    drain_timeout=30.0,
)


@pytest.mark.parametrize("kind", Kind)
def test_a_service_reads_what_the_command_line_wrote(kind: Kind) -> None:
    read = ServiceSettings.from_environment(SETTINGS.environment(kind, {}))
    for name in ("home", "name", "api_url", "api_host", "api_port", "dags", "bundle", "slots", "queues", "drain_timeout"):
        assert getattr(read, name) == getattr(SETTINGS, name)


@pytest.mark.parametrize("kind", sorted(RUNS_USER_CODE))
def test_what_runs_user_code_gets_no_database(kind: Kind) -> None:
    inherited = {"EVENFLOW_DATABASE_URL": SETTINGS.database_url, "EVENFLOW_TOKEN": "of the operator", "PATH": "/bin"}
    environment = SETTINGS.environment(kind, inherited)
    assert "open-sesame" not in "\n".join(environment.values())
    assert environment["EVENFLOW_TOKEN"] == "a.b.c"
    assert environment["PATH"] == "/bin"


def test_what_has_the_database_gets_no_token() -> None:
    for kind in set(Kind) - RUNS_USER_CODE:
        assert "EVENFLOW_TOKEN" not in SETTINGS.environment(kind, {"EVENFLOW_TOKEN": "x"})


def test_connections_reach_tasks() -> None:
    connection = {"EVENFLOW_CONN_SPARK_DEFAULT": "local[2]"}
    assert SETTINGS.environment(Kind.WORKER, connection)["EVENFLOW_CONN_SPARK_DEFAULT"] == "local[2]"


@pytest.mark.parametrize("kind", sorted(RUNS_USER_CODE))
def test_without_a_token_it_says_how_to_get_one(kind: Kind, tmp_path: Path) -> None:
    environment = SETTINGS.environment(kind, {}) | {"EVENFLOW_TOKEN": "", "EVENFLOW_DAGS": str(tmp_path)}
    with pytest.raises(SettingsError, match=f"evenflow tokens create {kind}. Then set EVENFLOW_TOKEN"):
        build_service(kind, ServiceSettings.from_environment(environment))


def test_a_processor_without_a_folder() -> None:
    environment = SETTINGS.environment(Kind.PROCESSOR, {}) | {"EVENFLOW_DAGS": "/nowhere"}
    with pytest.raises(SettingsError, match="The DAG folder /nowhere does not exist"):
        build_service(Kind.PROCESSOR, ServiceSettings.from_environment(environment))
