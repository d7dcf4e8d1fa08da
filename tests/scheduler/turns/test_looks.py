"""From where on a scheduler looks for reports and queued runs (R-HA19): not over what was taken while an old snapshot is open,
and never past one that is committed late.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
import pytest

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler.advance import TurnOutcome, advance
from evenflow.scheduler.duties import Orphans
from evenflow.store.db.connect import connect
from evenflow.store.db.rows import execute
from evenflow.store.scheduling.incarnation import begin_incarnation
from tests.scheduler.world import World
from tests.snapshots import await_others, old_snapshot

INSERT = "insert into report (run_key, kind, epoch) select %s, 'started', n from generate_series(%s::int, %s) n"
Conn = psycopg.Connection[Any]


@pytest.fixture
def run_key(world: World) -> int:
    return make_run(world)


def make_run(world: World) -> int:
    dag_id = f"d{random.randrange(10**9)}"
    world.add_dag(DagSpec(dag_id=dag_id, tasks=(TaskSpec(task_id="a", operator="python"),)))
    run_key = world.trigger(dag_id)
    world.advance()
    return int(run_key)


@pytest.fixture
def late(database_url: str) -> Iterator[list[Conn]]:
    """Connections whose transactions are under way for long."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(connect(database_url, name=f"api {n}")) for n in range(4)]


def turn(world: World) -> TurnOutcome:
    return advance(world.conn, world.catalog, sweep=False)


def commit_all(world: World, late: list[Conn], under_way: Iterable[int]) -> None:
    """What is under way of these is committed, and all turns are taken that there are for it."""
    for n in under_way:
        late[n].execute("commit")
    while turn(world).again:
        pass


def left(world: World) -> int:
    return int(world.conn.execute("select count(*) from report").fetchone()[0])


def pages(conn: Conn, table: str = "report") -> int:
    """What was read of the inbox, or of another table, and its indexes so far."""
    conn.execute("select pg_stat_force_next_flush()")
    counted = "heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read"
    (read,) = conn.execute(f"select {counted} from pg_statio_user_tables where relname = %s".encode(), [table]).fetchone() or (0,)
    return int(read)


def test_turns_read_no_more_while_an_old_snapshot_is_open(world: World, run_key: int, database_url: str) -> None:
    """R-HA19: thousands of reports were taken, and nothing of them may be removed: they are passed over once, not in each turn."""
    other = make_run(world)
    costs = []
    with old_snapshot(database_url, b"report"):
        for _ in range(3):
            world.conn.execute(INSERT, [run_key, 1, 20_000])
            world.conn.execute("delete from report")
            await_others(world.conn)
            for n in range(3):
                world.conn.execute(INSERT, [other, n, n])
                before = pages(world.conn)
                assert turn(world).reports == 1
                costs.append(pages(world.conn) - before)
    first, *others = costs[0::3], costs[1::3], costs[2::3]
    assert max(map(max, others)) < min(first) / 10, costs


def test_a_report_that_is_committed_late_is_found(world: World, run_key: int, late: list[Conn]) -> None:
    """R-HA19: by the very next turn, however many that were written after it have been taken meanwhile."""
    with late[0].transaction():
        late[0].execute(INSERT, [run_key, 1, 1])
        for n in range(2, 12):
            world.conn.execute(INSERT, [run_key, n, n])
            assert turn(world).reports == 1
    assert turn(world).reports == 1
    assert left(world) == 0


def test_what_operators_want_is_found_when_it_is_committed_late(world: World, run_key: int, late: list[Conn]) -> None:
    """R-HA19: cancels and operations stand in an index of their own, with a look of their own."""
    other = make_run(world)
    with late[0].transaction():
        late[0].execute("insert into report (run_key, kind, epoch) values (%s, 'cancel', 0)", [run_key])
        world.cancel(other)
        turn(world)
        world.conn.execute(INSERT, [other, 1, 1])
        turn(world)
    turn(world)
    states = "select state::text from dag_run where run_key = any(%s)"
    assert world.conn.execute(states, [[run_key, other]]).fetchall() == [("failed",), ("failed",)]
    assert left(world) == 0


def test_a_transaction_that_writes_first_elsewhere_is_waited_for(world: World, run_key: int, late: list[Conn]) -> None:
    """R-HA19: it has its number from its first write, long before its report has one."""
    with late[0].transaction():
        late[0].execute("update dag set updated_at = now() where dag_id = 'evenflow_callbacks'")
        for n in range(2, 5):
            world.conn.execute(INSERT, [run_key, n, n])
            assert turn(world).reports == 1
        with late[0].transaction():  # and what is said in a savepoint counts as said by the whole
            late[0].execute(INSERT, [run_key, 1, 1])
    assert turn(world).reports == 1


