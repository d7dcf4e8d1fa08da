"""The history pipeline: what its tasks do, by the role and the connection that it has."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql

from evenflow.errors import SettingsError
from evenflow.insights.pipeline import history_pipeline
from evenflow.insights.returning import database, export_and_tell, refine, return_all
from evenflow.insights.tables import RETURNED
from evenflow.runtime.up.history import connection_uri
from evenflow.store.serving.reporting import grant_returning
from tests.insights.decided import decide
from tests.insights.test_export import settle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(1_500)  # as the statements of test_engines


@pytest.fixture
def role(db: psycopg.Connection) -> Iterator[str]:
    name = f"history_{uuid.uuid4().hex[:12]}"
    yield name
    drop = "grant {0} to current_user with inherit true; drop owned by {0}; drop role {0}"
    db.execute(sql.SQL(drop).format(sql.Identifier(name)))


@pytest.fixture
def lake(db: psycopg.Connection, database_url: str, role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the connection of the pipeline says."""
    password = grant_returning(db, role, by="test").password
    assert password is not None
    monkeypatch.setenv("EVENFLOW_CONN_EVENFLOW_HISTORY", connection_uri(database_url, role, password, tmp_path))
    return tmp_path


def read(db: psycopg.Connection, view: str) -> list[dict[str, Any]]:
    rows = db.execute(f"select * from evenflow_reporting_v1.mart_{view}")
    assert rows.description is not None
    return [dict(zip([column.name for column in rows.description], row, strict=True)) for row in rows]


@pytest.mark.spark
def test_history_goes_out_and_its_marts_return(spark: SparkSession, db: psycopg.Connection, lake: Path) -> None:
    """R-SP4: layer by layer, as the tasks do; every view of a mart can be read, and says what the scheduler did."""
    decide(db)
    settle(db)
    with database() as (conn, folder):
        events = export_and_tell(conn, folder)
        assert export_and_tell(conn, folder) == 0
        assert events == db.execute("select (select count(*) from task_event) + (select count(*) from run_event)").fetchone()[0]
        for layer in ("silver", "gold", "proof"):
            refine(spark, layer)
        counts = return_all(conn, folder)
        assert return_all(conn, folder) == counts, "it takes the place of what was there"
    assert {name: len(read(db, name)) for name in RETURNED} == counts
    assert counts["violations"] == 0
    (narrow,) = {(row["capacity"], row["most"]) for row in read(db, "slot_use") if row["name"] == "narrow"}
    assert narrow == (2, 2)
    assert (
        sum(row["tries"] for row in read(db, "costs"))
        == db.execute("select count(*) from evenflow_reporting_v1.tries").fetchone()[0]
    )


def test_the_role_of_the_pipeline_can_do_what_it_needs_and_no_more(db: psycopg.Connection, lake: Path) -> None:
    """R-SE1."""
    with database() as (conn, _):
        conn.execute("select count(*) from evenflow_reporting_v1.task_events")
        for statement in ("select 1 from xcom", "delete from mart", "update setting set value = '1'", "select 1 from token"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(statement)


def test_a_role_of_the_pipeline_has_retention_await_exports(db: psycopg.Connection, lake: Path) -> None:
    """R-SP4."""
    assert db.execute("select value from setting where name = 'retention_awaits_export'").fetchone() == (True,)


def test_an_export_is_told_and_never_goes_back(db: psycopg.Connection, lake: Path, tmp_path: Path) -> None:
    with database() as (conn, folder):
        export_and_tell(conn, folder)
        (past,) = db.execute("select past from exported").fetchone() or (0,)
        assert past > 0
        db.execute("update exported set past = past + 1000000")
        export_and_tell(conn, folder)
    assert db.execute("select past from exported").fetchone() == (past + 1_000_000,)


def test_a_connection_without_a_folder_says_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_CONN_EVENFLOW_HISTORY", "postgresql://role:secret@localhost/evenflow")
    with pytest.raises(SettingsError, match="lake=") as caught, database():
        pass
    assert "secret" not in str(caught.value)


def test_a_history_with_violations_fails_the_pipeline() -> None:
    """R-ST1."""
    history_pipeline.verdict.function({"violations": 0})
    with pytest.raises(RuntimeError, match="3 violations"):
        history_pipeline.verdict.function({"violations": 3})
