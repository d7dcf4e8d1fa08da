"""What an autoscaler does with a fleet, loop by loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from evenflow.api.rest.fleets import _told, list_fleets
from evenflow.autoscaler.limits import FENCE_S, FOLLOW_S, FOLLOWED_S, LOOP_S
from evenflow.autoscaler.steering import Steering
from evenflow.autoscaler.target import HostTarget, Sight, UnfitTarget
from evenflow.contracts.rest.fleets import FleetLook
from evenflow.core.executors import KINDS
from evenflow.core.limits import MOST_TRIES_COUNTED
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.scaling.fleet_options import serves
from evenflow.core.scaling.plan_steps import step_words
from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.core.service_states import ObjectKind, ServiceState
from evenflow.errors import NotActing
from evenflow.killpoints import KillPoint, watch
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.sql import sql
from evenflow.store.serving import dispatch, executors, scaling, services, states
from evenflow.store.serving.scaling import FleetRow
from tests.autoscaler.world import EAGER, Fleets
from tests.observed import observations
from tests.waiting import WAIT_FOR_LOCKS, until
from tests.world import at_once


async def test_from_none_at_once_and_to_none_again(fleets: Fleets) -> None:
    """R-AS1, R-AS7: with no worker at all demand shows, and in one loop all workers are asked for; without any they all go."""
    fleets.fleet()
    steering, conn = await fleets.autoscaler()
    await steering.loop(conn)
    assert fleets.native() == []
    epochs = fleets.tries(5)
    await steering.loop(conn)
    assert fleets.native() == [("f-1", False), ("f-2", False), ("f-3", False), ("f-4", False)]
    fleets.obey()
    for epoch in epochs:
        fleets.end(epoch)
    await steering.loop(conn)
    assert [leaving for _, leaving in fleets.native()] == [True] * 4
    fleets.obey()
    await steering.loop(conn)
    assert (fleets.native(), fleets.replicas, fleets.fenced(), fleets.open_plans()) == ([], 0, [], [])
    await conn.close()


async def test_what_is_frozen_is_no_demand_and_what_many_wait_for_is_counted_to_a_limit(fleets: Fleets) -> None:
    """R-AS1: demand is what workers without end would run."""
    fleets.fleet(queues=("default", "other"))
    fleets.tries(3, dag="a")
    fleets.tries(2, dag="b")
    at_once(states.set_state(fleets.awaited, ObjectKind.DAG, "a", ServiceState.FROZEN, actor="x"))
    waiting = {row.queue: row.waiting for row in at_once(scaling.count_waiting(fleets.awaited, ["default", "other"], most=10))}
    assert waiting == {"default": 2, "other": 0}
    waiting = {row.queue: row.waiting for row in at_once(scaling.count_waiting(fleets.awaited, ["default"], most=1))}
    assert waiting == {"default": 1}
    at_once(states.set_state(fleets.awaited, ObjectKind.SYSTEM, "all", ServiceState.FROZEN, actor="x"))
    assert [row.waiting for row in at_once(scaling.count_waiting(fleets.awaited, ["default"], most=MOST_TRIES_COUNTED))] == [0]


async def test_queues_of_other_executors_are_no_demand(fleets: Fleets) -> None:
    """R-AS1, R-AS2: by their executors, whatever the fleet says that it serves; a queue that comes back counts at once."""
    fleets.fleet(queues=("default", "heavy"))
    steering, conn = await fleets.autoscaler()
    told: dict[str, Any] = {"queues": ["heavy"], "slots": 10, "options": {}, "by": "test"}
    for kind in ("kubernetes", "celery"):
        at_once(executors.set_executor(fleets.awaited, name="far", kind=kind, **told))
        fleets.tries(2, queue="heavy", dag=kind)
        await steering.loop(conn)
        assert fleets.native() == []
        at_once(executors.delete_executor(fleets.awaited, "far"))
    await steering.loop(conn)
    assert len(fleets.native()) == 3
    await conn.close()


@pytest.mark.parametrize(
    ("target", "served"),
    [("native", {"native"}), ("celery", {"celery"}), ("kubernetes", {"native", "celery"})],
)
def test_whose_tries_workers_of_a_target_get(target: str, served: set[str]) -> None:
    """R-AS2: a pod that is made for one try is no fleet's."""
    assert {kind for kind in KINDS if serves(target, kind)} == served


