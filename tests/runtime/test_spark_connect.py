"""How tasks find the Spark Connect server of their host (R-SP1), and who learns its token."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from evenflow.core.service import ServiceKind
from evenflow.errors import AlreadyRunning, SettingsError
from evenflow.runtime.home import prepare_home
from evenflow.runtime.settings import Settings
from evenflow.runtime.up.spark_connect import SparkConnect, how_to_connect, make_spark_connect
from tests.runtime.test_service_settings import SETTINGS


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    prepare_home(tmp_path)
    return Settings(home=tmp_path, spark_connect_port=0)


def test_the_token_of_a_home_is_for_its_owner_and_stays(settings: Settings) -> None:
    first = make_spark_connect(settings)
    file = settings.home / "spark-connect.token"
    assert (file.stat().st_mode & 0o777, file.read_text().strip()) == (0o600, first.token)
    assert make_spark_connect(settings).token == first.token
    shown = how_to_connect(settings, 15002)
    assert first.token not in shown
    assert str(file) in shown


def test_it_is_the_default_connection_unless_somebody_has_named_another(settings: Settings) -> None:
    server = SparkConnect(15002, "t", Path("/h/spark.log"))
    uri, log = "sc://localhost:15002/?token=t", "&own_log=/h/spark.log"
    of_all = {"spark_default": uri + log, "spark_connect": uri + log}
    assert server.connections(settings, {}) == of_all
    assert server.connections(settings, {"EVENFLOW_CONN_SPARK_DEFAULT": "local"}) == {"spark_connect": uri + log}
    with_ui = SparkConnect(15002, "t", Path("/h/spark.log"), 4040).connections(settings, {})["spark_connect"]
    assert with_ui == f"{uri}&ui=http://127.0.0.1:4040{log}"
    named = settings.model_copy(update={"connections": {"spark_default": "spark://host:7077"}})
    assert server.connections(named, {}) == {"spark_default": "spark://host:7077", "spark_connect": uri + log}


def test_a_port_that_is_taken_is_said_with_another(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AlreadyRunning, match=f"127.0.0.1:{port}: .* EVENFLOW_SPARK_CONNECT_PORT={port + 1}"):
            make_spark_connect(settings.model_copy(update={"spark_connect_port": port}))
        with pytest.raises(AlreadyRunning, match=f"'s Spark UI cannot .* EVENFLOW_SPARK_CONNECT_UI_PORT={port + 1}"):
            make_spark_connect(settings.model_copy(update={"spark_connect_ui_port": port}))


def test_beside_a_sandbox_there_is_none(settings: Settings) -> None:
    """R-SE1: its queries would read what tasks cannot."""
    with pytest.raises(SettingsError, match="EVENFLOW_SANDBOX=landlock does not keep it out"):
        make_spark_connect(settings.model_copy(update={"sandbox": "landlock"}))


def test_only_the_server_itself_gets_its_token_as_a_setting() -> None:
    settings = replace(SETTINGS, spark_connect_token="of-the-server")
    for kind in ServiceKind:
        environment = settings.environment(kind, {})
        assert ("of-the-server" in environment.values()) is (kind is ServiceKind.CONNECT_SERVER)
    assert "EVENFLOW_DATABASE_URL" not in settings.environment(ServiceKind.CONNECT_SERVER, {})
