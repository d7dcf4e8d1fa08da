"""What a turn starts is given to workers whose claims wait (R-ST5, R-HA5)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler import advance as turn
from evenflow.store.db.connect import connect
from evenflow.store.db.notify import DISPATCH
from tests.scheduler.world import World

CHAIN = DagSpec(
    dag_id="chain",
    tasks=(TaskSpec(task_id="a", operator="python"), TaskSpec(task_id="b", operator="python", upstream=(0,))),
    max_active_runs=None,
)


@pytest.fixture
def server(world: World) -> int:
    """An API server."""
    return world.service("api", "a")


def claimed(world: World) -> list[tuple[int | None, str | None]]:
    """Whose each try is, and under which key."""
    return world.conn.execute("select worker_id, claim_key from dispatch order by priority desc, epoch").fetchall()


def waiting(world: World) -> list[int]:
    return world.all("select service_id from service where waits_since is not null order by waits_since")


def wait(world: World, server: int, slots: int = 9, worker: int | None = None) -> str:
    """A claim of a worker finds nothing; its key."""
    own, world.worker = world.worker, worker or world.worker
    assert world.claim(slots, api=server) == []
    world.worker = own
    world.conn.execute("update service set beat_at = now()")
    return str(world.claims)


def test_a_start_is_of_the_worker_that_waits(world: World, server: int, database_url: str) -> None:
    """Its claim waits no more, is answered with it when it is asked again, and the notification says what it is."""
    world.add_dag(CHAIN)
    run = world.trigger("chain")
    key = wait(world, server)
    assert waiting(world) == [world.worker]
    with connect(database_url, name="test") as listener:
        listener.execute(f"listen {DISPATCH}")
        world.advance()
        (heard,) = listener.notifies(timeout=5, stop_after=1)
    assert claimed(world) == [(world.worker, key)]
    assert waiting(world) == []
    epoch = world.one("select epoch from dispatch")
    assert json.loads(heard.payload) == {"worker": world.worker, "key": key, "tries": [[epoch, run, 0, 1]]}
    world.claims -= 1
    (again,) = world.claim()
    assert again.epoch == epoch
    world.report([again])
    wait(world, server)
    world.advance()
    assert claimed(world) == [(world.worker, str(world.claims))], "and so is its successor"
    world.audit()


def test_who_has_waited_longest_is_served_first_and_each_has_what_it_asked_for(world: World, server: int) -> None:
    """The best go first, and what none of them takes waits for whoever comes."""
    world.add_dag(CHAIN)
    second, third = world.service(name="second"), world.service(name="third")
    keys = [wait(world, server, 1, third), wait(world, server, 2, second)]
    for priority in (1, 5, 3, 9):
        world.trigger("chain", priority=priority)
    world.advance()
    assert claimed(world) == [(third, keys[0]), (second, keys[1]), (second, keys[1]), (None, None)]


def test_a_try_that_is_to_avoid_a_worker_is_not_given_to_it(world: World, server: int) -> None:
    """R-CS5"""
    world.add_dag(replace(CHAIN, tasks=(replace(CHAIN.tasks[0], infrastructure_retries=2),)))
    world.trigger("chain")
    world.advance()
    world.report(world.claim(), "cannot_start")
    wait(world, server)
    world.advance()
    assert claimed(world) == [(None, None)]


GONE: dict[str, str] = {
    "the worker drains": "update service set state = 'draining' where kind = 'worker'",
    "the worker is lost": "update service set state = 'lost' where kind = 'worker'",
    "the worker is silent for a lease": "update service set beat_at = now() - interval '16 seconds' where kind = 'worker'",
    "the worker is fenced": "update service set fence_until = now() + interval '1 hour' where kind = 'worker'",
    "the API server has not been heard of": "update service set beat_at = now() - interval '6 seconds' where kind = 'api'",
    "a queue is frozen": "insert into service_state (kind, name, state, actor) values ('queue', 'default', 'frozen', 'test')",
    "a worker is to take less": "insert into service_state (kind, name, state, actor) values ('worker', 'w', 'draining', 'test')",
    "its claim waits no more": "update service set waiting_claim = null, waits_since = null",
}


@pytest.mark.parametrize("why", GONE)
def test_nothing_is_given_when(world: World, server: int, why: str) -> None:
    """R-CS7, R-HA5"""
    world.add_dag(CHAIN)
    world.trigger("chain")
    wait(world, server)
    world.conn.execute(GONE[why])
    world.advance()
    assert {worker for worker, _ in claimed(world)} <= {None}


def test_a_worker_that_is_to_take_less_keeps_nothing_from_others(world: World, server: int) -> None:
    """R-CS7, R-AS8: it is drained, or frozen; who waits beside it is given what it would not get."""
    world.add_dag(CHAIN)
    second = world.service(name="second")
    wait(world, server)
    key = wait(world, server, worker=second)
    world.conn.execute(GONE["a worker is to take less"])
    world.trigger("chain")
    world.advance()
    assert claimed(world) == [(second, key)]


def test_who_waits_for_other_queues_hides_nobody(world: World, server: int) -> None:
    """R-ST5: however many have waited longer for what is not there."""
    world.add_dag(CHAIN)
    key = wait(world, server)
    others = """
        insert into service (kind, name, host, pid, version, detail, waiting_claim, waits_since)
        select 'worker', 'other ' || n, host, pid, version, detail, waiting_claim || '{"queues": ["other"]}',
               waits_since - interval '1 s'
        from service, generate_series(1, 100) as n where waits_since is not null
    """
    world.conn.execute(others)
    world.trigger("chain")
    world.advance()
    assert claimed(world) == [(world.worker, key)]


ASKED_ANEW = "update service set waiting_claim = null, waits_since = null, claim_key = 'other' where kind = 'worker'"
ANSWERED = "update service set claim_key = waiting_claim ->> 'key' where kind = 'worker'"


FROZEN = "insert into service_state (kind, name, state, actor) values ('{}', '{}', 'frozen', 'test')"
FREEZES = [FROZEN.format(*of) for of in (("system", "evenflow"), ("dag", "chain"), ("pool", "default_pool"), ("worker", "w"))]


@pytest.mark.parametrize(
    "meanwhile",
    [
        ASKED_ANEW,
        ANSWERED,
        GONE["the worker is lost"],
        GONE["the worker is fenced"],
        GONE["a queue is frozen"],
        GONE["a worker is to take less"],
        *FREEZES,
    ],
)
def test_what_changes_during_the_turn_counts(
    world: World, server: int, database_url: str, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """R-CS7, R-HA5: a claim that was answered, or ended, after the turn had seen it wait is given nothing, nor who was given up,
    nor anybody past a freeze of which people were told that it holds.
    """
    world.add_dag(CHAIN)
    world.trigger("chain")
    wait(world, server)
    give = turn.give

    def late(*given: object) -> None:
        give(*given)  # type: ignore[arg-type]
        with connect(database_url, name="test") as other:
            other.execute(meanwhile)

    monkeypatch.setattr(turn, "give", late)
    world.advance()
    assert claimed(world) == [(None, None)]


def test_a_worker_that_somebody_has_locked_holds_nobody_up(world: World, server: int, database_url: str) -> None:
    """R-HA5: its try waits for whoever comes first."""
    world.add_dag(CHAIN)
    world.trigger("chain")
    wait(world, server)
    with connect(database_url, name="test") as other, other.transaction():
        other.execute("select from service where kind = 'worker' for no key update")
        world.advance()
    assert claimed(world) == [(None, None)]


def test_more_than_a_notification_holds_is_told_without_details(world: World, server: int, database_url: str) -> None:
    world.add_dag(replace(CHAIN, max_active_tasks=None))
    world.pool("default_pool", 1_000)
    for _ in range(400):
        world.trigger("chain")
    key = wait(world, server, 1_000)
    with connect(database_url, name="test") as listener:
        listener.execute(f"listen {DISPATCH}")
        world.advance()
        told = [json.loads(heard.payload) for heard in listener.notifies(timeout=1) if heard.payload]
    assert told[0]["key"] == key
    assert all(set(word) == {"worker", "key"} or len(json.dumps(word)) < 8_000 for word in told)
