"""The statements on the way of every task read what they need and no more, however much there is (R-ST5)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

import psycopg
import pytest

from evenflow.store.db.connect import UNBOUNDED, connect
from evenflow.store.db.sql import sql
from tests.api.world import World

WAITING = 20_000
RUNNING = 2_000
OWN = RUNNING // 20  # of one worker
TRIES = ("dispatch", "task_instance", "service")


@pytest.fixture
def busy(db: psycopg.Connection[Any]) -> World:
    """Many tries that wait in three queues, many that run on twenty workers, and the plans that prepared statements settle on."""
    world = fill(db, waiting=WAITING)
    db.execute("analyze")
    db.execute("set plan_cache_mode = force_generic_plan")
    return world


def fill(db: psycopg.Connection[Any], *, waiting: int) -> World:
    world = World(db)
    run = world.run(world.add_dag())
    db.execute(
        "insert into service (kind, name, host, pid, version) select 'worker', 'w' || n, 'h', 1, '0' from generate_series(1, 20) n"
    )
    db.execute(
        "insert into dispatch (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots,"
        " worker_id, claim_key)"
        " select n, %(run)s, 1, n, 1, 1, n %% 5, (array['default', 'big', 'other'])[n %% 3 + 1], '{}', 1,"
        " case when n <= %(running)s then n %% 20 + 1 end, case when n <= %(running)s then 'old' end"
        " from generate_series(1, %(all)s) n",
        {"run": run, "running": RUNNING, "all": RUNNING + waiting},
    )
    db.execute(
        "insert into task_instance (run_key, task_index, map_index, state, epoch)"
        " select run_key, task_index, map_index, 'queued', epoch from dispatch"
    )
    return world


TYPES = {  # of what each statement binds, in the order of its arguments here
    "dispatch/claim": "bigint, text, int, int, text[], float8, jsonb, bool, bigint, bigint",
    "dispatch/compare_listed": "bigint, bigint[], float8, float8",
    "dispatch/find_current": "bigint[], bigint[], int[], int[]",
    "dispatch/find_waiting": "text[], jsonb",
    "dispatch/insert_reports": "json",
    "dispatch/mark_started": "bigint, bigint[]",
    "dispatch/read_claimed": "bigint, bigint[]",
    "dispatch/read_runs": "bigint[]",
    "dispatch/read_kills": "bigint[]",
    "views/list_runs_in_scope": "text, text, text, text, text, int",
    "services/beat": "bigint, text, text, jsonb",
}


def claim(*queues: str, slots: int = 50, resumes: int = 55) -> dict[str, object]:
    """What the first worker asks for."""
    return {
        "service_id": 1,
        "claim_key": "k",
        "slots": slots,
        "resumes": resumes,
        "queues": list(queues),
        "lease_s": 15.0,
        "since": "{}",
        "looks": True,
        "newest_run": 0,
        "api": None,
    }


def listed(*epochs: int) -> dict[str, object]:
    """What the first worker says that it holds."""
    return {"service_id": 1, "epochs": list(epochs), "resend_after_s": 2.0, "unmarked_after_s": 60.0}


HOT = {  # what each try needs of the API: its arguments, and most rows that it may see
    "dispatch/claim": (claim("default", "big"), 4 * (50 + OWN)),
    "dispatch/compare_listed": (listed(20, 40), 2 * OWN),
    "dispatch/find_waiting": ({"queues": ["default", "big", "none"], "since": "{}"}, 6),
    "dispatch/mark_started": ({"service_id": 1, "epochs": [20, 40]}, 6),
    "dispatch/read_claimed": ({"service_id": 1, "epochs": [20, 40]}, 4),
    "dispatch/read_runs": ({"run_keys": [20, 40]}, 2),
}


def test_plans_that_were_made_while_nothing_was_there_stay_right(db: psycopg.Connection[Any], database_url: str) -> None:
    """R-ST5: on a server with its default configuration a table that was empty and vacuumed looks empty for a minute to come."""
    with connect(database_url, name="hot", generic_plans=True, timeouts=UNBOUNDED) as hot:
        db.execute("vacuum analyze")
        for name, (names, _) in HOT.items():
            prepare(hot, name, names)
            with psycopg.ClientCursor(hot) as cursor:
                cursor.execute(execution(name, names), list(names.values()))
        fill(db, waiting=100_000)
        for name, (names, most) in HOT.items():
            with hot.transaction(force_rollback=True), psycopg.ClientCursor(hot) as cursor:
                cursor.execute(b"explain (analyze, format json) " + execution(name, names), list(names.values()))
                ((plan,),) = cursor.fetchall()
            assert sum(_seen(plan[0]["Plan"])) <= most, (name, plan)


def prepare(conn: psycopg.Connection[Any], name: str, names: Collection[str]) -> None:
    numbers = {key: f"${n}" for n, key in enumerate(names, 1)}
    text = re.sub(r"%\((\w+)\)s", lambda match: numbers[match[1]], sql(name).decode())
    conn.execute(f'prepare "{name}" ({TYPES[name]}) as {text}'.encode())


def execution(name: str, names: Collection[str]) -> bytes:
    """EXECUTE takes literals."""
    return f'execute "{name}" ({", ".join(["%s"] * len(names))})'.encode()


def test_looking_for_runs_reads_those_that_show(busy: World) -> None:
    """Among many runs of another DAG."""
    version = busy.one("select version_key from dag_version")
    busy.conn.execute(
        "insert into dag_run (dag_id, run_id, version_key, run_type)"
        " select 'other', n::text, %s, 'manual' from generate_series(1, 20000) n",
        [version],
    )
    busy.conn.execute("analyze dag_run")
    busy.conn.execute("set plan_cache_mode = auto")
    every = {"dag_id": None, "run_id": None, "state": None, "scope": None, "after": None, "limit": 10}
    for asked, most in (
        ({"dag_id": "sales"}, 1),
        ({"dag_id": "other", "run_id": "777"}, 1),
        ({}, 10),
        ({"state": "queued"}, 10),
        ({"after": "[9000]"}, 10),
        ({"dag_id": "other", "after": "[9000]"}, 10),
    ):
        with psycopg.ClientCursor(busy.conn) as cursor:
            cursor.execute(b"explain (analyze, format json) " + sql("views/list_runs"), {**every, **asked})
            ((plan,),) = cursor.fetchall()
        assert sum(_seen(plan[0]["Plan"], {"dag_run"})) <= most, (asked, plan)


def test_looking_for_runs_in_a_scope_reads_those_of_its_dags(busy: World) -> None:
    """R-SE3, R-ST5: where others run most. Two DAGs of five hundred are in the scope, and one of them has not
    run for long.
    """
    version = busy.one("select version_key from dag_version")
    for dags, runs in (("'seldom'", 30), ("'often'", 300), ("'other' || n %% 500", 20000)):
        busy.conn.execute(
            "insert into dag_run (dag_id, run_id, version_key, run_type)"
            f" select {dags}, n::text, %(version)s, 'manual' from generate_series(1, %(runs)s) n",
            {"version": version, "runs": runs},
        )
    busy.conn.execute(
        "insert into dag (dag_id, version_key, bundle, file, tags)"
        " select dag_id, %s, 'main', 'f.py', case when dag_id in ('seldom', 'often') then array['etl'] else '{}' end"
        " from dag_run where dag_id <> 'sales' group by dag_id",
        [version],
    )
    busy.conn.execute("analyze")
    every = {"dag_id": None, "run_id": None, "state": None, "scope": '{"tags": ["etl"]}', "after": None, "limit": 10}
    busy.conn.execute("set plan_cache_mode = force_custom_plan")
    for asked, most in (({}, 60), ({"after": "[200]"}, 60), ({"dag_id": "seldom"}, 60), ({"dag_id": "other7"}, 0)):
        seen, plan = rows_read(busy, "views/list_runs_in_scope", {"dag_run"}, **{**every, **asked})
        assert seen <= most, (asked, plan)


def rows_read(world: World, name: str, tables: Collection[str] = TRIES, **names: object) -> tuple[int, str]:
    """How many rows of these tables the statement's scans saw, and its plan; nothing is kept."""
    with world.conn.transaction(force_rollback=True):
        prepare(world.conn, name, names)
        with psycopg.ClientCursor(world.conn) as cursor:
            cursor.execute(b"explain (analyze, format json) " + execution(name, names), list(names.values()))
            ((plan,),) = cursor.fetchall()
        world.conn.execute(f'deallocate "{name}"'.encode())
    return sum(_seen(plan[0]["Plan"], tables)), json.dumps(plan)


