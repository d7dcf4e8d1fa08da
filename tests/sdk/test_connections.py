from __future__ import annotations

from typing import Any

import pytest

from evenflow import Connection, Variable, get_connection
from evenflow.errors import BadArgument, ConnectionNotFound
from evenflow.sdk.secrets.connections import env_name


@pytest.mark.parametrize(
    ("uri", "parts"),
    [
        ("sc://host:15002", {"scheme": "sc", "host": "host", "port": 15002}),
        ("spark-local://?cores=2&x=", {"scheme": "spark-local", "extra": {"cores": "2", "x": ""}}),
        ("local[2]", {}),
        (
            "postgresql://me:p%40ss@db/sales",
            {"scheme": "postgresql", "login": "me", "password": "p@ss", "host": "db", "path": "sales"},
        ),
    ],
)
def test_a_connection_is_a_uri_in_the_environment(monkeypatch: pytest.MonkeyPatch, uri: str, parts: dict[str, Any]) -> None:
    monkeypatch.setenv("EVENFLOW_CONN_MY_DB", uri)
    assert get_connection("my-db") == Connection(conn_id="my-db", uri=uri, **parts)


def test_what_is_not_defined_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_CONN_OTHER", "x://y")
    with pytest.raises(ConnectionNotFound) as raised:
        get_connection("my_db")
    assert str(raised.value) == (
        "Connection 'my_db' is not defined (this host defines: other). Add my_db = \"scheme://host:port\" under [connections] in "
        "evenflow.toml, or type: export EVENFLOW_CONN_MY_DB=scheme://host:port. The database was not asked, for no task is "
        "running: use it inside a task, or in a template as {{ conn.my_db }}"
    )


def test_what_was_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-CS10"""
    monkeypatch.setenv("EVENFLOW_CONN_MY_DB", "x://y")
    with pytest.raises(ConnectionNotFound, match=r"\. Did you mean 'my_db'\? Add my_bd = "):
        get_connection("my_bd")


def test_a_broken_uri_does_not_show_its_password() -> None:
    with pytest.raises(ConnectionNotFound) as raised:
        Connection.parse("db", "postgresql://me:secret@host:port/x")
    assert "Connection 'db' is not a URI" in str(raised.value)
    assert str(raised.value).endswith("Write scheme://login:password@host:port/path?key=value")
    assert "secret" not in str(raised.value)


def test_neither_does_a_repr() -> None:
    assert "secret" not in repr(Connection.parse("db", "postgresql://me:secret@host/x?key=secret"))


def test_ids_become_names_of_the_environment() -> None:
    assert env_name("my-db.1") == "EVENFLOW_CONN_MY_DB_1"


def test_the_default_of_a_variable_has_airflow_3s_name() -> None:
    with pytest.raises(BadArgument, match=r"Type: Variable.get\('env', default='x'\)"):
        Variable.get("env", default_var="x")
