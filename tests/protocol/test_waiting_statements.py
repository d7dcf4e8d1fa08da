"""The model's copies of what the API and the sweep do with triggers, on PostgreSQL, in states that the explorer has reached."""

from __future__ import annotations

import random
from typing import Any

import pytest

from evenflow.core.limits import LEASE_S
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.store.db.rows import execute
from tests.protocol.state import NOBODY
from tests.protocol.waiting import Bounds, Rules, Waiting
from tests.protocol.waiting_state import Deferral, World

SAMPLES = 60
SERVICES = 1_000  # the id of the first
LEASE = Rules().lease
LOST_AFTER_S = 10.0
SPEC = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python"),))


@pytest.fixture(scope="module")
def sampled() -> list[World]:
    """States in which the task waits, or has resumed."""
    waiting = Waiting(Rules(), Bounds(faults=2, doubled=True, fails=1, defers=2))
    r, found = random.Random(1), []
    while len(found) < SAMPLES:
        world = waiting.initial()
        for _ in range(r.randint(5, 30)):
            world = r.choice(list(waiting.steps(world)))[1]
        if world.task.deferral and world.services:
            found.append(world)
    return found


def store(world: Any, state: World) -> Deferral:
    """The rows of a state, in a transaction that is rolled back. Answers the deferral."""
    row = state.task.deferral
    assert row
    for s, service in enumerate(state.services):
        world.conn.execute(
            "insert into service (service_id, kind, name, host, pid, version, state, beat_at)"
            " overriding system value values (%s, 'triggerer', 't', 'h', 1, '0', %s, now() - make_interval(secs => %s))",
            [SERVICES + s, service.state, service.age * (LEASE_S + 1) / LEASE],
        )
    world.conn.execute(
        "insert into deferral (run_key, task_index, map_index, epoch, queue, trigger, sealed, holds, pool_slots, retake,"
        " retake_slots, began_at, ran_s, ready_at, triggerer_id, claim_number, claimed_at, claim_key, purpose)"
        " values (%s, 0, -1, %s, 'default', 'module.T', '', '{}', 0, '{}', 0,"
        " now(), 0, now(), %s, %s, now() - interval '1 minute', 'k', %s)",
        [world.run, row.epoch, SERVICES + row.holder if row.holder != NOBODY else None, row.claim, row.purpose or None],
    )
    for said in state.task.inbox:
        if said.what == "event":
            world.conn.execute("insert into report (run_key, kind, epoch) values (%s, 'event', %s)", [world.run, said.epoch])
    return row


def holder(world: Any) -> tuple[int, int]:
    (service, claim) = world.conn.execute("select triggerer_id, claim_number from deferral").fetchone()
    return NOBODY if service is None else service - SERVICES, claim


class Stored:
    def __init__(self, world: Any) -> None:
        world.add_dag(SPEC)
        self.conn, self.run = world.conn, world.trigger("d")


@pytest.fixture
def stored(world: Any) -> Stored:
    return Stored(world)


def test_claims(stored: Stored, sampled: list[World]) -> None:
    taken = 0
    for state in sampled:
        for s, service in enumerate(state.services):
            with stored.conn.transaction(force_rollback=True):
                row = store(stored, state)
                names = {"service_id": SERVICES + s, "claim_key": "new", "capacity": 9, "queues": ["default"], "lease_s": LEASE_S}
                execute(stored.conn, "triggers/claim", names)
                may = row.holder == NOBODY and not row.purpose and service.state == "active" and service.age < LEASE
                assert holder(stored) == ((s, row.claim + 1) if may else (row.holder, row.claim)), state
                taken += may
    assert taken > SAMPLES / 6


def test_what_is_given_back(stored: Stored, sampled: list[World]) -> None:
    """Only the claim that is named."""
    given = 0
    for state in sampled:
        for claim in range(3):
            with stored.conn.transaction(force_rollback=True):
                row = store(stored, state)
                key = {"run_keys": stored.run, "tasks": 0, "maps": -1, "epochs": row.epoch, "claims": claim}
                execute(stored.conn, "triggers/give_back", {name: f"{{{number}}}" for name, number in key.items()})
                is_given = row.claim == claim and row.holder != NOBODY and not row.purpose
                assert holder(stored) == ((NOBODY, claim) if is_given else (row.holder, row.claim)), state
                given += is_given
    assert given > SAMPLES / 6


def test_what_lost_and_stopped_triggerers_had(stored: Stored, sampled: list[World]) -> None:
    freed = 0
    for state in sampled:
        with stored.conn.transaction(force_rollback=True):
            row = store(stored, state)
            execute(stored.conn, "leases/release_triggers")
            gone = row.holder != NOBODY and state.services[row.holder].state != "active" and not row.purpose
            assert holder(stored) == ((NOBODY if gone else row.holder), row.claim), state
            freed += gone
    assert freed > 0


def test_what_a_beat_recovers_and_stops(stored: Stored, sampled: list[World]) -> None:
    recovered = stopped = 0
    for state in sampled:
        for s in range(len(state.services)):
            for listed in ([], [state.task.epoch], [state.task.deferral.epoch]):  # type: ignore[union-attr]
                with stored.conn.transaction(force_rollback=True):
                    row = store(stored, state)
                    names = {
                        "service_id": SERVICES + s,
                        "epochs": f"{{{','.join(map(str, listed))}}}",
                        "lost_after_s": LOST_AFTER_S,
                        "heard_at_s": None,
                        "asks": None,
                    }
                    rows = execute(stored.conn, "triggers/compare_listed", names).fetchall()
                    found = {epoch: is_lost for epoch, is_lost, _ in rows}
                    own = row.epoch if row.holder == s and not row.purpose else None
                    told = any(said.what == "event" and said.epoch == row.epoch for said in state.task.inbox)
                    lost = {own: True} if own is not None and own not in listed and not told else {}
                    assert found == lost | {epoch: False for epoch in listed if epoch != own}, state
                    recovered += bool(lost)
                    stopped += any(epoch != own for epoch in listed)
    assert recovered > SAMPLES / 6
    assert stopped > SAMPLES / 6