def _seen(node: dict[str, Any], tables: Collection[str] = TRIES) -> Iterator[int]:
    if node.get("Relation Name") in tables and node["Node Type"].endswith("Scan"):
        filtered = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        yield round((node["Actual Rows"] + filtered) * node["Actual Loops"])
    for child in node.get("Plans", []):
        yield from _seen(child, tables)


def test_a_claim_reads_what_it_takes(busy: World) -> None:
    read, plan = rows_read(busy, "dispatch/claim", **claim("default", "big"))
    assert read <= 4 * (50 + OWN), plan


def test_a_claim_of_resumes_reads_no_first_starts(busy: World) -> None:
    """R-DQ3: one scan of the index for each class and queue, and none of a class for which there is no slot."""
    busy.conn.execute("update dispatch set class = 0 where epoch % 1000 = 0")
    busy.conn.execute("analyze dispatch")
    read, plan = rows_read(busy, "dispatch/claim", **claim("default", "big", slots=0, resumes=5))
    assert read <= 4 * (5 + OWN), plan


def test_a_claim_that_finds_nothing_reads_nothing(busy: World) -> None:
    read, plan = rows_read(busy, "dispatch/claim", **claim("none"))
    assert read <= 4 * OWN, plan


def test_the_look_at_the_queues(busy: World) -> None:
    read, plan = rows_read(busy, "dispatch/find_waiting", queues=["default", "big", "none"], since="{}")
    assert read <= 6, plan
    read, plan = rows_read(busy, "dispatch/read_kills", workers=[1, 2])
    assert read <= 2 * OWN, plan


