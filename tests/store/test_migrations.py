"""The migrations reach ``schema.sql``, the database's enums are those of ``core/states.py``, and a wrong schema is named."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any

import psycopg
import pytest

from evenflow.core.states import RunState, TaskState
from evenflow.errors import (
    ContractNeeded,
    DatabaseNotMigrated,
    DatabaseOfDevelopment,
    DatabaseTooNew,
    MigrationBlocked,
    OldServicesRun,
)
from evenflow.store.db import migrate as migrating
from evenflow.store.db.connect import UNBOUNDED, connect
from evenflow.store.db.migrate import (
    FIRST_SCHEMA,
    OLDEST_SCHEMA,
    SCHEMA_VERSION,
    Migration,
    Steps,
    check,
    migrate,
    migrations,
    read_schema,
)

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


def test_versions_run_from_the_first_without_a_gap() -> None:
    assert [migration.version for migration in migrations()] == list(range(FIRST_SCHEMA, SCHEMA_VERSION + 1))


def test_a_database_of_another_development_version_is_refused(db: psycopg.Connection[Any]) -> None:
    """Its tables may differ in anything: it is neither used nor changed."""
    db.execute("update schema_version set name = 'initial_of_another_day'")
    for use in (check, migrate):
        with pytest.raises(DatabaseOfDevelopment, match=r"stop Evenflow and delete the folder postgres in its home"):
            use(db)
    db.execute("update schema_version set version = 5")
    with pytest.raises(DatabaseOfDevelopment):
        check(db)


def test_enums_are_those_of_the_state_machine(db: psycopg.Connection[Any]) -> None:
    assert enum_labels(db, "task_state") == list(TaskState)
    assert enum_labels(db, "run_state") == list(RunState)


def test_each_migration_is_recorded_and_applied_once(empty_database_url: str) -> None:
    with connect(empty_database_url, name="test", timeouts=UNBOUNDED) as conn:
        assert read_schema(conn).version == 0
        assert migrate(conn).applied == list(migrations())
        assert migrate(conn) == ([], [])
        assert read_schema(conn).version == SCHEMA_VERSION
        recorded = conn.execute("select version, name, works_from from schema_version order by 1").fetchall()
    assert recorded == [(migration.version, migration.name, migration.works_from) for migration in migrations()]


def test_many_may_migrate_at_once(empty_database_url: str) -> None:
    def migrate_once(_: int) -> int:
        with connect(empty_database_url, name="test", timeouts=UNBOUNDED) as conn:
            return len(migrate(conn).applied)

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(migrate_once, range(4))) == len(migrations())


def test_a_database_that_is_not_migrated_says_what_to_type(empty_database_url: str) -> None:
    with connect(empty_database_url, name="test") as conn, pytest.raises(DatabaseNotMigrated) as caught:
        check(conn)
    assert str(caught.value) == (
        f"The database is at schema version 0, this Evenflow needs {OLDEST_SCHEMA}. Type: evenflow db migrate"
    )


# -- releases side by side ---------------------------------------------------------------------------------------------

EXPANDS = Migration(SCHEMA_VERSION + 1, "more", 0, b"alter table dag_run add column more int")
CONTRACTS = Migration(SCHEMA_VERSION + 2, "less", SCHEMA_VERSION + 1, b"alter table dag_run drop column more")


@pytest.fixture
def of_next_release(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Makes this program one of the next release, or of this one again."""
    ours = migrations()

    def become(the_next: bool) -> None:
        theirs = (*ours, EXPANDS, CONTRACTS) if the_next else ours
        monkeypatch.setattr(migrating, "migrations", lambda: theirs)
        monkeypatch.setattr(migrating, "SCHEMA_VERSION", theirs[-1].version)

    return become


