"""R-CS7 from the control plane's side: when a service is lost, when nobody can be, and what becomes of tries."""

from __future__ import annotations

import pytest

from evenflow.core.limits import API_SILENCE_S, LEASE_S, STANDSTILL_S
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler.duties.leases import watch_leases
from evenflow.store.db.connect import connect
from evenflow.store.scheduling import leases
from tests.world import World

DAG = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python"),))


@pytest.fixture
def api(world: World) -> int:
    """An API server that was just heard; all is well, and has been for an hour."""
    world.conn.execute("update lease_clock set ticked_at = now(), counted_from = now() - interval '1 hour'")
    return world.service("api", "a")


def pass_time(world: World, seconds: float, *, heard: tuple[int, ...] = (), ticked: bool = True) -> None:
    """Everything that was written is older now, but for what is ``heard`` all the time, and the clock if it is ``ticked``."""
    age = {"seconds": seconds, "heard": list(heard)}
    world.conn.execute(
        "update service set beat_at = beat_at - make_interval(secs => %(seconds)s) where not service_id = any(%(heard)s)", age
    )
    world.conn.execute("update lease_clock set counted_from = counted_from - make_interval(secs => %(seconds)s)", age)
    if ticked:
        world.conn.execute("update lease_clock set ticked_at = now()")
    else:
        world.conn.execute("update lease_clock set ticked_at = ticked_at - make_interval(secs => %(seconds)s)", age)
    watch_leases(world.conn)


def state_of(world: World, service_id: int) -> str:
    return world.conn.execute("select state from service where service_id = %s", [service_id]).fetchone()[0]


def test_a_worker_whose_lease_lapsed_is_lost_and_its_tries_are_sent_again(world: World, api: int) -> None:
    """R-HA4"""
    world.add_dag(DAG)
    run = world.trigger("d")
    world.advance()
    (first,) = world.claim()
    pass_time(world, LEASE_S - 1, heard=(api,))
    assert state_of(world, world.worker) == "active"
    pass_time(world, 1.1, heard=(api,))
    assert state_of(world, world.worker) == "lost"
    world.advance()
    assert world.claim() == []  # a lost worker gets nothing
    world.conn.execute("update service set state = 'active', beat_at = now()")
    (second,) = world.claim()
    assert second.epoch != first.epoch
    assert second.try_number == first.try_number
    world.report([second])
    world.advance()
    assert world.run_state(run) == "success"


def test_while_no_api_server_lives_nobody_is_lost(world: World, api: int) -> None:
    """For three leases and more; after it everybody has a whole one to be heard."""
    pass_time(world, API_SILENCE_S + 0.5)
    for _ in range(5):
        pass_time(world, LEASE_S, ticked=False)
    assert state_of(world, world.worker) == "active"
    world.conn.execute("update service set beat_at = now() where service_id = %s", [api])
    watch_leases(world.conn)
    pass_time(world, LEASE_S - 1, heard=(api,))
    assert state_of(world, world.worker) == "active"
    pass_time(world, 1.1, heard=(api,))
    assert state_of(world, world.worker) == "lost", "it died during the outage"
    assert state_of(world, api) == "active"


def test_while_the_database_was_down_nobody_could_be_heard(world: World, api: int) -> None:
    """The servers of the API beat as soon as it is back; so do schedulers, which tick; workers take a moment."""
    pass_time(world, 10 * LEASE_S, heard=(api,), ticked=False)
    assert state_of(world, world.worker) == "active"
    pass_time(world, LEASE_S - 1, heard=(api,))
    assert state_of(world, world.worker) == "active"
    pass_time(world, 1.1, heard=(api,))
    assert state_of(world, world.worker) == "lost"


def test_a_short_gap_is_none(world: World, api: int) -> None:
    pass_time(world, LEASE_S - STANDSTILL_S, heard=(api,))
    pass_time(world, STANDSTILL_S - 0.5, heard=(api,), ticked=False)
    assert state_of(world, world.worker) == "active"
    pass_time(world, 1.0, heard=(api,))
    assert state_of(world, world.worker) == "lost"


def test_a_clock_that_is_set_back_keeps_no_dead_service_alive(world: World, api: int) -> None:
    pass_time(world, -3600, ticked=False)
    world.conn.execute("update service set beat_at = now() where service_id = %s", [api])  # as it does every few seconds
    watch_leases(world.conn)
    future = world.conn.execute("select count(*) from service where beat_at > clock_timestamp()").fetchone()
    assert future == (0,)
    pass_time(world, LEASE_S + 0.1, heard=(api,))
    assert state_of(world, world.worker) == "lost"


def test_one_scheduler_ticks_at_a_time_and_none_waits(world: World, api: int, database_url: str) -> None:
    with connect(database_url, name="other") as other, other.transaction():
        assert leases.lock_clock(other) is not None
        assert leases.lock_clock(world.conn) is None
        watch_leases(world.conn)
    assert leases.lock_clock(world.conn) is not None


def test_only_a_gap_that_somebody_has_lived_through_is_told(world: World, api: int, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody holds a lease while everything is stopped, so an ordinary restart is no news."""
    counted_from = "select counted_from > now() - interval '1 min' from lease_clock"
    pass_time(world, 148, heard=(api,), ticked=False)
    assert world.conn.execute(counted_from).fetchone()[0], "leases begin anew, of which there is none"
    assert "no scheduler was at work" not in caplog.text
    world.conn.execute("update service set started_at = now() - interval '1 day'")
    pass_time(world, 148, heard=(api,), ticked=False)
    assert "stood_s=148" in caplog.text