def test_a_turn_that_fails_leaves_what_it_took_in_sight(world: World, run_key: int, late: list[Conn]) -> None:
    """R-HA19: what another scheduler has taken and not committed is looked for, and is found when that one dies."""
    world.conn.execute(INSERT, [run_key, 1, 1])
    with contextlib.suppress(ZeroDivisionError), late[0].transaction():
        late[0].execute("select from dag_run where run_key = %s for no key update", [run_key])
        late[0].execute("delete from report")
        world.conn.execute(INSERT, [make_run(world), 1, 1])
        assert turn(world).reports <= 1
        raise ZeroDivisionError
    turn(world)
    assert left(world) == 0


def test_what_leaves_quarantine_is_looked_for(world: World, run_key: int) -> None:
    """R-HA19: it was said long ago, and turns look from later on."""
    world.conn.execute(INSERT, [run_key, 1, 1])
    world.conn.execute("update dag_run set quarantined_at = now() where run_key = %s", [run_key])
    world.conn.execute("update report set held = true")
    other = make_run(world)
    for n in range(3):
        world.conn.execute(INSERT, [other, n, n])
        turn(world)
    assert left(world) == 1
    execute(world.conn, "quarantine/release_runs", {"run_keys": [run_key], "actor": "ann"})
    assert turn(world).reports == 1


def test_what_comes_with_a_restore_is_looked_for(world: World, run_key: int) -> None:
    """R-HA19: numbers of transactions are those of a server: what a dump brings bears numbers from elsewhere, smaller or larger."""
    for n in range(3):
        world.conn.execute(INSERT, [run_key, n, n])
        turn(world)
    with world.conn.transaction():
        world.conn.execute(
            "insert into report (run_key, kind, epoch, xact) values (%s, 'started', 7, '3'), (%s, 'started', 8, '99999999999')",
            [run_key] * 2,
        )
        begin_incarnation(world.conn, reason="a test", by="ann")
    assert turn(world).reports == 2
    world.conn.execute(INSERT, [run_key, 9, 9])
    assert turn(world).reports == 1


def test_orphans_are_looked_for_from_where_the_last_look_ended(
    world: World, run_key: int, late: list[Conn], database_url: str
) -> None:
    """R-HA19: each second, so not over what was taken; on another connection, perhaps to another server, from the beginning."""
    orphans = Orphans()
    with late[0].transaction(), old_snapshot(database_url, b"report"):
        late[0].execute(INSERT, [1, 1, 1])
        late[0].execute("insert into report (run_key, kind, epoch) values (1, 'cancel', 0)")
        for n in range(20):
            world.conn.execute(INSERT, [run_key, 200 * n + 1, 200 * n + 200])
            turn(world)
        orphans.delete(world.conn)
    orphans.delete(world.conn)
    assert left(world) == 0
    with old_snapshot(database_url, b"report"):
        for n in range(20):
            world.conn.execute(INSERT, [run_key, 200 * n + 1, 200 * n + 200])
            turn(world)
        await_others(world.conn)
        costs = []
        for conn in (world.conn, world.conn, late[1]):
            before = pages(world.conn)
            orphans.delete(conn)
            late[1].execute("select pg_stat_force_next_flush()")
            costs.append(pages(world.conn) - before)
    assert 10 * costs[1] < costs[0], costs
    assert 10 * costs[1] < costs[2], costs


@pytest.mark.parametrize("seed", range(6))
def test_no_report_is_passed_over_in_random_orders_of_commits(world: World, late: list[Conn], seed: int) -> None:
    """R-HA19: transactions say something, once or in parts, wait, commit or roll back in any order, while turns that may take
    little go on: they find all that is committed.
    """
    r = random.Random(seed)
    run_keys = [make_run(world) for _ in range(3)]
    under_way: dict[int, Any] = {}
    said = 0
    for _ in range(150):
        n = r.randrange(len(late))
        if n not in under_way:
            late[n].execute("begin")
            under_way[n] = 0
        if r.random() < 0.6:
            said += 1
            kind = r.choice(["started", "started", "cancel"])
            epoch = 0 if kind == "cancel" else said
            late[n].execute("insert into report (run_key, kind, epoch) values (%s, %s, %s)", [r.choice(run_keys), kind, epoch])
        if r.random() < 0.4:
            late[n].execute(r.choice(["commit", "commit", "rollback"]))
            del under_way[n]
        if r.random() < 0.5:
            while advance(world.conn, world.catalog, sweep=False, max_runs=r.choice([1, 200])).again:
                pass
            assert left(world) == 0, "one that is committed is out of sight"
    commit_all(world, late, under_way)
    assert left(world) == 0


