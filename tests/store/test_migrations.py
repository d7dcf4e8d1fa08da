"""The migrations reach ``schema.sql``, the database's enums are those of ``core/states.py``, and a wrong schema is named."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any

import psycopg
import pytest

from evenflow.core.states import RunState, TaskState
from evenflow.errors import DatabaseNotMigrated, DatabaseTooNew
from evenflow.store.connect import UNBOUNDED, connect
from evenflow.store.migrate import SCHEMA_VERSION, check, migrate, migrations, version

# Everything that a schema consists of, as text, whatever its object ids are.
CATALOG = {
    "tables": """
        select c.relname, c.relkind, c.relpersistence, c.reloptions, pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid)
        from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm') order by 1""",
    "columns": """
        select c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
               pg_get_expr(d.adbin, d.adrelid)
        from pg_class c join pg_attribute a on a.attrelid = c.oid left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm') and a.attnum > 0 and not a.attisdropped
        order by 1, 2""",
    "constraints": """
        select conrelid::regclass::text, conname, pg_get_constraintdef(oid)
        from pg_constraint where connamespace = 'public'::regnamespace order by 1, 2""",
    "indexes": "select indexname, indexdef from pg_indexes where schemaname = 'public' order by 1",
    "sequences": """
        select sequencename, data_type::text, start_value, min_value, max_value, increment_by, cycle, cache_size
        from pg_sequences where schemaname = 'public' order by 1""",
    "enums": """
        select t.typname, e.enumlabel from pg_type t join pg_enum e on e.enumtypid = t.oid
        where t.typnamespace = 'public'::regnamespace order by 1, e.enumsortorder""",
    "functions": "select pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace order by 1",
    "triggers": "select tgrelid::regclass::text, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal order by 1, 2",
    "views": "select viewname, definition from pg_views where schemaname = 'public' order by 1",
    "pools": "select * from pool order by 1",
    "limits": "select kind, run_key, name, capacity, used from concurrency_limit order by 1, 2, 3",
    "settings": "select name, value from setting order by 1",
}


def describe(conn: psycopg.Connection[Any]) -> dict[str, list[Any]]:
    return {what: conn.execute(query).fetchall() for what, query in CATALOG.items()}


def enum_labels(conn: psycopg.Connection[Any], enum: str) -> list[str]:
    return [label for (label,) in conn.execute("select unnest(enum_range(null::%s))::text" % enum)]  # noqa: UP031


def test_migrations_reach_schema_sql(db: psycopg.Connection[Any], empty_database_url: str) -> None:
    with connect(empty_database_url, name="test", timeouts=UNBOUNDED) as at_once:
        at_once.execute((files("evenflow.store") / "schema.sql").read_bytes())
        expected, reached = describe(at_once), describe(db)
    for what in CATALOG:
        assert reached[what] == expected[what], f"{what} differ: write a migration that makes what schema.sql says"


def test_versions_run_from_one_without_a_gap() -> None:
    assert [migration.version for migration in migrations()] == list(range(1, SCHEMA_VERSION + 1))


def test_enums_are_those_of_the_state_machine(db: psycopg.Connection[Any]) -> None:
    assert enum_labels(db, "task_state") == list(TaskState)
    assert enum_labels(db, "run_state") == list(RunState)


def test_each_migration_is_recorded_and_applied_once(empty_database_url: str) -> None:
    with connect(empty_database_url, name="test", timeouts=UNBOUNDED) as conn:
        assert version(conn) == 0
        assert migrate(conn) == list(migrations())
        assert migrate(conn) == []
        assert version(conn) == SCHEMA_VERSION
        recorded = conn.execute("select version, name from schema_version order by 1").fetchall()
    assert recorded == [(migration.version, migration.name) for migration in migrations()]


def test_many_may_migrate_at_once(empty_database_url: str) -> None:
    def migrate_once(_: int) -> int:
        with connect(empty_database_url, name="test", timeouts=UNBOUNDED) as conn:
            return len(migrate(conn))

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(migrate_once, range(4))) == len(migrations())


def test_a_database_that_is_not_migrated_says_what_to_type(empty_database_url: str) -> None:
    with connect(empty_database_url, name="test") as conn, pytest.raises(DatabaseNotMigrated) as caught:
        check(conn)
    assert str(caught.value) == (
        f"The database is at schema version 0, this Evenflow needs {SCHEMA_VERSION}. Type: evenflow db migrate"
    )


def test_a_database_of_a_newer_evenflow_is_refused(db: psycopg.Connection[Any]) -> None:
    check(db)
    db.execute("insert into schema_version (version, name) values (%s, 'future')", [SCHEMA_VERSION + 1])
    for refuse in (check, migrate):
        with pytest.raises(DatabaseTooNew, match=f"newer than the {SCHEMA_VERSION} that this Evenflow knows. Upgrade Evenflow"):
            refuse(db)
