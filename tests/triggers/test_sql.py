"""Looking at databases: a real PostgreSQL and SQLite, with drivers that the connection names."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import sys
import time
import types
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from evenflow.sdk.secrets.connections import Connection
from evenflow.triggers import limits, sql
from evenflow.triggers.sql import SqlTrigger
from tests.triggers.firing import ControlPlane, event_of

SECRET = "hunter2-hunter2"
COUNT = "select count(*) from orders"


@pytest.fixture
def plane(database_url: str, tmp_path: Path) -> ControlPlane:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("create table orders (id int, note text)")
    with sqlite3.connect(tmp_path / "lite.db") as lite:
        lite.execute("create table orders (id int, note text)")
    lite.close()
    return ControlPlane({"postgres": database_url, "lite": f"sqlite:///{tmp_path}/lite.db"})


def add(plane: ControlPlane, conn_id: str) -> None:
    if conn_id == "postgres":
        with psycopg.connect(plane.connections[conn_id], autocommit=True) as conn:
            conn.execute("insert into orders values (7, null)")
    else:
        with sqlite3.connect(Connection.parse("c", plane.connections[conn_id]).path) as lite:
            lite.execute("insert into orders values (7, null)")
        lite.close()


@pytest.mark.parametrize("conn_id", ["postgres", "lite"])
async def test_first_column(plane: ControlPlane, conn_id: str) -> None:
    trigger = SqlTrigger(conn_id=conn_id, sql="select count(*), max(id), max(note), 'x' from orders", poll_interval=0.1)
    trigger.channel = plane
    assert await trigger.look() is None
    waiting = asyncio.create_task(event_of(trigger, plane))
    add(plane, conn_id)
    assert await waiting == {"status": "success", "row": [1, 7, None, "x"]}


async def test_parameters(plane: ControlPlane) -> None:
    event = await event_of(SqlTrigger(conn_id="postgres", sql="select %(a)s::text", parameters={"a": "é" * 600}), plane)
    assert event["row"] == ["é" * 500]
    assert (await event_of(SqlTrigger(conn_id="lite", sql="select ?", parameters=[3]), plane))["row"] == [3]
    assert (await event_of(SqlTrigger(conn_id="postgres", sql="select '100%' like '%0%'"), plane))["row"] == [True]


async def test_no_row(plane: ControlPlane) -> None:
    trigger = SqlTrigger(conn_id="postgres", sql="select id from orders", fail_on_empty=True)
    event = await event_of(trigger, plane)
    assert event["status"] == "failed"
    assert "answers no row" in event["message"]


async def test_a_look_changes_nothing(plane: ControlPlane) -> None:
    writing = "insert into orders values (1) returning id"
    assert (await event_of(SqlTrigger(conn_id="postgres", sql=writing), plane))["row"] == [1]
    assert (await event_of(SqlTrigger(conn_id="postgres", sql="select 1 + count(*) from orders"), plane))["row"] == [1]


@pytest.mark.parametrize("conn_id", ["postgres", "lite"])
async def test_a_wrong_statement(plane: ControlPlane, conn_id: str) -> None:
    event = await event_of(SqlTrigger(conn_id=conn_id, sql="select 1 from nowhere"), plane)
    assert event["status"] == "failed"
    assert event["message"].startswith(f"The database of connection '{conn_id}' refused the look: ")
    assert "nowhere" in event["message"]


async def test_a_wrong_login(plane: ControlPlane) -> None:
    """The message has no password."""
    parts = urlsplit(plane.connections["postgres"])
    plane.connections["wrong"] = (
        f"postgresql://nobody:{SECRET}@{parts.hostname or 'localhost'}:{parts.port or 5432}/x?{parts.query}"
    )
    event = await event_of(SqlTrigger(conn_id="wrong", sql="select 1", patience=0.0), plane)
    assert event["status"] == "failed"
    assert SECRET not in event["message"]


async def test_a_database_that_is_away() -> None:
    plane = ControlPlane({"away": f"postgresql://u:{SECRET}@127.0.0.1:1/x"})
    event = await event_of(SqlTrigger(conn_id="away", sql="select 1", patience=0.0), plane)
    assert event["status"] == "failed"
    assert event["message"].startswith("The database of connection 'away' does not answer (")
    assert "That has lasted for" in event["message"]
    assert SECRET not in event["message"]


async def test_a_statement_that_takes_long(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended by the server; meanwhile the event loop goes on."""
    quick = {**sql.POSTGRESQL.options, "options": "-c statement_timeout=200"}
    monkeypatch.setitem(sql.DRIVERS, "postgresql", sql.Driver("psycopg", sql.POSTGRESQL.names, quick))
    waiting = asyncio.create_task(event_of(SqlTrigger(conn_id="postgres", sql="select pg_sleep(30)", patience=0.0), plane))
    longest, before = 0.0, time.monotonic()
    while not waiting.done():
        await asyncio.sleep(0.005)
        longest, before = max(longest, time.monotonic() - before), time.monotonic()
    assert "statement timeout" in (await waiting)["message"]
    assert longest < 0.2


async def test_a_dead_database_holds_up_no_other(plane: ControlPlane) -> None:
    """One that accepts connections and says nothing, asked by more triggers than there are threads."""
    with socket.create_server(("127.0.0.1", 0), backlog=300) as silent:
        plane.connections["dead"] = f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/x?connect_timeout=2"
        stuck = [
            asyncio.create_task(event_of(SqlTrigger(conn_id="dead", sql="select 1"), plane)) for _ in range(limits.THREADS + 4)
        ]
        await asyncio.sleep(0)
        assert (await event_of(SqlTrigger(conn_id="postgres", sql="select 1"), plane, within_s=1.5))["status"] == "success"
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("oracle://h/x", "has the scheme 'oracle'; known are mariadb, mysql, postgres, postgresql, sqlite. For another database"),
        ("oracle://h/x?driver=no_such_driver", "Type there: pip install no_such_driver"),
        ("oracle://h/x?driver=json", "names the driver 'json', which is no module of DB-API 2.0."),
    ],
)
async def test_drivers_that_are_none(uri: str, said: str) -> None:
    event = await event_of(SqlTrigger(conn_id="c", sql="select 1"), ControlPlane({"c": uri}))
    assert said in event["message"]


async def test_any_driver_of_db_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given what a connection has under the names that PEP 249 recommends."""
    given: dict[str, Any] = {}
    driver = types.ModuleType("my_driver")

    def connect(**arguments: Any) -> sqlite3.Connection:
        given.update(arguments)
        return sqlite3.connect(":memory:")

    vars(driver).update(apilevel="2.0", connect=connect, Error=sqlite3.Error)
    monkeypatch.setitem(sys.modules, "my_driver", driver)
    plane = ControlPlane({"c": f"any://me:{SECRET}@h:7/shop?driver=my_driver&mode=fast"})
    assert (await event_of(SqlTrigger(conn_id="c", sql="select 1"), plane))["row"] == [1]
    assert given == {"host": "h", "port": 7, "user": "me", "password": SECRET, "database": "shop", "mode": "fast"}
