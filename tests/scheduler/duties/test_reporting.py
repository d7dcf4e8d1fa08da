"""The reporting views are as they are documented, and their reader can read nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import conninfo, sql

from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.errors import BadValue
from evenflow.store.db.connect import connect
from evenflow.store.serving.reporting import SCHEMA, Granted, grant_reading
from scripts.reference.reporting import views
from tests.scheduler.world import World

COLUMNS = """
select a.attname, format_type(a.atttypid, a.atttypmod) from pg_attribute a
where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
RELATIONS = """
select format('%%I.%%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm') and n.nspname = any(%s) order by 1
"""
# Of version 1: more may be added, none of these may go or become something else.
PROMISED = {
    "dags": "dag_id is_active is_paused version_key version_number owner tags max_active_runs max_active_tasks next_run_at"
    " first_seen_at",
    "tasks": "version_key dag_id version_number task_index task_id operator owner pool pool_slots queue executor priority_weight"
    " max_active_tis_per_dag max_active_tis_per_dagrun max_active_tasks retries upstream max_active_runs",
    "runs": "run_key dag_id run_id version_key state run_type logical_date data_interval_start data_interval_end run_after priority"
    " created_at started_at ended_at reason backfill_id",
    "task_instances": "run_key dag_id run_id task_index task_id map_index state try_number queued_at started_at ended_at reason",
    "task_events": "run_key task_index map_index at xact epoch try_number event state detail dag_id run_id task_id",
    "run_events": "run_key at xact event state actor detail",
    "segments": "run_key dag_id run_id task_index task_id map_index try_number epoch state because began_at ended_at seconds",
    "tries": "run_key task_index map_index try_number dag_id run_id task_id queued_at started_at ended_at state dispatches reason",
    "limits": "limit_id kind run_key name capacity used",
    "holds": "run_key task_index map_index epoch held_by since limit_id slots",
    "limit_changes": "at kind name capacity",
    "pauses": "at dag_id is_paused",
    "mart_lags": "day dag_id runs tries run_p50_s run_p90_s run_p99_s wait_p50_s wait_p90_s wait_p99_s",
    "mart_wait_by_cause": "day dag_id cause limit_name times seconds",
    "mart_slot_use": "hour kind name capacity most average full_s",
    "mart_durations": "dag_id task_id tries p50_s p90_s p99_s drift drifts worth",
    "mart_anomalies": "dag_id task_id run_key run_id map_index try_number began_at seconds usual_s worth",
    "mart_critical_members": "dag_id task_id on_path runs seconds share",
    "mart_costs": "day dag_id owner tries slot_hours run_hours deferred_hours wait_hours",
    "mart_application_costs": (
        "day dag_id owner task_id run_id map_index try_number application_id cores core_hours task_hours gc_hours input_bytes"
        " output_bytes shuffle_bytes spilled_bytes"
    ),
    "spark_applications": (
        "run_key task_index map_index at xact epoch try_number application_id cores wall_us task_us gc_us input_bytes output_bytes"
        " shuffle_bytes spilled_bytes"
    ),
    "mart_advice": "day cause limit_name more saved_hours wait_hours",
    "mart_worth_raising": "cause limit_name more saved_hours wait_hours worth",
    "mart_violations": "kind run_key task_index map_index at what",
    "installation": "id set_back_ms",
}


def drop(db: psycopg.Connection, *roles: str) -> None:
    for name in map(sql.Identifier, roles):
        db.execute(sql.SQL("grant {0} to current_user with inherit true; drop owned by {0}; drop role {0}").format(name))


@pytest.fixture
def reader(db: psycopg.Connection) -> Iterator[Granted]:
    """A role that may read the views. Tests share the server and its roles, so its name (here in ``schema``) is nobody else's."""
    role = f"reader_{uuid.uuid4().hex[:12]}"
    granted = grant_reading(db, role, by="test")
    yield granted._replace(schema=role)
    drop(db, role)


@pytest.fixture
def reading(database_url: str, reader: Granted) -> Iterator[psycopg.Connection]:
    url = conninfo.make_conninfo(database_url, user=reader.schema, password=reader.password)
    with connect(url, name="reader") as conn:
        yield conn


def task(task_id: str, *upstream: int, **options: object) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream, **options)


def test_the_role_reads_each_view_and_no_table(db: psycopg.Connection, reading: psycopg.Connection) -> None:
    """R-SE1: secrets, sealed values, tokens, results and everything else in the database are not for a reader of reports."""
    for (name,) in db.execute(RELATIONS, [[SCHEMA]]).fetchall():
        reading.execute(f"select * from {name} limit 1")
    others = [name for (name,) in db.execute(RELATIONS, [["public"]]).fetchall()]
    assert len(others) > 50
    for name in others:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reading.execute(f"select 1 from {name} limit 1")


