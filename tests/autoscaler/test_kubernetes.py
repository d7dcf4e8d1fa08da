"""Deployments of a cluster as fleets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg.pq import TransactionStatus

from evenflow.autoscaler.kubernetes import selector_text
from evenflow.autoscaler.limits import CONFLICTS
from evenflow.autoscaler.replica_order import COST, deletion_order
from evenflow.autoscaler.steering import Steering
from evenflow.autoscaler.target import HostTarget
from evenflow.core import metrics
from evenflow.core.scaling.fleet_options import check_target
from evenflow.errors import BadValue
from evenflow.killpoints import KillPoint, watch
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import scaling, services
from tests.autoscaler.pods import PodFleets, deployment, targets_of
from tests.autoscaler.world import EAGER
from tests.kubernetes.controllers import deletion_key
from tests.kubernetes.selectors import by_labels
from tests.kubernetes.store import DEPLOYMENT, POD, STATEFUL_SET
from tests.observed import observations
from tests.waiting import until, wait_until
from tests.world import at_once

MOST_LOOPS = 100  # a plan needs three


@asynccontextmanager
async def acting(fleets: PodFleets, name: str = "a") -> AsyncIterator[tuple[Steering, AsyncConn]]:
    targets = fleets.targets()
    steering, conn = await fleets.autoscaler(name, targets)
    fleets.lapse()
    try:
        yield steering, conn
    finally:
        await targets["kubernetes"].close()
        await conn.close()


async def until_settled(fleets: PodFleets, steering: Steering, conn: AsyncConn) -> None:
    """Loops until no plan is open."""
    for _ in range(MOST_LOOPS):
        fleets.settle()
        await steering.loop(conn)
        if not fleets.open_plans():
            return
    raise AssertionError(f"after {MOST_LOOPS} loops: {fleets.steps()[-10:]}, {fleets.cluster.objects()}")


def hide(fleets: PodFleets, *epochs: int) -> None:
    """Workers have these tries, and the fleet has no need of them."""
    fleets.conn.execute("update dispatch set queue = 'elsewhere' where epoch = any(%s)", [list(epochs)])


async def test_it_grows_and_those_that_are_busy_stay(pod_fleets: PodFleets) -> None:
    """R-AS4: costs are told, the number is lowered, and just those go that were fenced; nothing is left of it afterwards."""
    pod_fleets.deploy(0)
    pod_fleets.fleet()
    async with acting(pod_fleets) as (steering, conn):
        epochs = pod_fleets.tries(8)
        await steering.loop(conn)
        assert (pod_fleets.asked, pod_fleets.replicas) == (4, 4)
        pod_fleets.settle()
        busy, *idle = random.Random(5).sample(pod_fleets.pods(), 4)
        [held] = pod_fleets.busy(busy)
        for epoch in set(epochs) - {held}:
            pod_fleets.end(epoch)
        await steering.loop(conn)
        assert pod_fleets.asked == 1
        await until_settled(pod_fleets, steering, conn)
        assert (pod_fleets.pods(), pod_fleets.costs(), pod_fleets.fenced()) == ([busy], {}, [])
        assert pod_fleets.detail("verify") == {"gone": sorted(idle), "stayed": []}
        assert pod_fleets.held(pod_fleets.alive(busy) or 0) == [held]


async def test_a_fleet_says_that_its_pods_have_other_slots_than_it_counts(pod_fleets: PodFleets) -> None:
    """R-AS2: its load is wrong until somebody says so."""
    pod_fleets.deploy(0)
    pod_fleets.fleet(replace(EAGER, slots=16))
    async with acting(pod_fleets) as (steering, conn):
        pod_fleets.tries(2)
        await steering.loop(conn)
        pod_fleets.settle()
        steering.memories["f"].kept_at = 0.0  # so that this look is kept, too
        await steering.loop(conn)
        told = "it counts 16 slots for each worker, and there are some with 2: evenflow autoscaler set f --slots 2"
        assert told in pod_fleets.one("select string_agg(reason, ' ') from scaling_look")


async def test_those_that_are_chosen_get_the_lowest_costs_by_their_rank(pod_fleets: PodFleets) -> None:
    """R-AS5: an int32, below what people may have said of others."""
    pod_fleets.deploy(3)
    pod_fleets.fleet(replace(EAGER, min=3))
    async with acting(pod_fleets) as (steering, conn):
        await steering.loop(conn)
        pod_fleets.tries(2)
        first, second, third = pod_fleets.pods()
        hide(pod_fleets, *pod_fleets.busy(first, for_s=100), *pod_fleets.busy(second, for_s=10))
        pod_fleets.fleet(replace(EAGER, min=0, drain=0.0))
        told: dict[str, int] = {}

        def look(point: KillPoint) -> None:
            told.update(pod_fleets.costs())

        watch(look)
        try:
            await steering.loop(conn)
            await until_settled(pod_fleets, steering, conn)
        finally:
            watch(None)
        assert [told[name] + 2**31 for name in (third, second, first)] == [0, 1, 2]
        assert pod_fleets.asked == 0


async def test_one_that_survives_is_taken_back_into_service(pod_fleets: PodFleets) -> None:
    """R-AS4: a pod that cannot be placed goes before all others, whatever costs say; who stays takes tries again."""
    pod_fleets.deploy(2)
    pod_fleets.fleet(replace(EAGER, min=2))
    async with acting(pod_fleets) as (steering, conn):
        await steering.loop(conn)
        pods = pod_fleets.pods()
        for node in ("node-a", "node-b"):
            pod_fleets.cluster.do(lambda node=node: cordon(pod_fleets, node))
        [found] = pod_fleets.cluster.objects(DEPLOYMENT)
        pod_fleets.cluster.replace(DEPLOYMENT, {**found, "spec": {**found["spec"], "replicas": 3}})
        wait_until(lambda: len(pod_fleets.pods()) == 3)
        [pending] = set(pod_fleets.pods()) - set(pods)
        pod_fleets.fleet(replace(EAGER, min=3))
        await steering.loop(conn)
        assert pod_fleets.replicas == 3
        begun = await scaling.list_fleets(conn, "f")
        assert begun[0].replicas == 3
        pod_fleets.fleet(replace(EAGER, min=2))
        await steering.loop(conn)
        assert pod_fleets.detail("choose")["running"] == {pending: 0}
        await until_settled(pod_fleets, steering, conn)
        assert (pod_fleets.pods(), pod_fleets.costs(), pod_fleets.fenced()) == (pods, {}, [])


def cordon(fleets: PodFleets, node: str) -> None:
    from tests.kubernetes.store import NODE

    found = fleets.cluster.store.get(NODE, "", node)
    fleets.cluster.store.replace(NODE, {**found, "spec": {"unschedulable": True}})


async def test_nothing_shrinks_while_another_one_that_works_would_go(pod_fleets: PodFleets) -> None:
    """R-AS4: a pod that is not ready goes before the cheapest, so while it is not ready and its worker lives, the number stays."""
    pod_fleets.deploy(2)
    pod_fleets.fleet(replace(EAGER, min=2))
    async with acting(pod_fleets) as (steering, conn):
        await steering.loop(conn)
        idle, busy = pod_fleets.pods()
        pod_fleets.tries(1)
        [held] = pod_fleets.busy(busy)
        hide(pod_fleets, held)

        def flap(point: KillPoint) -> None:
            if pod_fleets.steps()[-1] == "choose":
                pod_fleets.cluster.not_ready(pod_fleets.cluster.pod(busy) or {})

        pod_fleets.fleet(replace(EAGER, min=1))
        watch(flap)
        try:
            await steering.loop(conn)
        finally:
            watch(None)
        assert (pod_fleets.detail("choose")["running"], pod_fleets.asked) == ({idle: 0}, 2)
        await steering.loop(conn)
        assert (pod_fleets.asked, pod_fleets.fenced(), pod_fleets.steps()[-1]) == (2, [idle], "mark")
        pod_fleets.cluster.do(lambda: ready_again(pod_fleets, busy))
        await steering.loop(conn)
        await until_settled(pod_fleets, steering, conn)
        assert (pod_fleets.pods(), pod_fleets.held(pod_fleets.alive(busy) or 0)) == ([busy], [held])


async def test_a_pod_whose_worker_drains_by_itself_goes_first_and_once(pod_fleets: PodFleets) -> None:
    """R-AS4, R-AS8: after a spot notice: one plan, which waits for what it has, and no second one meanwhile."""
    pod_fleets.deploy(2)
    pod_fleets.fleet(replace(EAGER, min=2))
    async with acting(pod_fleets) as (steering, conn):
        await steering.loop(conn)
        drains, stays = pod_fleets.pods()
        pod_fleets.tries(1)
        held = pod_fleets.busy(drains)
        hide(pod_fleets, *held)
        await services.beat(conn, service_id=pod_fleets.alive(drains) or 0, kind="worker", state="draining")
        pod_fleets.fleet(replace(EAGER, min=1))
        for _ in range(3):
            await steering.loop(conn)
        assert (pod_fleets.steps(), pod_fleets.fenced(), pod_fleets.asked) == (
            ["choose", "fence", "load", "release", "drain"],
            [drains],
            2,
        )
        pod_fleets.end(*held)
        await until_settled(pod_fleets, steering, conn)
        assert (pod_fleets.pods(), pod_fleets.costs(), pod_fleets.fenced()) == ([stays], {}, [])


def ready_again(fleets: PodFleets, name: str) -> None:
    from tests.kubernetes.kubelet import set_condition

    found = fleets.cluster.store.get(POD, "default", name)
    set_condition(found, "Ready", True)
    fleets.cluster.store.replace(POD, found, status=True)


async def test_one_that_has_gone_by_itself_holds_up_no_other_of_its_plan(pod_fleets: PodFleets) -> None:
    """R-AS4: its node went, and a new pod is in its place: the plan lowers the number by those that are still there."""
    pod_fleets.deploy(3)
    pod_fleets.fleet(replace(EAGER, min=3))
    async with acting(pod_fleets) as (steering, conn):
        await steering.loop(conn)
        lost, stays = pod_fleets.pods()[0], []

        def lose(point: KillPoint) -> None:
            if not stays and pod_fleets.steps()[-1] == "mark":
                pod_fleets.cluster.do(lambda: pod_fleets.cluster.store.delete(POD, "default", lost, grace_s=0))
                wait_until(lambda: len(pod_fleets.pods()) == 3 and lost not in pod_fleets.pods())
                pod_fleets.settle()
                stays.extend(set(pod_fleets.pods()) - set(chosen))

        chosen = pod_fleets.pods()
        pod_fleets.fleet(replace(EAGER, min=1, down_rate=2))
        pod_fleets.tries(1)
        hide(pod_fleets, *pod_fleets.busy(chosen[2]))
        watch(lose)
        try:
            await steering.loop(conn)
        finally:
            watch(None)
        assert pod_fleets.detail("choose")["running"] == {chosen[0]: 0, chosen[1]: 0}
        assert pod_fleets.asked == 2
        await until_settled(pod_fleets, steering, conn)
        assert pod_fleets.pods() == sorted([chosen[2], *stays])


async def test_what_somebody_else_has_set_is_where_it_goes_on_from(pod_fleets: PodFleets) -> None:
    """R-AS2: a Deployment that had workers before, or is scaled by hand, is neither cut to nothing nor set back."""
    pod_fleets.deploy(3)
    pod_fleets.fleet(replace(EAGER, down_after=60.0))
    async with acting(pod_fleets) as (steering, conn):
        await steering.loop(conn)
        assert (pod_fleets.asked, pod_fleets.replicas) == (3, 3)
        [found] = pod_fleets.cluster.objects(DEPLOYMENT)
        pod_fleets.cluster.replace(DEPLOYMENT, {**found, "spec": {**found["spec"], "replicas": 2}})
        await steering.loop(conn)
        assert (pod_fleets.asked, pod_fleets.replicas) == (2, 2)
        [fleet] = await scaling.list_fleets(conn, "f")
        target = pod_fleets.targets()["kubernetes"]

        async def acts() -> None: ...

        assert await target.resize(fleet._replace(replicas=5), 4, acts, again=False) == 2, "the number is not what it was taken for"
        assert await target.resize(fleet, 1, acts, again=False) == 1
        await target.close()


@pytest.mark.parametrize(
    ("method", "path", "fault"),
    [
        ("GET", "/deployments/workers$", {"status": 500}),
        ("GET", "/pods", {"status": 429, "retry_after_s": 0}),
        ("GET", "/replicasets", {"cut": "after"}),
        ("PATCH", "/scale", {"status": 409, "times": CONFLICTS - 1}),
        ("PATCH", "/scale", {"cut": "after"}),
        ("PATCH", "/scale", {"status": 503}),
        ("PATCH", "/pods/", {"status": 500}),
        ("PATCH", "/pods/", {"cut": "before"}),
    ],
)
async def test_faults_of_the_cluster_pass(pod_fleets: PodFleets, method: str, path: str, fault: dict[str, Any]) -> None:
    """R-AS3, R-EX2: what was not answered is asked again, and has its effect once."""
    pod_fleets.deploy(2)
    pod_fleets.fleet(replace(EAGER, min=2))
    async with acting(pod_fleets) as (steering, conn):
        await steering.loop(conn)
        found = pod_fleets.cluster.fail(method, path, **fault)
        pod_fleets.fleet(replace(EAGER, min=1))
        await steering.loop(conn)
        assert not found.times
        assert pod_fleets.asked == 1
        await until_settled(pod_fleets, steering, conn)
        assert (len(pod_fleets.pods()), pod_fleets.costs(), pod_fleets.fenced()) == (1, {}, [])


async def test_a_cluster_that_does_not_answer_keeps_no_other_fleet_waiting(pod_fleets: PodFleets) -> None:
    """R-AS3: it is tried again some seconds later, and goes on where it was."""
    pod_fleets.deploy(1)
    pod_fleets.fleet(replace(EAGER, min=1))
    async with acting(pod_fleets) as (steering, conn):
        await steering.loop(conn)
        pod_fleets.cluster.stop_api()
        pod_fleets.fleet(replace(EAGER, min=2))
        await steering.loop(conn)
        asked = steering.memories["f"]
        assert asked.again_at > 0
        assert "cannot be reached" in asked.refused
        pod_fleets.cluster.start_api()
        asked.again_at = 0.0
        await steering.loop(conn)
        assert (pod_fleets.asked, asked.refused) == (2, "")


@pytest.mark.parametrize("scene", ["grow", "shrink"])
async def test_while_a_cluster_takes_its_time_no_transaction_is_open_and_what_comes_late_changes_nothing(
    pod_fleets: PodFleets, scene: str
) -> None:
    """R-AS3: another autoscaler takes over meanwhile, and the number that it has set stays, though it is the one that the first
    had read.
    """
    pod_fleets.deploy(2)
    pod_fleets.fleet(replace(EAGER, min=2))
    async with acting(pod_fleets) as (first, conn):
        await first.loop(conn)
        pod_fleets.fleet(replace(EAGER, min=3 if scene == "grow" else 1))
        with pod_fleets.cluster.hold("PATCH", "/scale") as held:
            late = asyncio.create_task(first.loop(conn))
            await until(lambda: not held.times)
            assert conn.info.transaction_status is TransactionStatus.IDLE
            async with acting(pod_fleets, "b") as (second, other):
                assert await second.loop(other)
                pod_fleets.fleet(replace(EAGER, min=2, max=2))
                await until_settled(pod_fleets, second, other)
                assert (pod_fleets.asked, pod_fleets.replicas) == (2, 2)
        assert not await late
    assert (pod_fleets.asked, pod_fleets.replicas, pod_fleets.open_plans(), pod_fleets.fenced()) == (2, 2, [], [])


async def test_a_number_that_comes_late_ends_nobody_who_is_back_in_service(pod_fleets: PodFleets) -> None:
    """R-AS3, R-AS4: nobody acted for longer than a fence lasts, so its worker took tries again, and the plan is given up."""
    pod_fleets.deploy(2)
    pod_fleets.fleet(replace(EAGER, min=2))
    async with acting(pod_fleets) as (first, conn):
        await first.loop(conn)
        pod_fleets.fleet(replace(EAGER, min=1))
        with pod_fleets.cluster.hold("PATCH", "/scale") as held:
            late = asyncio.create_task(first.loop(conn))
            await until(lambda: not held.times)
            pod_fleets.conn.execute("update service set fence_until = now() where fence is not null")
            pod_fleets.tries(2)
            pods = pod_fleets.pods()
            for pod in pods:
                hide(pod_fleets, *pod_fleets.busy(pod))
            async with acting(pod_fleets, "b") as (second, other):
                pod_fleets.fleet(replace(EAGER, min=2, max=2, down_rate=1))
                await second.loop(other)
        assert not await late
        async with acting(pod_fleets, "c") as (third, other):
            await until_settled(pod_fleets, third, other)
    assert (pod_fleets.asked, pod_fleets.replicas, pod_fleets.pods(), pod_fleets.fenced()) == (2, 2, pods, [])


async def test_a_cluster_that_is_silent_takes_no_lease_from_other_fleets(pod_fleets: PodFleets) -> None:
    """R-AS3: it takes requests and does not answer. One wait is enough for all of its fleets, and those on hosts come first."""
    for name in "abc":
        pod_fleets.fleet(replace(EAGER, min=1), name, (name,))
    pod_fleets.fleet(replace(EAGER, min=1), "z", ("z",), target="native", options={})
    targets = targets_of(pod_fleets.cluster.uri, answer_s=0.2)
    steering, conn = await pod_fleets.autoscaler("x", {**targets, "native": HostTarget()})
    with pod_fleets.cluster.hold("GET", "/deployments/workers$"):
        await steering.loop(conn)
    asked = [each.path for each in pod_fleets.cluster.asked].count("/apis/apps/v1/namespaces/default/deployments/workers")
    await targets["kubernetes"].close()
    await conn.close()
    assert (asked, pod_fleets.native("z")) == (1, [("z-1", False)])
    assert {name for name, memory in steering.memories.items() if "cannot be reached" in memory.refused} == {"a", "b", "c"}


async def test_what_cannot_be_a_fleet_is_refused_with_the_reason(pod_fleets: PodFleets) -> None:
    """R-AS4: a StatefulSet ends its pods by their numbers."""
    for options, why in (
        ({"statefulset": "workers"}, "ends its pods in the order of their numbers"),
        ({}, "needs the name of its Deployment"),
        ({"deploymnt": "x"}, "Did you mean 'deployment'"),
        ({"deployment": "x", "worker": "w"}, "or all workers had one name"),
    ):
        with pytest.raises(BadValue, match=why):
            check_target("kubernetes", options)
    with pytest.raises(BadValue, match="is one of native, celery, kubernetes"):
        check_target("kubernets", {})
    pod_fleets.fleet()
    async with acting(pod_fleets) as (steering, conn):
        await steering.loop(conn)
        assert steering.memories["f"].refused == "There is no Deployment workers in namespace default."
        pod_fleets.cluster.create(STATEFUL_SET, deployment(0))
        await steering.loop(conn)
        assert "a StatefulSet ends its pods in the order of their numbers" in steering.memories["f"].refused


async def test_costs_that_nobody_stands_for_are_taken_away(pod_fleets: PodFleets) -> None:
    """R-AS3: a fleet that was deleted in the middle, and made again, has no dangling annotations; those of others stay."""
    pod_fleets.deploy(2)
    pod_fleets.fleet(replace(EAGER, min=2))
    first, second = pod_fleets.pods()
    async with acting(pod_fleets) as (steering, conn):
        [fleet] = await scaling.list_fleets(conn, "f")
        await pod_fleets.targets()["kubernetes"].mark(fleet, {first: 3})
        found = pod_fleets.cluster.pod(second) or {}
        found["metadata"]["annotations"] = {COST: "-5"}
        pod_fleets.cluster.replace(POD, found)
        await steering.loop(conn)
        assert pod_fleets.costs() == {second: -5}


@pytest.mark.parametrize("acts", [True, False])
async def test_a_fleet_that_is_deleted_leaves_no_costs_on_its_pods(pod_fleets: PodFleets, acts: bool) -> None:
    """R-AS3: in the midst of a plan, or between two looks; those of others stay, and no number changes."""
    pod_fleets.deploy(2)
    pod_fleets.fleet(replace(EAGER, min=2))
    first = pod_fleets.pods()[0]

    def delete(point: KillPoint) -> None:
        if acts and pod_fleets.costs():
            assert at_once(scaling.delete_fleet(pod_fleets.awaited, "f"))
            watch(None)

    async with acting(pod_fleets) as (steering, conn):
        await steering.loop(conn)
        pod_fleets.fleet(replace(EAGER, min=1))
        if acts:
            watch(delete)
        else:
            [fleet] = await scaling.list_fleets(conn, "f")
            await pod_fleets.targets()["kubernetes"].mark(fleet, {first: 3})
            assert at_once(scaling.delete_fleet(pod_fleets.awaited, "f"))
        try:
            with observations() as seen:
                await steering.loop(conn)
        finally:
            watch(None)
        assert [each["fact"] for each in seen if each["level"] != "INFO"] == ["marks_cleared", *["fences_cleared"] * acts]
        assert (pod_fleets.costs(), pod_fleets.fenced(), pod_fleets.asked, steering.memories) == ({}, [], 2, {})


async def test_an_autoscaler_outside_of_any_cluster_says_what_to_set_and_looks_after_the_others(pod_fleets: PodFleets) -> None:
    """R-AS3: once, and not with a trace in each loop; also of a fleet that is deleted then."""
    pod_fleets.fleet(replace(EAGER, min=1))
    pod_fleets.fleet(replace(EAGER, min=1), "z", ("z",), target="native", options={})
    steering, conn = await pod_fleets.autoscaler("x", {**targets_of(""), "native": HostTarget()})
    with observations() as seen:
        await steering.loop(conn)
        await steering.loop(conn)
        refused = [(each["fleet"], "Set EVENFLOW_KUBERNETES" in each["reason"]) for each in seen if each["level"] != "INFO"]
        assert refused == [("f", True)]
        assert (list(steering.refused), steering._meter.value(metrics.FLEET_FAILURES, "f")) == (["f"], 2)
        assert at_once(scaling.delete_fleet(pod_fleets.awaited, "f"))
        await steering.loop(conn)
    assert pod_fleets.native("z") == [("z-1", False)]
    assert list(steering.memories) == ["z"]
    await conn.close()


class Killed(BaseException):
    pass


@pytest.mark.system
@pytest.mark.parametrize("scene", ["grow", "shrink"])
async def test_killed_after_any_step_the_next_loop_finishes_it(pod_fleets: PodFleets, scene: str) -> None:
    """R-AS3: no annotation dangles, no worker is out of service, and the number is what it is to be."""
    pod_fleets.deploy(2)
    points = 0
    for fatal in range(1, 100):
        pod_fleets.fleet(replace(EAGER, min=2))
        async with acting(pod_fleets, f"a{fatal}") as (steering, conn):
            await steering.loop(conn)
            await until_settled(pod_fleets, steering, conn)
            pod_fleets.fleet(replace(EAGER, min=3 if scene == "grow" else 1))
            passed = 0

            def die(point: KillPoint, fatal: int = fatal) -> None:
                nonlocal passed
                passed += 1
                if passed == fatal:
                    raise Killed

            watch(die)
            try:
                await steering.loop(conn)
                pod_fleets.settle()
                await steering.loop(conn)
                killed = False
            except Killed:
                killed = True
            finally:
                watch(None)
        async with acting(pod_fleets, f"b{fatal}") as (successor, conn):
            await successor.loop(conn)
            await until_settled(pod_fleets, successor, conn)
        expected = 3 if scene == "grow" else 1
        there = (pod_fleets.asked, pod_fleets.replicas, len(pod_fleets.pods()), pod_fleets.costs(), pod_fleets.fenced())
        assert there == (expected, expected, expected, {}, []), f"killed at point {fatal}"
        if not killed:
            break
        points += 1
    assert points == {"grow": 4, "shrink": 29}[scene]


# -- the order of a ReplicaSet ---------------------------------------------------------------------------------------------


def random_pod(rng: random.Random, now: datetime, uid: int) -> dict[str, Any]:
    phase = rng.choice(["Running", "Running", "Pending", "Unknown"])
    age_s = rng.choice([3, 100, 9_000])
    is_ready = phase == "Running" and rng.random() < 0.7
    since = (now - timedelta(seconds=min(rng.choice([2, 60, 5_000]), age_s))).isoformat()
    return {
        "metadata": {
            "uid": f"{uid:04}",
            "annotations": {COST: str(rng.choice([-5, 0, 7]))} if rng.random() < 0.5 else {},
            "creationTimestamp": (now - timedelta(seconds=age_s)).isoformat(),
        },
        "spec": {"nodeName": rng.choice(["a", "b", "c"])} if phase != "Pending" or rng.random() < 0.5 else {},
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": str(is_ready), "lastTransitionTime": since}],
            "containerStatuses": [{"restartCount": rng.choice([0, 0, 3])}],
        },
    }


def test_the_order_is_that_of_a_replica_set() -> None:
    """R-AS4: unassigned, pending, not ready, cost, doubled-up nodes, age, restarts."""
    now = datetime.now(UTC)
    for seed in range(300):
        rng = random.Random(seed)
        pods = [random_pod(rng, now, uid) for uid in range(12)]
        on = {node: sum(pod["spec"].get("nodeName") == node for pod in pods) for node in ("a", "b", "c", None)}
        expected = sorted(pods, key=lambda pod: (*deletion_key(pod, on[pod["spec"].get("nodeName")], now), pod["metadata"]["uid"]))
        found = deletion_order(rng.sample(pods, len(pods)), now)
        keys = [deletion_key(pod, on[pod["spec"].get("nodeName")], now)[:-1] for pod in found]
        assert keys == [deletion_key(pod, on[pod["spec"].get("nodeName")], now)[:-1] for pod in expected]


def test_pods_of_about_one_age_go_by_their_uid_whatever_their_restarts() -> None:
    now = datetime.now(UTC)
    rng = random.Random(1)
    one, other = (random_pod(rng, now, uid) for uid in (1, 2))
    for pod, ready_s, restarts in ((one, 5_000, 0), (other, 8_000, 9)):
        since = (now - timedelta(seconds=ready_s)).isoformat()
        pod |= {"spec": {"nodeName": "a"}, "metadata": {**one["metadata"], "uid": pod["metadata"]["uid"]}}
        ready = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
        pod["status"] = {"phase": "Running", "conditions": ready, "containerStatuses": [{"restartCount": restarts}]}
    assert [pod["metadata"]["uid"] for pod in deletion_order([other, one], now)] == ["0001", "0002"]


def test_a_selector_is_said_as_a_query() -> None:
    said = {
        "matchLabels": {"app": "w"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "old", "operator": "DoesNotExist"},
            {"key": "zone", "operator": "NotIn", "values": ["x"]},
            {"key": "app", "operator": "Exists"},
        ],
    }
    fits = by_labels(selector_text(said))
    assert fits({"metadata": {"labels": {"app": "w", "tier": "b"}}})
    for labels in (
        {"app": "v", "tier": "a"},
        {"app": "w"},
        {"app": "w", "tier": "a", "old": ""},
        {"app": "w", "tier": "a", "zone": "x"},
    ):
        assert not fits({"metadata": {"labels": labels}})
