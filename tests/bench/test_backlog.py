"""A backlog that was copied in bulk is what the scheduler itself makes of as many runs."""

from __future__ import annotations

import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evenflow.explaining.audit import audit
from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.store.db.migrate import migrate

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from backlog import Conn, add_dags, add_finished, copy_dag, copy_run
from rounds import PREFIX, Room, burst_shape, fill, lanes_shape, turn_about
from server import open_connection
from shapes import Shape
from stored_shape import trigger

SIZE = 7
TABLES = (
    "dag_version",
    "task",
    "dag",
    "dag_run",
    "task_instance",
    "upstream_counter",
    "mapped_task",
    "concurrency_limit",
    "limit_class",
    "lane",
    "ready_task",
    "dispatch",
    "task_event",
    "run_event",
)
RUNS = "select run_key, dag_id || '/' || run_id from dag_run"
NAMES = {  # what a column refers to, and how to name that in any database
    ("run_key",): f"{RUNS} union select 0, 'none'",
    ("version_key",): "select version_key, dag_id || '/' || version_number from dag_version",
    ("limit_id", "parked_on", "locals", "holds", "slot_limit", "pool_limit", "executor_limit", "task_limit"): (
        "select limit_id, concat_ws('/', l.kind, r.dag_id, r.run_id, l.name)"
        " from concurrency_limit l left join dag_run r using (run_key) union select 0, 'none'"
    ),
    ("class_id",): "select class_id, concat_ws('/', p.name, queue, weight, t.name) from limit_class n join concurrency_limit p"
    " on p.limit_id = n.pool_limit left join concurrency_limit t on t.limit_id = n.task_limit",
    (
        "lane_id",
    ): f"select lane_id, concat_ws('/', r.name, l.class_id) from lane l join ({RUNS}) as r (run_key, name) using (run_key)",
}
# Only said to be there: numbers that are anybody's, and times.
ANY = {"order_key", "epoch", "worker_id", "claim_key", "claimed_at", "at", "run_after", "since", "spec_hash", "released_at", "xact"}


@pytest.fixture
def two_urls(database_url: str, postgres: EmbeddedPostgres) -> Iterator[tuple[str, str]]:
    """Of two fresh databases."""
    with open_connection(postgres.url(), "test") as conn:
        name = f"test_{uuid.uuid4().hex[:12]}"
        conn.execute(f"create database {name}")
        with open_connection(postgres.url(name), "test") as other:
            migrate(other)
        yield database_url, postgres.url(name)
        conn.execute(f"drop database {name} with (force)")


@contextmanager
def room(url: str, shape: Shape) -> Iterator[Room]:
    with open_connection(url, "scheduler") as scheduler, open_connection(url, "worker") as worker:
        yield Room(url, scheduler, worker, shape)


def with_dags(shape: Shape, dags: int) -> Shape:
    blocked, run = shape["groups"]
    return {**shape, "groups": [{**blocked, "dags": dags, "priority": "100+i%1000"}, run]}


def contents(conn: Conn) -> dict[str, Counter[str]]:
    """Every row, with names in the place of keys."""
    names = {column: dict(conn.execute(query).fetchall()) for columns, query in NAMES.items() for column in columns}

    def named(column: str, value: Any) -> Any:
        if column in ANY or value is None:
            return bool(value)
        if column in names:
            return [names[column][v] for v in value] if isinstance(value, list) else names[column].get(value, value)
        return value if not column.endswith("_at") else True

    return {
        table: Counter(
            str({column: named(column, value) for column, value in row.items()})
            for (row,) in conn.execute(f"select to_jsonb(t) from {table} t").fetchall()
        )
        for table in TABLES
    }


def test_copied_dags_are_as_the_scheduler_makes_them(two_urls: tuple[str, str]) -> None:
    shape = lanes_shape(turns=1)
    with room(two_urls[0], with_dags(shape, SIZE)) as made, room(two_urls[1], shape) as copied:
        made.start("blk")
        assert len(made.driver.claim(SIZE)) == SIZE
        template = copied.start("blk")
        assert len(copied.driver.claim(1)) == 1
        copy_dag(copied.worker, template, SIZE - 1, group="blk")
        wanted, found = contents(made.worker), contents(copied.worker)
        runnable = "run_000"
        for table in TABLES:
            assert {r: n for r, n in found[table].items() if runnable not in r} == {
                r: n for r, n in wanted[table].items() if runnable not in r
            }, table


def test_added_dags_are_as_they_are_stored(two_urls: tuple[str, str]) -> None:
    shape = {"groups": [{"name": "chain", "dags": SIZE, "graph": "chain", "n": 3, "body": "noop"}]}
    one = {"groups": [{**shape["groups"][0], "dags": 1}]}
    with room(two_urls[0], shape) as stored, room(two_urls[1], one) as added:
        add_dags(added.worker, "chain_000", SIZE - 1, group="chain")
        assert contents(added.worker) == contents(stored.worker)


def test_copied_runs_are_as_the_scheduler_makes_them(two_urls: tuple[str, str]) -> None:
    with room(two_urls[0], burst_shape()) as made, room(two_urls[1], burst_shape()) as copied:
        for each in (made, copied):
            each.start("holder")
            each.driver.claim(1)
        trigger(made.worker, {"blk_000": SIZE}, PREFIX)
        made.driver.settle()
        copy_run(copied.worker, copied.start("blk"), SIZE - 1, prefix=PREFIX)
        assert contents(copied.worker) == contents(made.worker)


def test_a_copied_backlog_lets_through_what_can_start(database_url: str) -> None:
    """Each turn starts as many as end (the driver raises otherwise), beside history."""
    with room(database_url, lanes_shape(turns=3)) as copied:
        held = fill(copied, "lanes", SIZE)
        add_finished(copied.worker, 200)
        turn_about(copied, held, 3)
        assert audit(copied.worker) == []