def test_the_role_writes_nothing(reading: psycopg.Connection) -> None:
    for statement in (
        "insert into dag_run (dag_id, run_id, version_key, run_type) values ('d', 'r', 1, 'manual')",
        f"delete from {SCHEMA}.runs",
        f"update {SCHEMA}.dags set is_paused = true",
        "select wake_runs(array['d'])",
        "create table mine (a int)",
    ):
        with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ObjectNotInPrerequisiteState)):
            reading.execute(statement)


def test_a_function_of_the_reader_sees_no_row_that_a_view_leaves_out(db: psycopg.Connection, reading: psycopg.Connection) -> None:
    """R-SE1: PostgreSQL may run a cheap function of a query before the conditions of a view, unless the view is a barrier."""
    db.execute(
        "insert into audit_event (actor, action, object, detail) values ('a', 'variable.set', 'secret name', '{\"slots\": 1}')"
    )
    reading.execute(
        "create function pg_temp.peek(text) returns boolean language plpgsql cost 0.000001 as"
        " $$ begin if $1 = 'secret name' then raise exception 'seen'; end if; return true; end $$"
    )
    assert reading.execute(f"select count(*) from {SCHEMA}.limit_changes where pg_temp.peek(name)").fetchone() == (0,)
    reading.execute(f"select count(*) from {SCHEMA}.pauses where pg_temp.peek(dag_id)")


def test_a_role_that_can_read_more_is_refused_and_gets_nothing(db: psycopg.Connection) -> None:
    role = f"reader_{uuid.uuid4().hex[:12]}"
    name = sql.Identifier(role)
    db.execute(sql.SQL("create role {}").format(name))
    try:
        db.execute(sql.SQL("grant select (kind) on sealed_value to {}").format(name))
        with pytest.raises(BadValue, match=r"as it has rights to sealed_value, by itself"):
            grant_reading(db, role, by="test")
        assert db.execute("select has_schema_privilege(%s, %s, 'usage')", [role, SCHEMA]).fetchone() == (False,)
    finally:
        drop(db, role)
    with pytest.raises(BadValue, match="can do more"):
        grant_reading(db, db.info.user, by="test")


@pytest.mark.parametrize(
    "rights",
    [
        "grant select on sealed_value to {other}; grant {other} to {role} with inherit false, set true",
        "grant select on sealed_value to {other}; grant {other} to {role} with inherit false, set false, admin true",
        "grant insert on wake to {role}",
        "grant update (name) on pool to {role}",
        "grant update on sequence epoch_seq to {role}",
        "grant insert on {schema}.run_events to {role}",
    ],
)
def test_neither_is_a_role_that_may_become_another_nor_one_that_writes(db: psycopg.Connection, rights: str) -> None:
    """R-SE1: who may SET ROLE to the owner of the tables can read them, whatever it has by itself."""
    role, other = (f"reader_{uuid.uuid4().hex[:12]}" for _ in range(2))
    db.execute(f"create role {role}; create role {other}")
    try:
        db.execute(rights.format(role=role, other=other, schema=SCHEMA))
        with pytest.raises(BadValue, match="can do more than read the reporting views"):
            grant_reading(db, role, by="test")
    finally:
        drop(db, role, other)


def test_the_password_is_in_no_statement(database_url: str) -> None:
    """R-SE1: a server that logs statements learns a verifier, which lets nobody in."""
    said: list[str] = []

    class Listening(psycopg.Connection):
        def execute(self, query: Any, *args: Any, **options: Any) -> psycopg.Cursor[Any]:
            said.append(query.as_string(self) if isinstance(query, sql.Composable) else str(query))
            return super().execute(query, *args, **options)

    role = f"reader_{uuid.uuid4().hex[:12]}"
    with Listening.connect(database_url, autocommit=True) as conn:
        password = grant_reading(conn, role, by="test").password
        try:
            assert any(f'create role "{role}"' in each for each in said)
            assert password
            assert not [each for each in said if password in each]
            with connect(conninfo.make_conninfo(database_url, user=role, password=password), name="reader") as reading:
                reading.execute(f"select from {SCHEMA}.runs")
        finally:
            drop(conn, role)