def test_a_beat_reads_its_own_tries(busy: World) -> None:
    read, plan = rows_read(busy, "dispatch/compare_listed", **listed(*range(20, RUNNING, 20)))
    assert read <= OWN + 1, plan
    read, plan = rows_read(busy, "services/beat", service_id=1, kind="worker", state="active", detail="{}")
    assert read <= 20, plan


def test_a_beat_marks_its_own_tries(busy: World) -> None:
    """The start of half of them is in the inbox, among that of all others."""
    (run,) = busy.all("select run_key from dag_run")
    busy.conn.execute(
        "insert into report (run_key, kind, epoch) select %s, 'started', 2 * n from generate_series(1, %s) n", [run, WAITING // 2]
    )
    busy.conn.execute("analyze report")
    epochs = list(range(20, RUNNING, 20))
    for tables, most in ((TRIES, 3 * OWN), ({"report"}, OWN)):
        read, plan = rows_read(busy, "dispatch/mark_started", tables=tables, service_id=1, epochs=epochs)
        assert 0 < read <= most, plan


def test_a_batch_of_reports_reads_its_own_tries(busy: World) -> None:
    (run,) = busy.all("select run_key from dag_run")
    batch = [
        {"run_key": run, "task_index": 1, "map_index": n, "epoch": n, "kind": "exit", "age_s": 0, "payload": {}, "result": "[1]"}
        for n in range(1, 101)
    ]
    read, plan = rows_read(busy, "dispatch/insert_reports", reports=json.dumps(batch))
    assert read <= 200, plan


def test_logs_look_at_their_own_tries(busy: World) -> None:
    (run,) = busy.all("select run_key from dag_run")
    names = {"epochs": [1, 2, 3], "run_keys": [run] * 3, "tasks": [1] * 3, "maps": [1, 2, 3]}
    read, plan = rows_read(busy, "dispatch/find_current", **names)
    assert read <= 3, plan
