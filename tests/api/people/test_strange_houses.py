"""R-AF1: databases of an Airflow whose rows cannot be read: what can be read comes, the rest is named, and no secret is shown."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from evenflow.cli.from_airflow.database import read_house
from evenflow.cli.from_airflow.fernet import Keys
from evenflow.cli.from_airflow.moving import Moving
from evenflow.client.rest import RestClient
from evenflow.errors import DatabaseUnavailable, ParamError
from evenflow.runtime.embedded import EmbeddedPostgres

TABLES = """
create table dag_bundle (name text);
create table job (latest_heartbeat, job_type, state);
create table backfill (id, dag_id, completed_at);
create table connection (conn_id, conn_type, host, "schema", login, password, port, extra, description, is_encrypted,
    is_extra_encrypted);
create table dag (dag_id, is_paused, next_dagrun, is_stale);
create table dag_run (dag_id, run_type, logical_date, state);
create table slot_pool (pool, slots, description, include_deferred);
create table variable (key, val, description, is_encrypted);
"""
ROWS = """
insert into connection (conn_id, conn_type, host, password, port) values
    ('bad_port', 'http', 'h', 'p', 'open-sesame'), ('good', 'http', 'h', 'p', 80);
insert into connection (conn_id, conn_type, extra) values ('deep', 'http', replace(hex(zeroblob(50000)), '0', '['));
insert into variable (key, val, is_encrypted) values
    ('blob', x'ff00', 0), ('bytes', cast(x'6f70656e2d736573616d65ff' as text), 0), ('good', 'x', 0), ('number', 7, 0),
    ('sealed', 7, 1), (null, 'x', 0), (x'ff', 'x', 0), (cast(x'ff' as text), 'x', 0);
insert into slot_pool values ('good', 3, '', 0), ('many', 'open-sesame', '', 0), ('wide', 99999999999, '', 0);
"""


def _house(folder: Path, rows: str) -> str:
    with closing(sqlite3.connect(folder / "airflow.db")) as conn:
        conn.executescript(TABLES + rows)
    return f"sqlite:///{folder}/airflow.db"


async def test_rows_that_cannot_be_read_are_left_and_the_others_come(rest: RestClient, tmp_path: Path) -> None:
    key = "A" * 43 + "="
    moved = await Moving(rest, Keys(key), writes=True, overwrites=False).move(read_house(_house(tmp_path, ROWS)))
    assert sorted((each.kind, each.name) for each in moved if each.fate == "moved") == [
        ("connection", "good"),
        ("pool", "good"),
        ("variable", "good"),
    ]
    assert len([each for each in moved if each.fate == "left"]) == 11
    assert "open-sesame" not in str(moved)
    str(moved).encode()


@pytest.mark.parametrize("date", ["soon", "0001-01-01 00:00:00", 7])
def test_a_date_that_is_none_is_told(tmp_path: Path, date: str | int) -> None:
    dsn = _house(tmp_path, f"insert into dag values ('d', 0, {date!r}, 0);")
    with pytest.raises(ParamError, match="cannot be read"):
        read_house(dsn)


def test_a_table_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match="no such table: backfill"):
        read_house(_house(tmp_path, "drop table backfill;"))


def test_a_house_in_no_encoding_is_read_and_a_date_without_end_is_told(postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as conn:
        conn.execute("create database odd encoding 'SQL_ASCII' locale_provider 'libc' locale 'C' template template0")
    with psycopg.connect(postgres.url("odd"), autocommit=True, client_encoding="utf8") as conn:
        for table in filter(None, map(str.strip, TABLES.split(";"))):
            name, _, columns = table.removeprefix("create table ").partition(" ")
            named = ", ".join(f"{each.split()[0]} text" for each in columns.strip("()").split(","))
            conn.execute(f"create table {name} ({named})".encode())
        for name, kind in (("is_stale", "boolean"), ("next_dagrun", "timestamptz")):
            conn.execute(f"alter table dag alter {name} type {kind} using null".encode())
        conn.execute("insert into variable (key, val) values ('\u00fc', 'x')")
        assert [row["key"] for row in read_house(postgres.url("odd")).variables] == ["\u00fc"]
        conn.execute("insert into dag values ('d', 'f', 'infinity', false)")
        with pytest.raises(ParamError, match="cannot be read"):
            read_house(postgres.url("odd"))