def test_an_older_program_goes_on_until_the_schema_contracts(
    db: psycopg.Connection[Any], of_next_release: Callable[[bool], None]
) -> None:
    """R-HA6: each release says which schemas it works on, and the database which programs work on it."""
    of_next_release(True)
    assert migrate(db) == ([EXPANDS], [CONTRACTS])
    assert migrate(db) == ([], [CONTRACTS])
    check(db)
    of_next_release(False)
    check(db)
    assert migrate(db) == ([], [])
    of_next_release(True)
    assert migrate(db, Steps.CONTRACT) == ([CONTRACTS], [])
    check(db)
    of_next_release(False)
    for refuse in (check, migrate):
        with pytest.raises(DatabaseTooNew) as caught:
            refuse(db)
        assert str(caught.value) == (
            f"The database is at schema version {CONTRACTS.version}, on which a program must know version {EXPANDS.version}; this "
            f"Evenflow knows {SCHEMA_VERSION}. Upgrade Evenflow on this host."
        )


def test_nothing_is_taken_away_from_a_service_that_runs(
    db: psycopg.Connection[Any], of_next_release: Callable[[bool], None]
) -> None:
    db.execute(
        "insert into service (kind, name, host, pid, version, schema_known)"
        " values ('scheduler', 's1', 'box', 1, '0.1', %s), ('api', 'a1', 'box', 2, '0.2', %s), ('worker', 'w1', 'box', 3, '', 0)",
        [SCHEMA_VERSION, SCHEMA_VERSION + 1],
    )
    of_next_release(True)
    with pytest.raises(OldServicesRun) as caught:
        migrate(db, Steps.CONTRACT)
    assert str(caught.value) == (
        f"The migration {CONTRACTS} takes away what older services use that still run: scheduler s1 on box (Evenflow 0.1, knows "
        f"schema {SCHEMA_VERSION}). Upgrade or stop them, then type again: evenflow db migrate --contract"
    )
    assert read_schema(db).version == EXPANDS.version, "what expands was applied"
    db.execute("update service set beat_at = now() - interval '1 h' where name = 's1'")
    assert migrate(db, Steps.CONTRACT) == ([CONTRACTS], [])


def test_a_release_that_cannot_wait_for_the_contraction_says_so(
    db: psycopg.Connection[Any], of_next_release: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_next_release(True)
    monkeypatch.setattr(migrating, "OLDEST_SCHEMA", CONTRACTS.version)
    with pytest.raises(ContractNeeded, match=r"needs the migration 0\d+_less, .* type: evenflow db migrate --contract"):
        migrate(db)


def test_a_migration_does_not_stand_in_the_way(
    db: psycopg.Connection[Any], database_url: str, of_next_release: Callable[[bool], None]
) -> None:
    """It waits for its locks for half a second at a time; in between those go on who came after it."""
    of_next_release(True)
    pauses = []
    with connect(database_url, name="holder") as holder:
        holder.execute("begin")
        holder.execute("lock table dag_run in row exclusive mode")

        def pause(_: float) -> None:
            pauses.append(
                db.execute("select count(*) from pg_locks where pid = pg_backend_pid() and relation = 'dag_run'::regclass")
            )
            with connect(database_url, name="another") as another:
                another.execute("set statement_timeout = 100")
                another.execute("select * from dag_run")
            if len(pauses) == 2:
                holder.execute("commit")

        assert migrate(db, pause=pause).applied == [EXPANDS]
    assert [cursor.fetchone() for cursor in pauses] == [(0,), (0,)]


def test_a_migration_that_never_gets_its_locks_says_who_has_them(
    db: psycopg.Connection[Any], database_url: str, of_next_release: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_next_release(True)
    monkeypatch.setattr(migrating, "ATTEMPTS", 2)
    with connect(database_url, name="holder") as holder:
        holder.execute("begin")
        holder.execute("lock table dag_run in row exclusive mode")
        with pytest.raises(MigrationBlocked) as caught:
            migrate(db, pause=lambda _: None)
        assert f"evenflow holder (pid {holder.info.backend_pid}, for " in str(caught.value)
    assert read_schema(db).version == SCHEMA_VERSION


def test_the_oldest_schema_is_one_that_this_release_reaches() -> None:
    assert OLDEST_SCHEMA <= SCHEMA_VERSION
    assert max(migration.works_from for migration in migrations()) <= SCHEMA_VERSION