async def test_what_is_tried_again_or_resumes_soon_counts_when_a_fleet_looks_ahead(fleets: Fleets) -> None:
    """R-AS1: a forecast, which is off unless it is asked for; what has moved on since does not come."""
    version = fleets.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python", queue="q"),)))
    due = "insert into timer (due_at, kind, run_key, task_index, map_index, epoch) values (now() + %s, %s, %s, 0, -1, %s)"
    for kind, state, seconds, epoch in (
        ("retry", "up_for_retry", 20, 1),
        ("reschedule", "up_for_reschedule", 30, 2),
        ("trigger_timeout", "deferred", 40, 3),
        ("retry", "up_for_retry", 900, 4),
        ("retry", "running", 20, 5),
        ("execution_timeout", "deferred", 20, 6),
        ("retry", "up_for_retry", 20, -7),
    ):
        run = fleets.run(version)
        fleets.instance(run, 0, state=state, epoch=abs(epoch))
        fleets.conn.execute(due, [timedelta(seconds=seconds), kind, run, max(epoch, 0)])
    assert at_once(scaling.count_expected(fleets.awaited, ahead_s=60.0, most=10)) == {"q": 3}
    assert at_once(scaling.count_expected(fleets.awaited, ahead_s=60.0, most=1)) == {"q": 1}, "no more are looked at"
    fleets.fleet(EAGER, queues=("q",))
    steering, conn = await fleets.autoscaler()
    await steering.loop(conn)
    assert fleets.native() == []
    fleets.fleet(replace(EAGER, forecast=60.0), queues=("q",))
    await steering.loop(conn)
    assert len(fleets.native()) == 2
    assert fleets.detail("grow")["reason"] == "3 tasks expected, and there is no worker"
    await conn.close()


async def test_a_fenced_worker_takes_nothing_not_even_resumes_and_takes_them_again_when_the_fence_ends(fleets: Fleets) -> None:
    """R-AS4: intake is fenced in the database."""
    [worker] = [fleets.worker("w")]
    [first, second] = fleets.tries(2)
    fleets.conn.execute("update dispatch set class = 0 where epoch = %s", [first])
    assert at_once(scaling.put_up_fences(fleets.awaited, 7, [worker], for_s=FENCE_S)) == {"w"}
    assert fleets.claim("w", 2, resumes=2) == []
    assert at_once(scaling.put_up_fences(fleets.awaited, 8, [worker], for_s=FENCE_S)) == set()
    fleets.conn.execute("update service set fence_until = now() - interval '1 ms'")
    at_once(scaling.renew_fences(fleets.awaited, 7, for_s=FENCE_S))
    assert fleets.claim("w", 1) == [second]


@pytest.mark.parametrize("begun", ["drain", "mark", "resize"])
async def test_who_registers_anew_during_a_plan_is_not_held_by_the_fence_of_the_one_before(fleets: Fleets, begun: str) -> None:
    """R-AS3, R-AS4: its process died and was started again, and the lease of the dead one is not over: the name is fenced and takes
    tries.
    """
    fleets.fleet(replace(EAGER, min=1))
    steering, conn = await fleets.autoscaler()
    await steering.loop(conn)
    fleets.obey()
    held: list[int] = []

    def restart(point: KillPoint) -> None:
        if not held and fleets.steps()[-1] == begun:
            fleets.worker("f-1")
            held.extend(fleets.busy("f-1"))

    fleets.tries(1)
    fleets.fleet(replace(EAGER, max=0))
    with _watched(restart):
        await steering.loop(conn)
    assert held
    assert fleets.native() == [("f-1", False)]
    assert fleets.held(fleets.alive("f-1") or 0) == held
    await conn.close()


