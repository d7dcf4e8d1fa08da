"""The model's copies of statements do what the statements do, on PostgreSQL, in states that the explorer has reached."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from evenflow.core.limits import LEASE_S
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.store.db.rows import execute
from evenflow.store.scheduling import inbox, tasks
from tests.protocol import control
from tests.protocol.protocol import Bounds, Protocol, Rules
from tests.protocol.state import CURRENT, LAST, NOBODY, World

SAMPLES = 120
MORE = 40  # of workers that may be given up although they beat, and of such as are given tries in turns
KEYS = {NOBODY: None, LAST: "last", CURRENT: "current"}
SERVICES = 1_000  # the id of the first
LEASE = Rules().lease
SPEC = DagSpec(dag_id="d", tasks=tuple(TaskSpec(task_id=name, operator="python") for name in "ab"))


@pytest.fixture(scope="module")
def sampled() -> list[World]:
    """States with something to claim, to compare, to lose or to take."""
    bounds, r = Bounds(workers=2, tasks=2, losses=1, faults=1, doubled=True), random.Random(1)
    others = [replace(bounds, doubled=False, hangs=True), replace(bounds, doubled=False, assigns=True)]
    return [*_sample(r, bounds, SAMPLES), *(world for each in others for world in _sample(r, each, MORE))]


def _sample(r: random.Random, bounds: Bounds, count: int) -> list[World]:
    protocol, found = Protocol(Rules(), bounds), list[World]()
    while len(found) < count:
        world = protocol.initial()
        for _ in range(r.randint(4, 40)):
            world = r.choice(list(protocol.steps(world)))[1]
        if world.services and any(t.dispatch or t.inbox for t in world.tasks):
            found.append(world)
    return found


class Stored:
    """A state of the model as rows."""

    def __init__(self, conn: psycopg.Connection[Any], run_key: int, world: World) -> None:
        self.conn, self.run_key, self.world = conn, run_key, world
        conn.execute("update lease_clock set ticked_at = now(), counted_from = now() - interval '1 hour'")
        for s, row in enumerate(world.services):
            conn.execute(
                "insert into service (service_id, kind, name, host, pid, version, state, beat_at, claim_key,"
                " waiting_claim, waits_since)"
                " overriding system value values (%s, 'worker', 'w', 'h', 1, '0', %s, now() - make_interval(secs => %s), %s,"
                " jsonb_build_object('key', %s::text), case when %s then now() end)",
                [
                    SERVICES + s,
                    row.state,
                    row.age * (LEASE_S + 1) / LEASE,
                    KEYS[row.key],
                    KEYS[row.asks],
                    row.asks != NOBODY,
                ],
            )
        for i, task in enumerate(world.tasks):
            conn.execute(
                "insert into task_instance (run_key, task_index, map_index, state, epoch, try_number)"
                " values (%s, %s, -1, %s, %s, %s)",
                [run_key, i, task.state, max(task.epoch, 0), task.try_number],
            )
            if task.dispatch:
                self._insert_dispatch(i)
            for said in task.inbox:
                kind = said.what if said.what in ("started", "lost") else "exit"
                conn.execute("insert into report (run_key, kind, epoch) values (%s, %s, %s)", [run_key, kind, said.epoch])

    def _insert_dispatch(self, i: int) -> None:
        row = self.world.tasks[i].dispatch
        assert row
        claimed = row.service != NOBODY
        self.conn.execute(
            "insert into dispatch (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots,"
            " worker_id, claim_key, claimed_at)"
            " values (%s, %s, %s, -1, 1, 1, 0, 'default', '{}', 1, %s, %s, now() - interval '1 minute')",
            [row.epoch, self.run_key, i, SERVICES + row.service if claimed else None, KEYS[row.key] if claimed else None],
        )

    def row(self, s: int) -> Any:
        """Of a service: the key of what it has claimed last, and whether a claim of it waits."""
        query = "select claim_key, waits_since is not null from service where service_id = %s"
        return self.conn.execute(query, [SERVICES + s]).fetchone()


@pytest.fixture
def stored(world: Any, sampled: list[World]) -> Iterator[Stored]:
    """Each state in turn, in a transaction that is rolled back."""
    world.add_dag(SPEC)
    run_key = world.trigger("d")

    def each() -> Iterator[Stored]:
        for state in sampled:
            with world.conn.transaction(force_rollback=True):
                yield Stored(world.conn, run_key, state)

    return each()


def test_claims(stored: Iterator[Stored]) -> None:
    taken = 0
    for state in stored:
        for s in range(len(state.world.services)):
            for key in (LAST, CURRENT):
                found, after = control.claim(state.world.services, state.world.tasks, service=s, key=key, slots=1, lease=LEASE)
                with state.conn.transaction(force_rollback=True):
                    params = {
                        "service_id": SERVICES + s,
                        "claim_key": KEYS[key],
                        "slots": 1,
                        "resumes": 1,
                        "queues": ["default"],
                        "lease_s": LEASE_S,
                        "since": "{}",
                        "looks": False,
                        "newest_run": 0,
                        "api": None,
                    }
                    cursor = execute(state.conn, "dispatch/claim", params)
                    assert cursor.description is not None
                    column = [c.name for c in cursor.description].index("epoch")
                    epochs = [row[column] for row in cursor.fetchall() if row[column] is not None]
                    assert epochs == [state.world.tasks[i].epoch for i in found], state.world
                    assert state.row(s) == (KEYS[after.key], after.asks != NOBODY), state.world
                taken += bool(epochs)
    assert taken > SAMPLES / 4


def test_what_turns_give(stored: Iterator[Stored]) -> None:
    given = 0
    for state in stored:
        for s, row in enumerate(state.world.services):
            worker, key = SERVICES + s, KEYS[row.asks]
            sent = tasks.Dispatch(999, state.run_key, 0, -1, 1, 1, 0, "default", [], 1, 0, "start", None, None, 0, 0, worker)
            with state.conn.transaction(force_rollback=True):
                tasks.insert_dispatches(state.conn, [sent], {worker: key or "none"})
                found = state.conn.execute("select worker_id, claim_key from dispatch where epoch = 999").fetchone()
                if control.may_be_given(row, lease=LEASE):
                    given += 1
                    assert (found, state.row(s)) == ((worker, key), (key, False)), state.world
                else:
                    assert (found, state.row(s)) == ((None, None), (KEYS[row.key], row.asks != NOBODY)), state.world
    assert given > MORE / 8


def test_comparisons(stored: Iterator[Stored]) -> None:
    r, different = random.Random(2), 0
    for state in stored:
        for s in range(len(state.world.services)):
            listed = sorted(r.sample(range(1, 5), r.randint(0, 3)))
            kill, resend = control.compare(state.world.tasks, service=s, listed=listed)
            rows = execute(
                state.conn,
                "dispatch/compare_listed",
                {"service_id": SERVICES + s, "epochs": listed, "resend_after_s": 2.0, "unmarked_after_s": 60.0},
            ).fetchall()
            assert sorted(epoch for epoch, ends, *_ in rows if ends) == list(kill), state.world
            assert sorted(epoch for epoch, _, again, *_ in rows if again) == sorted(state.world.tasks[i].epoch for i in resend), (
                state.world
            )
            different += bool(rows)
    assert different > SAMPLES / 4


def test_losses(stored: Iterator[Stored]) -> None:
    lost = 0
    for state in stored:
        state.conn.execute("create temporary table before on commit drop as select report_id from report")
        execute(state.conn, "leases/report_lost_tries", {"lease_s": LEASE_S})
        rows = state.conn.execute(
            "select epoch from report where kind = 'lost' and report_id not in (select report_id from before) order by epoch"
        ).fetchall()
        found = control.find_lost(state.world.services, state.world.tasks, lease=LEASE)
        assert [epoch for (epoch,) in rows] == sorted(epoch for _, epoch in found), state.world
        lost += len(rows)
    assert lost > SAMPLES / 20


def test_the_fence(stored: Iterator[Stored]) -> None:
    """Which reports are about the current try of their task."""
    current = 0
    for state in stored:
        state.conn.execute(
            f"select set_config('evenflow.lead', 'true', false), set_config('evenflow.runs', '{{{state.run_key}}}', false)"
        )
        taken = inbox.take_reports(state.conn, limit=100).all()
        expected = sorted(
            (said.epoch, i if task.dispatch and said.epoch == task.epoch else None)
            for i, task in enumerate(state.world.tasks)
            for said in task.inbox
        )
        assert sorted((r.epoch, r.task_index) for r in taken) == expected, state.world
        current += sum(1 for r in taken if r.task_index is not None)
    assert current > SAMPLES / 10
