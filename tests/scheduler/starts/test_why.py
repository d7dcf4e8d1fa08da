"""Why a task does not run: the answer names what is in its way, and with one more of that the first in line starts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from evenflow.contracts.rest.why import Why
from evenflow.core.explain import Explainer
from evenflow.core.model import DagSpec, GroupSpec, MapInput, Mapping, TaskSpec
from evenflow.core.selection.pool_policy import PoolPolicy
from evenflow.core.sharing import SharingRule
from evenflow.core.trigger_rules import TriggerRule
from evenflow.core.why import (
    Ages,
    AwaitsPast,
    AwaitsRetry,
    AwaitsUpstreams,
    AwaitsWorker,
    FailedUpstream,
    Finished,
    FullLimit,
    KeptPool,
    NextRound,
    NoScheduler,
    OutOfService,
    PastTask,
    Paused,
    RunAfter,
    RunEnded,
    Running,
    SharedSlots,
    UpstreamFailed,
    WhyNot,
)
from evenflow.errors import DagNotFound, ParamError
from evenflow.explaining import why
from evenflow.explaining.plan import read_plan
from evenflow.store.db.connect import connect_async
from evenflow.store.serving.dag_limits import change_limits
from evenflow.store.serving.pools import set_pool, set_sharing
from tests.scheduler.closing import set_state
from tests.scheduler.world import World


@dataclass
class Asking:
    """A world, and the connection of an API that is asked about it."""

    world: World
    conn: psycopg.AsyncConnection[Any]

    async def why(self, run_key: int, task_id: str, map_index: int = -1) -> Why:
        dag_id, run_id = self.world.conn.execute("select dag_id, run_id from dag_run where run_key = %s", [run_key]).fetchone()
        return await why.explain(self.conn, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)

    async def reason(self, run_key: int, task_id: str, map_index: int = -1) -> WhyNot:
        (reason,) = (await self.why(run_key, task_id, map_index)).reasons
        return reason

    async def raise_by_one(self, limit: FullLimit | KeptPool, spec: DagSpec | None = None) -> None:
        """As the API does it: a pool by name, a limit of a DAG with the next version of its file; an executor in its table."""
        if isinstance(limit, KeptPool) or limit.limit == "pool":
            await set_pool(self.conn, limit.name, slots=limit.capacity + 1, description=None, policy=None)
        elif limit.limit == "executor":
            self.world.resize("executor", limit.name, limit.capacity + 1)
        else:
            assert spec is not None
            async with self.conn.transaction():
                await change_limits(self.conn, [_with_more(spec, limit.limit)])


def _with_more(spec: DagSpec, kind: str) -> DagSpec:
    def raised(settings: DagSpec | TaskSpec, name: str) -> dict[str, Any]:
        now = getattr(settings, name)
        return {} if now is None else {name: now + 1}

    match kind:
        case "run":
            return replace(spec, **raised(spec, "max_active_tasks"))
        case "dag_runs":
            return replace(spec, **raised(spec, "max_active_runs"))
    name = {"dag_task": "max_active_tis_per_dag", "run_task": "max_active_tis_per_dagrun"}[kind]
    return replace(spec, tasks=tuple(replace(task, **raised(task, name)) for task in spec.tasks))


@pytest.fixture
async def asking(world: World, database_url: str) -> AsyncIterator[Asking]:
    world.service("scheduler", "s")
    async with await connect_async(database_url, name="test") as conn:
        yield Asking(world, conn)


def task(task_id: str, **settings: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", **settings)


def mapped(length: int) -> Mapping:
    return Mapping(inputs=(MapInput(name="x", length=length),))


def five(**settings: Any) -> tuple[TaskSpec, ...]:
    """The first in line is ``t5``, the last ``t1``."""
    return tuple(task(f"t{n}", priority_weight=n, **settings) for n in range(1, 6))


def dag(*tasks: TaskSpec, dag_id: str = "d", **settings: Any) -> DagSpec:
    return DagSpec(dag_id=dag_id, tasks=tasks, **{"max_active_tasks": None, "max_active_runs": None, **settings})


SETTINGS: dict[str, Callable[[], DagSpec]] = {
    "pool": lambda: dag(*five(pool="p")),
    "executor": lambda: dag(*five()),
    "run": lambda: dag(*five(), max_active_tasks=2),
}


@pytest.mark.parametrize("kind", SETTINGS)
async def test_one_more_of_what_it_names_starts_the_first_in_line(asking: Asking, kind: str) -> None:
    """R-ST10: pool, executor, max_active_tasks."""
    world, spec = asking.world, SETTINGS[kind]()
    world.pool("p", 2)
    if kind == "executor":
        world.resize("executor", "worker", 2)
    world.add_dag(spec)
    run = world.trigger("d")
    world.advance()
    world.claim(1)
    for ahead, waits in enumerate(("t3", "t2", "t1")):
        reason = await asking.reason(run, waits)
        assert isinstance(reason, FullLimit)
        assert (reason.limit, reason.capacity, reason.used, reason.wanted) == (kind, 2, 2, 1)
        assert (reason.ahead, reason.counted, reason.held_by) == (ahead, True, 2)
        assert [(holder.task_id, holder.worker) for holder in reason.holders] == [("t5", "w"), ("t4", None)]
        assert reason.unclaimed == 1
    first = await asking.reason(run, "t3")
    assert isinstance(first, FullLimit)
    await asking.raise_by_one(first, spec)
    world.advance()
    assert [t.task_id for t in world.claim()] == ["t4", "t3"]
    assert isinstance(await asking.reason(run, "t3"), Running)


async def test_instances_of_a_task_over_all_runs(asking: Asking) -> None:
    """R-ST10: max_active_tis_per_dag."""
    world, spec = asking.world, dag(task("t", max_active_tis_per_dag=1))
    world.add_dag(spec)
    runs = [world.trigger("d") for _ in range(3)]
    world.advance()
    reason = await asking.reason(runs[2], "t")
    assert isinstance(reason, FullLimit)
    assert (reason.limit, reason.name, reason.capacity, reason.ahead) == ("dag_task", "d/t", 1, 1)
    first = await asking.reason(runs[1], "t")
    assert isinstance(first, FullLimit)
    assert first.ahead == 0
    await asking.raise_by_one(first, spec)
    world.advance()
    assert [t.run_key for t in world.claim()] == runs[:2]


async def test_instances_of_a_task_in_its_run(asking: Asking) -> None:
    """R-ST10, R-ST6: max_active_tis_per_dagrun; of a mapped task also instances without a row have their place."""
    world, spec = asking.world, dag(task("m", mapping=mapped(1000), max_active_tis_per_dagrun=2))
    world.add_dag(spec)
    run = world.trigger("d")
    world.advance()
    reason = await asking.reason(run, "m", 999)
    assert isinstance(reason, FullLimit)
    assert (reason.limit, reason.capacity, reason.ahead, reason.held_by) == ("run_task", 2, 997, 2)
    assert [holder.map_index for holder in reason.holders] == [0, 1]
    first = await asking.reason(run, "m", 2)
    assert isinstance(first, FullLimit)
    assert first.ahead == 0
    await asking.raise_by_one(first, spec)
    world.advance()
    assert [t.map_index for t in world.claim()] == [0, 1, 2]


async def test_runs_of_a_dag(asking: Asking) -> None:
    """R-ST10: max_active_runs; its holders are runs."""
    world, spec = asking.world, dag(task("t"), max_active_runs=1)
    world.add_dag(spec)
    runs = [world.trigger("d") for _ in range(3)]
    world.advance()
    places = [await asking.reason(run, "t") for run in runs[1:]]
    for ahead, reason in enumerate(places):
        assert isinstance(reason, FullLimit)
        assert (reason.limit, reason.name, reason.capacity, reason.used) == ("dag_runs", "d", 1, 1)
        assert (reason.ahead, reason.held_by, [holder.task_id for holder in reason.holders]) == (ahead, 1, [None])
    assert isinstance(places[0], FullLimit)
    await asking.raise_by_one(places[0], spec)
    world.advance()
    assert [world.run_state(run) for run in runs] == ["running", "running", "queued"]


async def test_queued_runs_are_in_line_by_their_priority(asking: Asking) -> None:
    """R-ST10: as they begin."""
    world = asking.world
    world.add_dag(dag(task("t"), max_active_runs=1))
    _, first, last = (world.trigger("d") for _ in range(3))
    world.advance()
    world.conn.execute("update dag_run set priority = 1 where run_key = %s", [last])
    reasons = [await asking.reason(run, "t") for run in (last, first)]
    assert [reason.ahead for reason in reasons if isinstance(reason, FullLimit)] == [0, 1]


async def test_a_pool_that_is_kept(asking: Asking) -> None:
    """R-ST10, R-ST11: a small task that a big one does not let pass; with one more slot the big one starts."""
    world = asking.world
    await set_pool(asking.conn, "p", slots=4, description=None, policy=PoolPolicy.parse("strict"))
    tasks = (
        task("held", pool="p", pool_slots=2, priority_weight=9),
        task("big", pool="p", pool_slots=3, priority_weight=5),
        task("small", pool="p", priority_weight=1),
    )
    world.add_dag(dag(*tasks))
    run = world.trigger("d")
    world.advance()
    small, big = await asking.reason(run, "small"), await asking.reason(run, "big")
    assert isinstance(small, KeptPool)
    assert (small.name, small.capacity, small.used, small.task_id, small.wanted) == ("p", 4, 2, "big", 3)
    assert (small.ahead, small.held_by, small.holders[0].slots) == (1, 1, 2)
    assert isinstance(big, FullLimit)
    assert (big.limit, big.capacity, big.used, big.wanted, big.ahead) == ("pool", 4, 2, 3, 0)
    await asking.raise_by_one(small)
    world.advance()
    assert {t.task_id for t in world.claim()} == {"held", "big"}


async def test_a_pool_that_is_shared_and_in_which_tasks_age(asking: Asking) -> None:
    """R-ST10, R-ST11: beside the full pool it is said whose turn it is, and what waiting is worth."""
    world = asking.world
    await set_pool(asking.conn, "p", slots=1, description=None, policy=None)
    await set_sharing(asking.conn, "pool", "p", SharingRule(600, "dag", {"d": 2}))
    world.add_dag(dag(task("held", pool="p", priority_weight=9), task("next", pool="p")))
    run = world.trigger("d")
    world.advance()
    full, shared, aged = (await asking.why(run, "next")).reasons
    assert isinstance(full, FullLimit)
    assert isinstance(shared, SharedSlots)
    assert (shared.limit, shared.name, shared.share_by, shared.tenant, shared.weight, shared.held) == (
        "pool",
        "p",
        "dag",
        "d",
        2,
        1,
    )
    assert isinstance(aged, Ages)
    assert (aged.aging_s, aged.waited_s < 600) == (600, True)


async def test_all_that_is_full_is_named(asking: Asking) -> None:
    """R-ST10: several limits at once, the one that must change first before the others; the task starts when each has room."""
    world, spec = asking.world, dag(*five(pool="p"), max_active_tasks=1)
    world.pool("p", 1)
    world.add_dag(spec)
    run = world.trigger("d")
    world.advance()
    reasons = (await asking.why(run, "t4")).reasons
    assert [reason.limit for reason in reasons if isinstance(reason, FullLimit)] == ["run", "pool"]
    for reason in reasons:
        assert isinstance(reason, FullLimit)
        assert [t.task_id for t in world.claim()] == (["t5"] if reason.limit == "run" else [])
        await asking.raise_by_one(reason, spec)
        world.advance()
    assert [t.task_id for t in world.claim()] == ["t4"]


async def test_the_place_counts_those_that_wait_for_this_limit_alone(asking: Asking) -> None:
    """R-ST10: a better task that a limit of its own run holds back is not ahead in the line of the pool."""
    world = asking.world
    world.pool("p", 2)
    world.add_dag(dag(*five(pool="p"), dag_id="capped", max_active_tasks=1))
    world.add_dag(dag(*five(pool="p"), dag_id="free"))
    world.trigger("capped", priority=1)
    run = world.trigger("free")
    world.advance()
    reason = await asking.reason(run, "t4")
    assert isinstance(reason, FullLimit)
    assert (reason.limit, reason.ahead) == ("pool", 0)
    await asking.raise_by_one(reason)
    world.advance()
    assert [(t.run_key, t.task_id) for t in world.claim()][-1] == (run, "t4")


async def test_upstreams_that_are_missing(asking: Asking) -> None:
    """R-ST10: by name, with their states; of a mapped one how many instances."""
    world = asking.world
    tasks = (
        task("a"),
        task("m", mapping=mapped(50), max_active_tis_per_dagrun=3),
        task("e", mapping=Mapping(inputs=(MapInput(name="x", task=0),)), upstream=(0,)),
        task("z", upstream=(0, 1, 2), trigger_rule=TriggerRule.ALL_DONE),
    )
    world.add_dag(dag(*tasks))
    run = world.trigger("d")
    world.advance()
    reason = await asking.reason(run, "z")
    assert isinstance(reason, AwaitsUpstreams)
    assert (reason.trigger_rule, reason.expands, reason.missing) == ("all_done", False, 3)
    assert [(up.task_id, up.missing, up.total, up.states) for up in reason.upstreams] == [
        ("a", 1, 1, {"queued": 1}),
        ("m", 50, 50, {"queued": 3, "scheduled": 47}),
        ("e", 1, 1, {"none": 1}),
    ]
    expanding = await asking.why(run, "e", 7)
    assert expanding.map_index == -1, "it has no instances yet"
    assert isinstance(expanding.reasons[0], AwaitsUpstreams)
    assert expanding.reasons[0].expands
    tries = world.claim()
    world.report([t for t in tries if t.task_id == "m"][:2])
    world.advance()
    reason = await asking.reason(run, "z")
    assert isinstance(reason, AwaitsUpstreams)
    assert [(up.missing, up.total) for up in reason.upstreams if up.task_id == "m"] == [(48, 50)]


async def test_tasks_of_a_mapped_group_wait_for_its_sources_and_then_for_their_own_index(asking: Asking) -> None:
    world = asking.world
    tasks = (
        TaskSpec(task_id="find", operator="python"),
        TaskSpec(task_id="out", operator="python"),
        TaskSpec(task_id="a", operator="python", upstream=(0,), group=0),
        TaskSpec(task_id="b", operator="python", upstream=(1, 2), group=0),
    )
    group = GroupSpec(group_id="g", mapping=Mapping(inputs=(MapInput(name="x", task=0),)))
    world.add_dag(DagSpec(dag_id="d", tasks=tasks, groups=(group,)))
    run = world.trigger("d")
    world.advance()
    before = await asking.reason(run, "b")
    assert isinstance(before, AwaitsUpstreams)
    assert before.expands
    assert [up.task_id for up in before.upstreams] == ["find", "out"]
    world.report([t for t in world.claim() if t.task_id == "find"], result=[1, 2])
    world.advance()
    world.report([t for t in world.claim() if t.map_index == 1])
    world.advance()
    waits = [(await asking.why(run, "b", index)).reasons[0] for index in (0, 1)]
    assert all(isinstance(reason, AwaitsUpstreams) and not reason.expands for reason in waits)
    assert [[up.task_id for up in reason.upstreams] for reason in waits if isinstance(reason, AwaitsUpstreams)] == [
        ["out", "a[0]"],
        ["out"],
    ]


async def test_a_dispatch_without_a_worker(asking: Asking) -> None:
    """R-ST10: its queue, how many are ahead of it, and who serves the queue."""
    world = asking.world
    world.add_dag(dag(*five(queue="big")))
    run = world.trigger("d")
    world.advance()
    reason = await asking.reason(run, "t3")
    assert isinstance(reason, AwaitsWorker)
    assert (reason.queue, reason.ahead, reason.counted, reason.workers, reason.slots) == ("big", 2, True, 0, 0)
    world.conn.execute("""update service set detail = '{"queues": ["default", "big"], "slots": 4}' where kind = 'worker'""")
    world.claim(1, queues=("big",))
    reason = await asking.reason(run, "t3")
    assert isinstance(reason, AwaitsWorker)
    assert (reason.ahead, reason.workers, reason.slots, reason.busy) == (1, 1, 4, 1)
    running = await asking.reason(run, "t5")
    assert isinstance(running, Running)
    assert (running.worker, running.host, running.kill_at) == ("w", "h", None)
    world.cancel(run)
    world.advance()
    killed = await asking.reason(run, "t5")
    assert isinstance(killed, Running)
    assert killed.kill_at is not None, "until its worker says that it has ended"
    assert not killed.outrun
    world.conn.execute("update service set detail = detail || jsonb_build_object('outrun', array(select epoch from dispatch))")
    unending = await asking.reason(run, "t5")
    assert isinstance(unending, Running)
    assert unending.outrun, "its worker says that it cannot"


@pytest.mark.parametrize(("state", "keeps_resumes"), [("paused", False), ("draining", False), ("frozen", True)])
async def test_a_worker_out_of_service_is_named_and_has_no_free_slots(asking: Asking, state: str, keeps_resumes: bool) -> None:
    """R-ST10, R-DQ7: what resumes is kept from it only when it is frozen."""
    world = asking.world
    world.conn.execute(
        """update service set detail = '{"queues": ["default"], "slots": 1, "resume_slots": 1}' where kind = 'worker'"""
    )
    world.add_dag(dag(*five()))
    run = world.trigger("d")
    world.advance()
    world.defer(world.claim(1))
    world.advance()
    world.fire(run, 4)
    world.advance()
    set_state(world, "worker", "w", state)
    back, new = await asking.reason(run, "t5"), await asking.reason(run, "t3")
    assert isinstance(back, AwaitsWorker)
    assert isinstance(new, AwaitsWorker)
    assert (new.workers, new.slots, new.closed, new.closed_worker) == (0, 0, 1, "w")
    assert (new.closed_state, new.closed_by, new.closed_since is None) == (state, "ada", False)
    assert (back.workers, back.closed) == ((0, 1) if keeps_resumes else (1, 0))


async def test_a_resume_may_have_slots_that_first_starts_may_not(asking: Asking) -> None:
    """R-ST10, R-DQ3: a worker with all of its ordinary slots busy and one for resumes free is no reason for these to wait."""
    world = asking.world
    world.conn.execute(
        """update service set detail = '{"queues": ["default"], "slots": 1, "resume_slots": 1}' where kind = 'worker'"""
    )
    world.add_dag(dag(*five()))
    run = world.trigger("d")
    world.advance()
    world.defer(world.claim(1))
    world.advance()
    world.claim(1)
    world.fire(run, 4)
    world.advance()
    back, new = await asking.reason(run, "t5"), await asking.reason(run, "t3")
    assert isinstance(back, AwaitsWorker)
    assert isinstance(new, AwaitsWorker)
    assert (back.resumes, back.ahead, back.slots, back.busy) == (True, 0, 2, 1)
    assert (new.resumes, new.slots, new.busy) == (False, 1, 1)


async def test_until_when_a_worker_is_to_have_claimed_it_is_said(asking: Asking) -> None:
    """R-ST10: and what becomes of it then; of what has gone elsewhere nothing."""
    world = asking.world
    options = {"queued_timeout": 600.0, "on_queued_timeout": "elsewhere", "other_queue": "burst"}
    world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python", queue="gpu", **options),)))
    run = world.trigger("d")
    world.advance()
    reason = await asking.reason(run, "a")
    assert isinstance(reason, AwaitsWorker)
    assert reason.until == reason.since + timedelta(minutes=10)
    explainer = Explainer("d", "r", "a", -1, reason.since, lambda at: at.isoformat())
    (told,) = [fact for fact in explainer.tell(reason).facts if fact.name == "queued_timeout"]
    assert told.lines == [f"over at {reason.until.isoformat()}, in 10 m 00 s; it goes to the queue burst then"]
    world.conn.execute("update timer set due_at = now()")
    world.advance()
    reason = await asking.reason(run, "a")
    assert isinstance(reason, AwaitsWorker)
    assert (reason.queue, reason.until) == ("burst", None)


async def test_a_retry_and_an_end(asking: Asking) -> None:
    """R-ST10: when the next try is due, and what came of the last one."""
    world = asking.world
    world.add_dag(dag(task("t", retries=1, retry_delay=60.0)))
    run = world.trigger("d")
    world.advance()
    world.report(world.claim(), "failed", reason="ValueError: no")
    world.advance()
    reason = await asking.reason(run, "t")
    assert isinstance(reason, AwaitsRetry)
    assert (reason.tries, reason.explanation) == (1, "ValueError: no")
    assert reason.at is not None
    world.conn.execute("update timer set due_at = now()")
    world.drain()
    reason = await asking.reason(run, "t")
    assert isinstance(reason, Finished)
    assert reason.state == "success"


async def test_pauses_dates_and_runs_that_have_ended(asking: Asking) -> None:
    """R-ST10: what holds back a whole run."""
    world = asking.world
    world.pool("p", 1)
    world.add_dag(dag(*five(pool="p")))
    run = world.trigger("d")
    world.advance()
    world.conn.execute("update dag set is_paused = true")
    world.advance()
    queued = world.trigger("d")
    assert [type(reason) for reason in (await asking.why(run, "t1")).reasons] == [Paused, FullLimit]
    assert await asking.reason(queued, "t1") == Paused(dag_id="d")
    world.conn.execute("update dag set is_paused = false")
    later = world.trigger("d", run_after="2100-01-01 00:00+00")
    assert isinstance(await asking.reason(later, "t1"), RunAfter)
    world.conn.execute(
        "insert into report (run_key, kind, epoch, payload) values (%s, 'cancel', 0, '{\"actor\": \"ada\"}')", [later]
    )
    world.advance()
    ended = await asking.reason(later, "t1")
    assert isinstance(ended, RunEnded)
    assert (ended.state, ended.explanation) == ("failed", "cancelled by ada")


async def test_nothing_in_its_way_but_nobody_to_decide(asking: Asking) -> None:
    world = asking.world
    world.add_dag(dag(task("t")))
    run = world.trigger("d")
    assert await asking.reason(run, "t") == NextRound()
    world.conn.execute("update service set state = 'lost' where kind = 'scheduler'")
    assert await asking.reason(run, "t") == NoScheduler()


async def test_what_there_is_not(asking: Asking) -> None:
    world = asking.world
    world.add_dag(dag(task("t"), task("m", mapping=mapped(3))))
    run = world.trigger("d")
    world.advance()
    with pytest.raises(DagNotFound, match=r"has no task 'nope'\. To see its tasks: evenflow tasks list d/"):
        await asking.why(run, "nope")
    with pytest.raises(DagNotFound, match="has no instance 3: the last one is 2"):
        await asking.why(run, "m", 3)
    with pytest.raises(DagNotFound, match=r"is not mapped, so it has no instance 0\. Leave --map-index out"):
        await asking.why(run, "t", 0)
    with pytest.raises(ParamError, match=r"is mapped: say which of its 3 instances\. Type for example: --map-index 0"):
        await asking.why(run, "m")


async def test_the_run_before_is_named_with_what_it_has_not_done(asking: Asking) -> None:
    tasks = (
        TaskSpec(task_id="a", operator="python", depends_on_past=True, wait_for_downstream=True),
        TaskSpec(task_id="b", operator="python", upstream=(0,)),
    )
    asking.world.add_dag(DagSpec(dag_id="d", tasks=tasks))
    first = asking.world.trigger("d", logical_date="2026-03-01 00:00+00")
    second = asking.world.trigger("d", logical_date="2026-03-02 00:00+00")
    asking.world.conn.execute("update dag_run set run_type = 'scheduled'")
    asking.world.advance()
    asking.world.report(asking.world.claim(), "failed")
    asking.world.advance()
    asking.world.service("scheduler", "s")
    (name,) = asking.world.conn.execute("select run_id from dag_run where run_key = %s", [first]).fetchone()
    missing = [PastTask(task_id="a", states={"failed": 1}), PastTask(task_id="b", states={"upstream_failed": 1})]
    assert (await asking.why(second, "a")).reasons == [AwaitsPast(run_id=name, tasks=missing)]
    asking.world.audit()


@pytest.mark.parametrize(("kind", "name"), [("pool", "p"), ("queue", "default"), ("system", "all")])
async def test_what_is_closed_is_named(asking: Asking, kind: str, name: str) -> None:
    """R-ST10, R-DQ7: a task that is ready, one that waits for a worker while it is frozen, and in the plan all that wait."""
    world = asking.world
    world.pool("p", 1)
    world.add_dag(dag(*five(pool="p")))
    run = world.trigger("d")
    world.advance()
    set_state(world, kind, name, "resume_only")
    closed, full = (await asking.why(run, "t1")).reasons
    assert isinstance(closed, OutOfService)
    assert (closed.what, closed.name, closed.state, closed.actor) == (kind, name, "resume_only", "ada")
    assert isinstance(full, FullLimit)
    plan = await read_plan(asking.conn, limit=10)
    in_words = "the whole system" if kind == "system" else f"{kind} {name}"
    assert [(blocked.closed, blocked.tasks) for blocked in plan.blocked] == [(in_words, 4)]
    assert {waiting.closed for waiting in plan.waiting} == {in_words}
    world.pool("p", 9)
    assert (await asking.reason(run, "t1")) == closed
    assert (await read_plan(asking.conn, limit=10)).starting == 0
    assert isinstance(await asking.reason(run, "t5"), AwaitsWorker)
    set_state(world, kind, name, "frozen")
    assert [type(reason) for reason in (await asking.why(run, "t5")).reasons] == [OutOfService, AwaitsWorker]
    set_state(world, kind, name, "active")
    assert (await read_plan(asking.conn, limit=10)).starting == 4


@pytest.mark.parametrize(("kind", "name"), [("dag", "d"), ("system", "all")])
async def test_a_run_that_does_not_begin_because_of_a_drain(asking: Asking, kind: str, name: str) -> None:
    """R-ST10, R-DQ7."""
    world = asking.world
    world.add_dag(dag(task("t")))
    set_state(world, kind, name, "draining")
    run = world.trigger("d")
    world.advance()
    reason = await asking.reason(run, "t")
    assert isinstance(reason, OutOfService)
    assert (reason.what, reason.name, reason.state) == (kind, name, "draining")


async def test_what_was_not_run_names_what_failed(asking: Asking) -> None:
    """However far up it is, and not what was not run either; of a mapped task the first instance."""
    world = asking.world
    tasks = (
        task("a", mapping=mapped(3), priority_weight=9),
        task("b", upstream=(0,)),
        task("c", upstream=(1,)),
        task("d", upstream=(2, 1)),
        task("other"),
    )
    world.add_dag(dag(*tasks))
    run = world.trigger("d")
    world.advance()
    for _ in range(3):
        world.report(world.claim(), "failed", reason="ValueError: no")
    world.advance()
    for task_id in ("b", "d"):
        found = await asking.reason(run, task_id)
        assert isinstance(found, UpstreamFailed)
        assert (found.failed, found.trigger_rule) == (1, "all_success")
        assert found.upstreams == [FailedUpstream(task_id="a", map_index=0, failed=3, explanation="ValueError: no")]