@pytest.mark.parametrize("looks_again", [True, False])
async def test_a_fence_waits_for_a_claim_and_a_claim_sees_a_fence_that_came_meanwhile(
    fleets: Fleets, looks_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-AS4: who looks behind a fence sees all that its worker will ever have, whichever of the two was first. A claim that does
    not look at the fence again when it takes its tries is found out.
    """
    if not looks_again:
        guard = "and (s.fence_until > now()) is not true"
        claim = sql("dispatch/claim").decode()
        assert claim.count(guard) == 1
        monkeypatch.setattr(
            dispatch, "sql", lambda name: claim.replace(guard, "").encode() if name == "dispatch/claim" else sql(name)
        )
    worker = fleets.worker("w")
    [first, second] = fleets.tries(2)
    _, conn = await fleets.autoscaler()
    with fleets.conn.transaction():
        assert fleets.claim("w") == [first]
        fencing = asyncio.create_task(scaling.put_up_fences(conn, 7, [worker], for_s=FENCE_S))
        await until(lambda: fleets.one(WAIT_FOR_LOCKS) == 1)
        assert not fencing.done()
    assert await fencing == {"w"}
    [seen] = await scaling.read_workers(conn, ["w"])
    assert (seen.running, seen.fence) == (1, 7)

    await scaling.take_down_fences(conn, 7)
    _, beside = await fleets.autoscaler("b")
    async with conn.transaction():
        await scaling.put_up_fences(conn, 8, [worker], for_s=FENCE_S)
        claiming = asyncio.create_task(asyncio.to_thread(fleets.claim, "w"))
        while not await _waits_for_a_lock(beside):
            assert not claiming.done()
    assert await claiming == ([] if looks_again else [second])
    assert fleets.held(worker) == ([first] if looks_again else [first, second])
    await beside.close()
    await conn.close()


async def _waits_for_a_lock(conn: Any) -> bool:
    row = await (await conn.execute(WAIT_FOR_LOCKS)).fetchone()
    return bool(row[0])


async def test_idle_workers_go_first_then_the_cheapest_and_a_busy_one_works_on(fleets: Fleets) -> None:
    """R-AS4, R-AS5: what is cheapest goes; nobody is told to end while it works."""
    fleets.fleet(replace(EAGER, target_load=0.5, up_load=0.6, down_load=0.49))
    steering, conn = await fleets.autoscaler()
    epochs = fleets.tries(4)
    await steering.loop(conn)
    fleets.obey()
    for name, for_s in (("f-1", 7_200.0), ("f-2", 60.0), ("f-3", 600.0)):
        epochs.remove(*fleets.busy(name, for_s=for_s))
    fleets.end(*epochs)
    fleets.end(fleets.held(fleets.alive("f-3") or 0)[0])
    fleets.conn.execute("update fleet set policy = policy || '{\"max\": 1}'")
    await steering.loop(conn)
    assert fleets.native() == [("f-1", False), ("f-2", False), ("f-3", True), ("f-4", True)]
    assert fleets.fenced() == ["f-2", "f-3", "f-4"]
    assert fleets.detail("choose")["passed_over"] == ["f-1"]
    fleets.obey()
    await steering.loop(conn)
    assert fleets.native() == [("f-1", False), ("f-2", False)], "it is fenced, and works on"
    fleets.end(fleets.held(fleets.alive("f-2") or 0)[0])
    await steering.loop(conn)
    fleets.obey()
    await steering.loop(conn)
    assert (fleets.native(), fleets.replicas, fleets.open_plans()) == ([("f-1", False)], 1, [])
    await conn.close()


async def test_one_that_got_a_try_between_the_choice_and_the_fence_stays(fleets: Fleets) -> None:
    """R-AS4: those that grew are released."""
    fleets.fleet(replace(EAGER, min=1))
    steering, conn = await fleets.autoscaler()
    await steering.loop(conn)
    fleets.obey()
    fleets.fleet(replace(EAGER, min=0))
    [epoch] = fleets.tries(1)
    fleets.conn.execute("update dispatch set queue = 'unseen'")

    def claim(point: KillPoint) -> None:
        if fleets.steps()[-1] == "choose":
            fleets.conn.execute("update dispatch set queue = 'default'")
            fleets.claim("f-1")

    with _watched(claim):
        await steering.loop(conn)
    assert fleets.held(fleets.alive("f-1") or 0) == [epoch]
    assert fleets.detail("load")["taken_back"] == ["f-1"]
    assert (fleets.native(), fleets.fenced(), fleets.replicas) == ([("f-1", False)], [], 1)
    await conn.close()


async def test_what_is_protected_stays_whatever_the_load(fleets: Fleets) -> None:
    """R-AS5, R-AS8: a tag of its DAG protects the worker of a task."""
    fleets.fleet(replace(EAGER, protect=("tag:keep",)))
    steering, conn = await fleets.autoscaler()
    fleets.tries(1, tags=("keep",))
    await steering.loop(conn)
    fleets.obey()
    [epoch] = fleets.busy("f-1")
    fleets.conn.execute("update dispatch set queue = 'elsewhere'")
    await steering.loop(conn)
    assert (fleets.native(), fleets.fenced()) == ([("f-1", False)], [])
    fleets.end(epoch)
    await steering.loop(conn)
    assert fleets.native() == [("f-1", True)]
    await conn.close()


async def test_a_drain_is_bounded(fleets: Fleets) -> None:
    """R-AS8: after its time a worker is told to end with what it has."""
    fleets.fleet(replace(EAGER, drain=100.0))
    steering, conn = await fleets.autoscaler()
    fleets.tries(1)
    await steering.loop(conn)
    fleets.obey()
    fleets.busy("f-1")
    fleets.fleet(replace(EAGER, drain=100.0, max=0))
    await steering.loop(conn)
    assert fleets.native() == [("f-1", False)]
    fleets.conn.execute("update scaling_step set at = at - interval '101 seconds'")
    await steering.loop(conn)
    assert fleets.native() == [("f-1", True)]
    assert fleets.detail("drain")["busy"] == ["f-1"]
    await conn.close()


async def draining(fleets: Fleets, policy: ScalingPolicy) -> tuple[Steering, AsyncConn]:
    """An autoscaler that drains the only worker, which has a try of a DAG with the tag ``keep``."""
    steering, conn = await fleets.autoscaler()
    fleets.fleet(EAGER)
    fleets.tries(1, tags=("keep",))
    await steering.loop(conn)
    fleets.obey()
    fleets.busy("f-1")
    fleets.fleet(policy)
    await steering.loop(conn)
    return steering, conn


async def test_what_is_protected_while_its_worker_drains_calls_the_drain_off(fleets: Fleets) -> None:
    """R-AS8: at once, and it is chosen again when people say otherwise; then its time begins anew."""
    policy = replace(EAGER, drain=100.0, max=0)
    steering, conn = await draining(fleets, policy)
    assert fleets.fenced() == ["f-1"]
    fleets.fleet(replace(policy, protect=("tag:keep",)))
    with observations() as seen:
        await steering.loop(conn)
    assert "drain_called_off" in {each["fact"] for each in seen}
    assert (fleets.native(), fleets.fenced(), fleets.open_plans()) == ([("f-1", False)], [], [])
    assert fleets.detail("drain")["taken_back"] == ["f-1"]
    fleets.conn.execute("update scaling_step set at = at - interval '101 seconds'")
    await steering.loop(conn)
    assert (fleets.native(), fleets.fenced()) == ([("f-1", False)], [])
    fleets.fleet(policy)
    await steering.loop(conn)
    assert (fleets.native(), fleets.fenced()) == ([("f-1", False)], ["f-1"])
    await conn.close()


async def test_what_is_protected_when_its_drain_is_over_is_not_ended(fleets: Fleets) -> None:
    """R-AS8: however long its target needed since then to say whom it would end."""
    policy = replace(EAGER, drain=100.0, max=0)
    steering, conn = await draining(fleets, policy)
    fleets.conn.execute("update scaling_step set at = at - interval '101 seconds'")
    fleets.fleet(replace(policy, protect=("tag:keep",)))
    fleets.conn.execute("update fleet set changed_at = changed_at - interval '1 hour'")
    await steering.loop(conn)
    assert (fleets.native(), fleets.fenced(), fleets.open_plans()) == ([("f-1", False)], [], [])
    await conn.close()


async def test_a_weight_a_cordon_and_a_long_task_change_nothing_of_a_drain(fleets: Fleets) -> None:
    """R-AS8: it is bounded by its time alone; who was taken out by hand stays out when it is called off."""
    policy = replace(EAGER, drain=100.0, max=0)
    steering, conn = await fleets.autoscaler()
    fleets.fleet(EAGER)
    fleets.tries(1)
    await steering.loop(conn)
    fleets.obey()
    fleets.busy("f-1", for_s=86_400.0)
    fleets.fleet(policy)
    await steering.loop(conn)
    fleets.conn.execute("insert into service_state (kind, name, state, actor) values ('worker', 'f-1', 'paused', 'me')")
    fleets.fleet(replace(policy, weights={"d": 1000.0}))
    await steering.loop(conn)
    assert (fleets.native(), fleets.fenced()) == ([("f-1", False)], ["f-1"])
    fleets.conn.execute("update scaling_step set at = at - interval '101 seconds'")
    await steering.loop(conn)
    assert fleets.native() == [("f-1", True)]
    await conn.close()


async def test_those_that_are_to_go_stay_when_they_are_needed_again(fleets: Fleets) -> None:
    """R-AS2: who still works when load returns is worth more than one that has to start."""
    fleets.fleet(EAGER)
    steering, conn = await fleets.autoscaler()
    fleets.tries(6)
    await steering.loop(conn)
    fleets.obey()
    for name, for_s in (("f-1", 900.0), ("f-2", 10.0), ("f-3", 0.0), ("f-4", 900.0)):
        fleets.busy(name, for_s=for_s)
    fleets.end(*fleets.held(fleets.alive("f-3") or 0))
    fleets.conn.execute("delete from dispatch where worker_id is null")
    fleets.fleet(replace(EAGER, max=2))
    await steering.loop(conn)
    assert fleets.fenced() == ["f-2", "f-3"]
    fleets.fleet(EAGER)
    fleets.tries(3)
    await steering.loop(conn)
    assert fleets.steps()[-2:] == ["undo", "grow"]
    assert fleets.fenced() == ["f-3"]
    assert [name for name, leaving in fleets.native() if not leaving] == ["f-1", "f-2", "f-4", "f-5"]
    await conn.close()


async def test_one_acts_and_another_takes_over_when_its_lease_is_over(fleets: Fleets) -> None:
    """R-AS3"""
    fleets.fleet()
    fleets.tries(1)
    first, one = await fleets.autoscaler("a")
    second, two = await fleets.autoscaler("b")
    assert await first.loop(one)
    assert not await second.loop(two)
    fleets.lapse()
    assert await second.loop(two)
    assert not await first.loop(one)
    with pytest.raises(NotActing):
        async with scaling.acting(one, first._holder):
            pass
    await one.close()
    await two.close()


async def test_one_that_loses_its_lease_within_a_loop_says_so_once(fleets: Fleets) -> None:
    """R-AS3: and remembers nothing of what the other one looks after by now."""

    class Overtaken(HostTarget):
        async def sight(self, conn: AsyncConn, fleet: FleetRow) -> Sight:
            fleets.lapse()
            assert await second.loop(two)
            return await super().sight(conn, fleet)

    fleets.fleet(replace(EAGER, min=1))
    first, one = await fleets.autoscaler("a", {"native": Overtaken()})
    second, two = await fleets.autoscaler("b")
    with observations() as seen:
        assert not await first.loop(one)
        assert not await first.loop(one)
    assert [each["fact"] for each in seen if each["fact"] == "acts_no_more"] == ["acts_no_more"]
    assert first.memories == {}
    assert len(fleets.native()) == 1
    await one.close()
    await two.close()


async def test_who_stands_by_looks_when_the_lease_ends_and_who_acts_looks_often_while_workers_are_about_to_go(
    fleets: Fleets,
) -> None:
    """R-AS3: a death costs the rest of a lease and a loop, whatever the dead one had begun."""
    fleets.fleet(replace(EAGER, min=1))
    (acting, one), (standby, two) = await fleets.autoscaler("a"), await fleets.autoscaler("b")
    assert await acting.loop(one)
    fleets.obey()
    assert not await standby.loop(two)
    assert (acting.rest_s, standby.rest_s) == (LOOP_S, LOOP_S)
    fleets.conn.execute("update scaling_lease set until = now() + interval '0.5 s'")
    assert not await standby.loop(two)
    assert 0 < standby.rest_s <= 0.5
    fleets.fleet(replace(EAGER, min=0))
    assert await acting.loop(one)
    assert fleets.steps()[-1] == "verify"
    assert await acting.loop(one)
    assert acting.rest_s == FOLLOW_S
    fleets.conn.execute("update scaling_step set at = at - make_interval(secs => %s)", [FOLLOWED_S])
    assert await acting.loop(one)
    assert acting.rest_s == LOOP_S, "it takes its time"
    for conn in (one, two):
        await conn.close()


async def test_one_fleet_that_fails_or_is_refused_keeps_no_other_waiting(fleets: Fleets) -> None:
    """R-AS2: and each says why none looks after it."""

    class Broken:
        async def sight(self, conn: Any, fleet: Any) -> Sight:
            raise UnfitTarget("a StatefulSet ends its pods in order") if fleet.name == "a" else RuntimeError("a defect")

        async def mark(self, fleet: Any, ranks: Any) -> None: ...
        async def unmark(self, fleet: Any, names: Any) -> None: ...
        async def resize(self, fleet: Any, replicas: int, still_acts: Any, *, again: bool) -> int:
            return replicas

        async def write(self, conn: Any, fleet: Any, replicas: int, leaving: Any) -> None: ...

        async def close(self) -> None: ...

    steering, conn = await fleets.autoscaler(targets={"native": HostTarget(), "broken": Broken()})
    fleets.fleet(name="a", queues=("a",), target="broken")
    fleets.fleet(name="b", queues=("b",), target="broken")
    fleets.fleet(name="c", queues=("c",), target="unknown")
    fleets.fleet(name="f")
    fleets.tries(1)
    await steering.loop(conn)
    assert fleets.native() == [("f-1", False)]
    assert steering.refused == {
        "a": "a StatefulSet ends its pods in order",
        "b": "its autoscaler failed (RuntimeError), and its log says more",
        "c": "Fleet 'c' has target 'unknown', which this autoscaler does not know.",
    }
    await conn.close()


async def test_a_fleet_that_cannot_be_left_ends_no_autoscaler(fleets: Fleets) -> None:
    """R-AS2: whatever its target answers when it was deleted, between two looks or amid one; the others go on."""

    class Broken(HostTarget):
        async def sight(self, conn: Any, fleet: Any) -> Sight:
            if not broken:
                return Sight([], fleet.replicas)
            if gone := at_once(scaling.delete_fleet(fleets.awaited, fleet.name)):
                raise scaling.FleetGone(str(gone))
            raise KeyError("spec")

    broken: list[bool] = []
    steering, conn = await fleets.autoscaler(targets={"native": HostTarget(), "broken": Broken()})
    fleets.fleet(name="a", queues=("a",), target="broken")
    fleets.fleet(name="b", queues=("b",), target="broken")
    fleets.fleet()
    await steering.loop(conn)
    broken.append(True)
    assert at_once(scaling.delete_fleet(fleets.awaited, "a"))
    fleets.tries(1)
    with observations() as seen:
        await steering.loop(conn)
    assert [each["fleet"] for each in seen if each["fact"] == "fleet_failed"] == ["a", "b"]
    assert (fleets.native(), list(steering.memories)) == ([("f-1", False)], ["f"])
    await conn.close()


async def test_who_takes_over_knows_what_was_seen_before(fleets: Fleets) -> None:
    """R-AS3: down_after does not begin anew with each autoscaler."""
    policy = ScalingPolicy(min=0, max=4, slots=2, up_after=0, down_after=40)
    fleets.fleet(policy)
    steering, conn = await fleets.autoscaler("a")
    epochs = fleets.tries(1)
    await steering.loop(conn)
    fleets.obey()
    fleets.end(*epochs)
    for _ in range(4):
        fleets.conn.execute("update scaling_look set at = at - interval '12 seconds'")
        steering.memories["f"].kept_at = 0.0
        await steering.loop(conn)
    fleets.conn.execute("delete from scaling_look where running + waiting > 0")
    fleets.lapse()
    other, second = await fleets.autoscaler("b")
    fleets.conn.execute("update scaling_look set at = at - interval '6 seconds'")
    await other.loop(second)
    assert fleets.native() == [("f-1", True)]
    await conn.close()
    await second.close()


async def test_why_no_autoscaler_looks_after_a_fleet_is_told_in_the_place_of_its_reason(fleets: Fleets) -> None:
    """R-AS2: what the one that acts says of it; or that none is alive, and what to type."""
    fleets.fleet(target="unknown")
    fleets.fleet(name="g", queues=("g",))
    steering, conn = await fleets.autoscaler()
    await steering.loop(conn)
    assert list(steering.refused) == ["f"]
    await services.beat(conn, service_id=steering._holder, kind="autoscaler", detail={"refused": steering.refused})
    told = {fleet.name: fleet.reason for fleet in (await list_fleets(conn)).items}
    assert told["f"] == "Fleet 'f' has target 'unknown', which this autoscaler does not know."
    assert told["g"] == "nothing to do"
    fleets.conn.execute("update service set state = 'stopped'")
    reasons = {fleet.reason for fleet in (await list_fleets(conn)).items}
    assert reasons == {"No autoscaler is alive, so it stays as large as it is. Start one: evenflow autoscaler"}
    await conn.close()


class Killed(BaseException):
    pass


@contextlib.contextmanager
def _watched(watcher: Any) -> Iterator[None]:
    watch(watcher)
    try:
        yield
    finally:
        watch(None)


@pytest.mark.system
@pytest.mark.parametrize("scene", ["grow", "shrink", "grown"])
async def test_killed_after_any_step_the_next_loop_finishes_or_undoes_it(fleets: Fleets, scene: str) -> None:
    """R-AS3: whoever comes next restores every worker to service, and the fleet has the size that it is to have. Every kill point
    that an autoscaler has is among those that are passed, though nobody is chosen where a fleet grows.
    """
    points, met = 0, set()
    for fatal in range(1, 100):
        passed = 0
        fleets.conn.execute("delete from fleet")
        fleets.conn.execute("update service set state = 'stopped', fence = null, fence_until = null")
        fleets.conn.execute("delete from dispatch")
        fleets.fleet(replace(EAGER, min=2))
        steering, conn = await fleets.autoscaler(f"a{fatal}")
        fleets.lapse()
        await steering.loop(conn)
        fleets.obey()
        if scene == "grow":
            fleets.fleet(replace(EAGER, min=3))
        else:
            fleets.fleet(replace(EAGER, min=1))

        def die(point: KillPoint, fatal: int = fatal) -> None:
            nonlocal passed
            passed += 1
            met.add(point)
            if scene == "grown" and fleets.steps()[-1] == "choose" and not fleets.one("select count(*) from dispatch"):
                fleets.tries(1)
                fleets.claim("f-2")
            if passed == fatal:
                raise Killed

        with _watched(die):
            try:
                await steering.loop(conn)
                fleets.obey()
                await steering.loop(conn)
                killed = False
            except Killed:
                killed = True
        await conn.close()
        fleets.lapse()
        successor, conn = await fleets.autoscaler(f"b{fatal}")
        await successor.loop(conn)
        fleets.obey()
        await successor.loop(conn)
        fleets.obey()
        await successor.loop(conn)
        expected = 3 if scene == "grow" else 1
        assert [leaving for _, leaving in fleets.native()] == [False] * expected, f"killed at point {fatal}"
        assert (fleets.replicas, fleets.fenced(), fleets.open_plans()) == (expected, [], []), f"killed at point {fatal}"
        await conn.close()
        if not killed:
            break
        points += 1
    assert points == {"grow": 4, "shrink": 29, "grown": 39}[scene]
    decides = set() if scene == "grow" else {KillPoint.STEP_DECIDED}
    assert met == {point for point in KillPoint if point.startswith("autoscaler-")} - {KillPoint.STEP_DECIDED} | decides


async def test_fences_whose_plan_is_gone_are_taken_down(fleets: Fleets) -> None:
    """R-AS3: a fleet that is deleted in the middle leaves no worker out of service."""
    worker = fleets.worker("w")
    at_once(scaling.put_up_fences(fleets.awaited, 99, [worker], for_s=FENCE_S))
    steering, conn = await fleets.autoscaler()
    await steering.loop(conn)
    assert fleets.fenced() == []
    await conn.close()


@pytest.mark.system
@pytest.mark.parametrize("returns", [False, True])
@pytest.mark.parametrize("scene", ["grow", "shrink"])
async def test_a_fleet_that_is_deleted_after_any_step_ends_its_plans_quietly(fleets: Fleets, scene: str, returns: bool) -> None:
    """R-AS3: no worker stays out of service, and nobody is told of a failure; nor when a fleet of that name is made at once."""
    points = 0
    for fatal in range(1, 100):
        passed = 0
        fleets.conn.execute("delete from fleet")
        fleets.conn.execute("update service set state = 'stopped', fence = null, fence_until = null")
        fleets.fleet(replace(EAGER, min=2))
        steering, conn = await fleets.autoscaler(f"a{fatal}")
        fleets.lapse()
        await steering.loop(conn)
        fleets.obey()
        fleets.fleet(replace(EAGER, min=3 if scene == "grow" else 1))

        def delete(point: KillPoint, fatal: int = fatal) -> None:
            nonlocal passed
            passed += 1
            if passed == fatal:
                assert at_once(scaling.delete_fleet(fleets.awaited, "f"))
                if returns:
                    fleets.fleet(replace(EAGER, min=1))

        with observations() as seen:
            with _watched(delete):
                await steering.loop(conn)
                fleets.obey()
                await steering.loop(conn)
            fleets.obey()
            await steering.loop(conn)
        await conn.close()
        if passed < fatal:
            break
        facts = [each["fact"] for each in seen]
        assert (facts.count("fleet_gone"), facts.count("fleet_failed")) == (1, 0), f"deleted at point {fatal}: {seen}"
        assert (fleets.fenced(), fleets.open_plans(), len(fleets.native())) == ([], [], int(returns)), f"deleted at point {fatal}"
        assert list(steering.memories) == ["f"] * returns
        points += 1
    assert points == {"grow": 4, "shrink": 29}[scene]


async def test_a_worker_that_drains_by_itself_goes_first_and_once(fleets: Fleets) -> None:
    """R-AS4, R-AS8: by a spot notice, or as its node is drained. It takes nothing, so the others are what the fleet has."""
    fleets.fleet(replace(EAGER, min=2))
    steering, conn = await fleets.autoscaler()
    await steering.loop(conn)
    fleets.obey()
    fleets.tries(1)
    held = fleets.busy("f-1")
    at_once(services.beat(fleets.awaited, service_id=fleets.alive("f-1") or 0, kind="worker", state="draining"))
    fleets.fleet(replace(EAGER, min=1))
    for _ in range(3):
        await steering.loop(conn)
    assert fleets.steps() == ["grow", "choose", "fence", "load", "release", "drain"]
    assert (fleets.fenced(), fleets.native()) == (["f-1"], [("f-1", False), ("f-2", False)])
    fleets.end(*held)
    await steering.loop(conn)
    fleets.obey()
    await steering.loop(conn)
    assert (fleets.native(), fleets.fenced(), fleets.open_plans()) == ([("f-2", False)], [], [])
    await conn.close()


async def test_slots_of_other_workers_count_and_those_taken_out_by_hand_do_not(fleets: Fleets) -> None:
    """R-AS1: load is consumed over available."""
    fleets.fleet()
    fleets.worker("other", slots=8)
    fleets.tries(4)
    steering, conn = await fleets.autoscaler()
    await steering.loop(conn)
    assert fleets.native() == []
    at_once(states.set_state(fleets.awaited, ObjectKind.WORKER, "other", ServiceState.PAUSED, actor="x"))
    await steering.loop(conn)
    assert len(fleets.native()) == 3
    await conn.close()


def cordon(fleets: Fleets, name: str) -> None:
    at_once(states.set_state(fleets.awaited, ObjectKind.WORKER, name, ServiceState.PAUSED, actor="x"))


async def test_a_name_that_was_paused_is_in_service_when_the_fleet_gives_it_to_a_new_worker(fleets: Fleets) -> None:
    """R-AS8: a pause of a worker that is gone keeps no later one from work; a live one of that name keeps it."""
    cordon(fleets, "f-1")
    fleets.worker("f-2")
    cordon(fleets, "f-2")
    fleets.fleet()
    steering, conn = await fleets.autoscaler()
    epochs = fleets.tries(4)
    await steering.loop(conn)
    fleets.obey()
    assert fleets.all("select name from service_state where kind = 'worker'") == ["f-2"]
    assert fleets.claim("f-1") == epochs[:1]
    await conn.close()


async def test_a_pause_by_hand_goes_with_its_worker(fleets: Fleets) -> None:
    """R-AS8: nothing stays in the list of what is out of service of a worker that the fleet has ended."""
    fleets.fleet()
    steering, conn = await fleets.autoscaler()
    fleets.tries(2)
    await steering.loop(conn)
    fleets.obey()
    cordon(fleets, "f-1")
    await steering.loop(conn)
    assert fleets.native()[0] == ("f-1", True)
    fleets.obey()
    assert fleets.all("select name from service_state") == []
    await conn.close()


async def test_a_worker_taken_out_by_hand_is_replaced_also_at_the_most_and_goes_when_it_is_idle(fleets: Fleets) -> None:
    """R-AS2, R-AS5: the fleet counts it as none, neither of what it has nor of what it may have."""
    fleets.fleet(replace(EAGER, down_after=3_600.0))
    steering, conn = await fleets.autoscaler()
    fleets.tries(9)
    await steering.loop(conn)
    fleets.obey()
    for number in range(1, 5):
        fleets.busy(f"f-{number}")
    cordon(fleets, "f-1")
    await steering.loop(conn)
    assert [name for name, leaving in fleets.native() if not leaving] == ["f-1", "f-2", "f-3", "f-4", "f-5"]
    fleets.obey()
    await steering.loop(conn)
    assert (len(fleets.native()), fleets.fenced(), fleets.open_plans()) == (5, [], [])
    fleets.end(*fleets.held(fleets.alive("f-1") or 0))
    await steering.loop(conn)
    assert fleets.native() == [("f-1", True), *((f"f-{number}", False) for number in range(2, 6))]
    words = step_words("choose", fleets.detail("choose"), is_done=True, is_open=False)
    assert words[0] == "4 workers as before, and 1 goes: taken out of service by hand, and idle"
    fleets.obey()
    await steering.loop(conn)
    assert (len(fleets.native()), fleets.replicas, fleets.open_plans()) == (4, 4, [])
    await conn.close()


async def test_whom_a_person_took_out_does_not_stay_in_the_place_of_one_that_is_needed(fleets: Fleets) -> None:
    """R-AS2: taking back one that was to go is quicker than a new one, unless it takes nothing."""
    fleets.fleet()
    steering, conn = await fleets.autoscaler()
    fleets.tries(2)
    await steering.loop(conn)
    fleets.obey()
    for name in ("f-1", "f-2"):
        fleets.busy(name)
    fleets.fleet(replace(EAGER, max=1))
    await steering.loop(conn)
    [going] = fleets.fenced()
    cordon(fleets, going)
    fleets.fleet()
    fleets.tries(2)
    await steering.loop(conn)
    assert fleets.fenced() == [going]
    assert "undo" not in fleets.steps()
    await conn.close()


async def test_what_runs_on_a_worker_taken_out_by_hand_is_told_as_running(fleets: Fleets) -> None:
    """R-AS1: it asks for no slot of the fleet, and it runs all the same."""
    fleets.fleet()
    steering, conn = await fleets.autoscaler()
    fleets.tries(1)
    await steering.loop(conn)
    fleets.obey()
    fleets.busy("f-1")
    cordon(fleets, "f-1")
    steering.memories["f"].kept_at = 0.0
    await steering.loop(conn)
    look = steering.memories["f"].look
    assert look is not None
    assert (look.running, look.aside, look.replicas, look.out_of_service) == (0, 1, 0, 1)
    [told] = (await list_fleets(conn)).items
    assert (told.running, told.out_of_service, told.min, told.max) == (1, 1, 0, 4)
    [seen] = [FleetLook(**_told(row)) for row in await scaling.list_looks(conn, "f", since=0, limit=1)]
    assert (seen.running, seen.aside, seen.replicas, seen.out_of_service) == (1, 1, 0, 1), (
        "what a chart shows is what the page says"
    )
    fleets.tries(1)
    await steering.loop(conn)
    assert step_words("grow", fleets.detail("grow"), is_done=True, is_open=False) == [
        "0 workers and 1 out of service to 1: 1 task here, and there is no worker",
        "seen: 1 task running (1 on workers that get no more), 1 waiting; 0 slots",
    ]
    await conn.close()


async def test_a_worker_of_another_queue_stands_for_none_of_a_fleet(fleets: Fleets) -> None:
    """R-AS5: with the token of another queue one is called like one that works, which would look idle, or like one that is about to
    come, whose slots would count: the fleet would not grow.
    """
    fleets.fleet(replace(EAGER, min=2))
    steering, conn = await fleets.autoscaler()
    await steering.loop(conn)
    fleets.worker("f-1")
    fleets.worker("f-2", slots=16, queues=("cheap",))
    fleets.tries(1)
    fleets.busy("f-1")
    fleets.worker("f-1", slots=16, queues=("cheap",))
    await steering.loop(conn)
    look = steering.memories["f"].look
    assert look is not None
    assert (look.ready, look.running) == (2, 1)
    fleets.fleet(replace(EAGER, min=1))
    await steering.loop(conn)
    assert fleets.detail("choose")["running"] == {"f-2": 0}
    await conn.close()
