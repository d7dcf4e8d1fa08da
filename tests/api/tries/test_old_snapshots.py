"""From where on claims look for tries (R-HA19): not over what was given out while an old snapshot is open, and never past one that
is committed late.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from evenflow.store.db.connect import UNBOUNDED, connect, connect_async
from evenflow.store.db.sql import sql
from evenflow.store.serving import dispatch
from tests.snapshots import await_others, old_snapshot
from tests.world import World

Conn = psycopg.Connection[Any]
QUEUES = ["default", "big"]
INSERT = (
    "insert into dispatch (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots)"
    " select n, 1, 0, n, 1, %(class)s, %(priority)s, %(queue)s, '{}', 1 from generate_series(%(first)s::int, %(last)s) n"
)


@pytest.fixture
def worker(db: Conn) -> int:
    return World(db).service()


@pytest.fixture
async def api(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dispatch.Conn]:
    monkeypatch.setattr(dispatch, "LOOK_BACK_S", 0.0)
    async with await connect_async(database_url, name="api") as conn:
        yield conn


def add(conn: Conn, first: int, last: int, *, priority: int = 1, queue: str = "default", resumes: bool = False) -> None:
    conn.execute(INSERT, {"class": 0 if resumes else 1, "priority": priority, "queue": queue, "first": first, "last": last})


async def claimed(conn: dispatch.Conn, worker: int, slots: int = 1000) -> list[int]:
    """In the order in which they are given out."""
    result = await dispatch.claim(
        conn, service_id=worker, claim_key=f"{random.random()}", slots=slots, resumes=slots, queues=QUEUES, lease_s=60
    )
    assert result.worker_state == "active"
    rows = await conn.execute(
        "select epoch from dispatch where claim_key = (select claim_key from service where service_id = %s)", [worker]
    )
    return sorted(epoch for (epoch,) in await rows.fetchall())


def end(db: Conn) -> None:
    db.execute("delete from dispatch where worker_id is not null")


def cost(conn: Conn, since: str, worker: int) -> int:
    """Pages that a claim and a look at the queues touch."""
    names = {"service_id": worker, "claim_key": "new", "slots": 5, "resumes": 5, "queues": QUEUES, "lease_s": 60.0}
    names |= {"since": since, "looks": True, "newest_run": 0, "api": None}
    found = 0
    for name in ("dispatch/claim", "dispatch/find_waiting"):
        with conn.transaction(force_rollback=True), psycopg.ClientCursor(conn) as cursor:
            cursor.execute(b"explain (analyze, buffers, format json) " + sql(name), names)
            ((plan,),) = cursor.fetchall()
            found += plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]
    return found


async def test_claims_read_no_more_while_an_old_snapshot_is_open(
    db: Conn, database_url: str, api: dispatch.Conn, worker: int
) -> None:
    """R-HA19: 100,000 tries of 50 priorities were given out and have ended, and nothing of them may be removed."""
    with connect(database_url, name="hot", generic_plans=True, timeouts=UNBOUNDED) as hot, old_snapshot(database_url, b"dispatch"):
        costs = []
        for n in range(2):
            for priority in range(50):
                first = 100_000 * n + 1000 * priority
                add(db, first, first + 999, priority=priority)
                db.execute("update dispatch set worker_id = %s, claim_key = 'old'", [worker])
                db.execute("delete from dispatch")
            add(db, 900_000, 900_004, queue="big", resumes=True)
            add(db, 900_010, 900_014)
            await_others(db)
            for _ in range(2):
                await dispatch.claim(api, service_id=worker, claim_key=f"{n}", slots=0, resumes=0, queues=QUEUES, lease_s=60)
            costs.append((cost(hot, "{}", worker), cost(hot, dispatch._looks.since(api), worker)))
            db.execute("delete from dispatch")
    (_, before), (everything, after) = costs
    assert after < before + 300, costs
    assert after < everything / 4, costs


async def test_a_try_that_is_committed_late_is_given_out(db: Conn, database_url: str, api: dispatch.Conn, worker: int) -> None:
    """R-HA19: by the very next claim, whatever was given out meanwhile, of whatever priority."""
    for priority in (0, 1, 9):
        with connect(database_url, name="scheduler") as late:
            with late.transaction():
                add(late, 1, 1, priority=1)
                for n in range(2, 12):
                    add(db, n, n, priority=priority)
                    assert await claimed(api, worker) == [n]
                    end(db)
            assert await claimed(api, worker) == [1]
            end(db)


async def test_another_connection_looks_from_the_beginning(db: Conn, database_url: str, api: dispatch.Conn, worker: int) -> None:
    """R-HA19: it may lead to a server that gives numbers of transactions again."""
    add(db, 1, 1)
    assert await claimed(api, worker) == [1]
    end(db)
    await claimed(api, worker)
    db.execute(
        "insert into dispatch (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, xact)"
        " values (2, 1, 0, 0, 1, 1, 1, 'default', '{}', 1, '3')"
    )
    assert await claimed(api, worker) == [], "its number is that of a transaction long ago"
    async with await connect_async(database_url, name="api") as other:
        assert await claimed(other, worker) == [2]


async def test_of_very_many_priorities_all_are_looked_for(db: Conn, api: dispatch.Conn, worker: int) -> None:
    """R-HA19: more than a look back counts."""
    for n in range(150):
        add(db, n, n, priority=150 - n)
    found: list[int] = []
    while some := await claimed(api, worker, slots=20):
        found += some
        end(db)
    assert found == list(range(150))


@pytest.mark.parametrize("seed", range(4))
async def test_no_try_is_passed_over_in_random_orders_of_commits(
    db: Conn, database_url: str, api: dispatch.Conn, worker: int, seed: int
) -> None:
    """R-HA19: schedulers commit or roll back in any order, of all classes, queues and priorities, while claims go on: a claim with
    room gets all that is committed.
    """
    r = random.Random(seed)
    with contextlib.ExitStack() as stack:
        late = [stack.enter_context(connect(database_url, name=f"scheduler {n}")) for n in range(4)]
        pending: dict[int, set[int]] = {}
        waiting: set[int] = set()
        for epoch in range(1, 200):
            n = r.randrange(len(late))
            if n not in pending:
                late[n].execute("begin")
                pending[n] = set()
            if r.random() < 0.7:
                add(late[n], epoch, epoch, priority=r.randrange(4), queue=r.choice(QUEUES), resumes=r.random() < 0.3)
                pending[n].add(epoch)
            if r.random() < 0.4:
                good = r.random() < 0.7
                late[n].execute("commit" if good else "rollback")
                waiting |= pending.pop(n) if good else set()
                pending.pop(n, None)
            if r.random() < 0.6:
                slots = r.choice([1, 3, 1000])
                given = set(await claimed(api, worker, slots)) if waiting else set()
                assert given <= waiting
                assert len(given) >= min(slots, len(waiting)), "one that waits is out of sight"
                waiting -= given
                end(db)