QUEUE = (
    "insert into dag_run (dag_id, run_id, version_key, run_type, priority)"
    " select dag_id, gen_random_uuid()::text, version_key, 'manual', %s from dag where dag_id = %s"
)


def add_dag(world: World, dag_id: str) -> None:
    world.add_dag(DagSpec(dag_id=dag_id, tasks=(TaskSpec(task_id="a", operator="python"),)))


def queued(world: World) -> int:
    return int(world.conn.execute("select count(*) from dag_run where state = 'queued'").fetchone()[0])


def test_creation_reads_no_more_while_an_old_snapshot_is_open(world: World, run_key: int, database_url: str) -> None:
    """R-HA19: runs of three priorities have begun by thousands; what let them begin is passed over once, not in each turn."""
    for n in range(3):
        add_dag(world, f"d{n}")
    said = "insert into run_wake (dag_id, priority, line) select 'd' || n % 3, n % 3, 0 from generate_series(1, 20_000) n"
    costs = []
    with old_snapshot(database_url, b"run_wake"):
        for _ in range(3):
            world.conn.execute(said)
            world.conn.execute("delete from run_wake")
            await_others(world.conn)
            for n in range(3):
                world.trigger(f"d{n}", priority=n)
                before = pages(world.conn, "run_wake")
                turn(world)
                assert queued(world) == 0
                costs.append(pages(world.conn, "run_wake") - before)
    first, *others = costs[0::3], costs[1::3], costs[2::3]
    assert max(map(max, others)) < min(first) / 10, costs


def test_a_run_that_is_committed_late_begins(world: World, late: list[Conn]) -> None:
    """R-HA19: in the very next turn, whatever began meanwhile."""
    for n in range(2):
        add_dag(world, f"d{n}")
    with late[0].transaction():
        late[0].execute(QUEUE, [0, "d0"])
        for _ in range(10):
            world.trigger("d1")
            turn(world)
            assert queued(world) == 0
    turn(world)
    assert queued(world) == 0


def test_queued_runs_that_come_with_a_restore_begin(world: World) -> None:
    """R-HA19: numbers of transactions are those of a server."""
    add_dag(world, "d0")
    for _ in range(3):
        world.trigger("d0")
        turn(world)
    with world.conn.transaction():
        world.trigger("d0")
        world.conn.execute("update run_wake set xact = '3'")
        begin_incarnation(world.conn, reason="a test", by="ann")
    turn(world)
    assert queued(world) == 0


@pytest.mark.parametrize("seed", range(6))
def test_no_queued_run_is_passed_over_in_random_orders_of_commits(
    world: World, late: list[Conn], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA19: runs of many priorities are made in transactions that commit or roll back in any order, while turns that begin few
    of them go on: all that are committed begin.
    """
    monkeypatch.setattr("evenflow.scheduler.creation.NEW_RUNS_PER_TURN", 3)
    monkeypatch.setattr("evenflow.scheduler.creation.NEW_RUNS_BESIDE_TRIES", 2)
    monkeypatch.setattr("evenflow.scheduler.foresight.DAGS_PER_NEW_RUN", 1)
    monkeypatch.setattr("evenflow.store.scheduling.runs.RUN_WAKES_PER_TURN", 4)
    r = random.Random(seed)
    for n in range(8):
        add_dag(world, f"d{n}")
    under_way: set[int] = set()
    for _ in range(120):
        n = r.randrange(len(late))
        if n not in under_way:
            late[n].execute("begin")
            under_way.add(n)
        if r.random() < 0.7:
            late[n].execute(QUEUE, [r.randrange(3), f"d{r.randrange(8)}"])
        if r.random() < 0.4:
            late[n].execute(r.choice(["commit", "commit", "rollback"]))
            under_way.discard(n)
        if r.random() < 0.5:
            turn(world)
        if r.random() < 0.1:
            while turn(world).again:
                pass
            assert queued(world) == 0, "one that is committed is out of sight"
    commit_all(world, late, under_way)
    assert queued(world) == 0