def test_who_may_make_no_role_is_told_what_to_ask_for(db: psycopg.Connection, database_url: str) -> None:
    """On a managed PostgreSQL nobody is a superuser: who owns the schema grants, once somebody has made the role."""
    owner, bi = (f"role_{uuid.uuid4().hex[:12]}" for _ in range(2))
    db.execute(sql.SQL("create role {} login password 'x'; create role {}").format(sql.Identifier(owner), sql.Identifier(bi)))
    db.execute(sql.SQL("grant {} to current_user with set true, inherit true").format(sql.Identifier(owner)))
    try:
        db.execute(
            sql.SQL("grant usage, create on schema {1} to {0} with grant option").format(
                sql.Identifier(owner), sql.Identifier(SCHEMA)
            )
        )
        for (name,) in db.execute(RELATIONS, [[SCHEMA]]).fetchall():
            db.execute(f"alter view {name} owner to {owner}")
        db.execute(sql.SQL("grant insert on audit_event to {}").format(sql.Identifier(owner)))
        with connect(conninfo.make_conninfo(database_url, user=owner, password="x"), name="owner") as conn:
            with pytest.raises(BadValue, match="create role newcomer login password"):
                grant_reading(conn, "newcomer", by="test")
            assert grant_reading(conn, bi, by="test") == Granted(SCHEMA, len(PROMISED), None)
    finally:
        db.execute(f"reassign owned by {owner} to {db.info.user}")
        drop(db, owner, bi)


def test_views_are_as_they_are_documented(db: psycopg.Connection) -> None:
    """Each column of each view has a type and a meaning, and the type is that which the database gives it."""
    documented = {view.name: [(column.name, column.type) for column in view.columns] for view in views()}
    found = {name: db.execute(COLUMNS, [f"{SCHEMA}.{name}"]).fetchall() for name in documented}
    assert documented == found
    assert sorted(f"{SCHEMA}.{name}" for name in documented) == [name for (name,) in db.execute(RELATIONS, [[SCHEMA]]).fetchall()]


def test_nothing_that_was_promised_goes() -> None:
    documented = {view.name: [column.name for column in view.columns] for view in views()}
    assert {name: documented[name][: len(columns.split())] for name, columns in PROMISED.items()} == {
        name: columns.split() for name, columns in PROMISED.items()
    }


def test_untouched_instances_of_a_mapped_task_are_there(world: World) -> None:
    """R-ST6: users see every instance, also those without a row."""
    mapped = task("m", 0, mapping=Mapping(inputs=(MapInput(name="x", length=5),)))
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a"), mapped, task("z", 1)), max_active_tasks=2))
    run_key = world.trigger("d")
    world.advance()
    world.report(world.claim())
    world.advance()
    started = world.claim()
    world.report(started[:1], started=True)
    world.advance()
    states = world.all(f"select task_id, map_index, state from {SCHEMA}.task_instances where run_key = %s order by 1, 2", run_key)
    assert states == [
        ("a", -1, "success"),
        ("m", 0, "running"),
        ("m", 1, "queued"),
        *[("m", n, "scheduled") for n in (2, 3, 4)],
        ("z", -1, "none"),
    ]
    assert world.one("select count(*) from task_instance where run_key = %s and task_index = 1", run_key) == 2


def test_tries_segments_and_holds_tell_what_happened(world: World) -> None:
    world.pool("narrow", 1)
    world.add_dag(
        DagSpec(dag_id="d", tasks=(task("a", pool="narrow", retries=1, retry_delay=0.0), task("b", pool="narrow", pool_slots=1)))
    )
    run_key = world.trigger("d")
    world.advance()
    first = world.claim()
    held = world.all(f"select l.kind, l.name, h.slots from {SCHEMA}.holds h join {SCHEMA}.limits l using (limit_id) order by 1")
    assert held == [("executor", "worker", 1), ("pool", "narrow", 1), ("run", "", 1)]
    world.report(first, started=True)
    world.advance()
    world.report(first, "failed")
    world.advance()
    while second := world.claim():
        world.report(second)
        world.advance()
    tries = (
        f"select task_id, try_number, state, dispatches, started_at is not null, ended_at >= queued_at from {SCHEMA}.tries"
        " order by 1, 2"
    )
    assert world.all(tries) == [
        ("a", 1, "up_for_retry", 1, True, True),
        ("a", 2, "success", 1, False, True),
        ("b", 1, "success", 1, False, True),
    ]
    waited = (
        f"select because, ended_at is not null and seconds >= 0 from {SCHEMA}.segments"
        " where run_key = %s and task_id = 'b' order by began_at"
    )
    assert world.all(waited, run_key) == [("ready", True), ("grant", True)]
    assert world.one(f"select count(*) from {SCHEMA}.holds") == 0


def test_changes_of_capacities_and_pauses_are_told(db: psycopg.Connection) -> None:
    db.execute(
        "insert into audit_event (actor, action, object, detail) values ('a', 'pool.set', 'p', '{\"slots\": 3}'),"
        " ('a', 'pool.set', 'p', '{\"description\": \"no slots\"}'), ('a', 'dag.pause', 'd', null), ('a', 'dag.delete', 'd', null)"
    )
    assert db.execute(f"select kind, name, capacity from {SCHEMA}.limit_changes").fetchall() == [("pool", "p", 3)]
    assert db.execute(f"select dag_id, is_paused from {SCHEMA}.pauses").fetchall() == [("d", True)]
