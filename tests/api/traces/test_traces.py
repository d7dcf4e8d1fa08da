"""Traces of runs, as a collector of OpenTelemetry gets them."""

from __future__ import annotations

from collections import Counter

import aiohttp
import pytest

from evenflow.api import limits
from evenflow.core import metrics
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.operations import Operation
from evenflow.core.states import TaskEvent
from evenflow.core.tracing import RunTrace, read_traceparent
from evenflow.store.db.connect import connect
from evenflow.store.db.sql import sql
from evenflow.store.scheduling.operations import request
from evenflow.store.serving.traces import DueTrace
from tests.api.traces.world import World, sender
from tests.otlp import OtlpReceiver, attributes

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ONE = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python", retries=1, retry_delay=0.0),))


def ended(world: World, outcome: str = "success", spec: DagSpec = ONE, **run: object) -> int:
    world.add_dag(spec)
    run_key = world.trigger(spec.dag_id, **run)
    world.advance()
    world.report(world.claim(), outcome)
    world.advance()
    return run_key


async def test_a_run_is_told_from_its_trigger_to_its_end(world: World, collector: OtlpReceiver, database_url: str) -> None:
    """R-SP3: with the pages and the log of what it tells of."""
    run_key = ended(world, run_id="r 1")
    async with sender(database_url, collector) as telling:
        await telling.tell()
        await telling.tell()
        assert telling.meter.value(metrics.TRACE_SPANS) == len(collector.spans)
    trace = RunTrace("here", run_key)
    assert {span.trace_id.hex() for span in collector.spans} == {trace.trace_id}
    root, task, tried, ran = (collector.one(name) for name in ("run d", "t", "try 1", "run"))
    assert (root.span_id.hex(), root.parent_span_id, root.status.code) == (trace.root(1), b"", 0)
    assert (task.parent_span_id, tried.parent_span_id, ran.parent_span_id) == (root.span_id, task.span_id, tried.span_id)
    assert ran.span_id.hex() == trace.segment(world.one("select max(epoch) from task_event"))
    told = world.one("select extract(epoch from created_at) * 1000000 from dag_run")
    assert root.start_time_unix_nano == int(told) * 1000
    assert root.start_time_unix_nano <= task.start_time_unix_nano <= ran.start_time_unix_nano < ran.end_time_unix_nano
    assert ran.end_time_unix_nano == tried.end_time_unix_nano == task.end_time_unix_nano
    page = "https://evenflow.example/dags/d/runs/r%201"
    said = attributes(root)
    assert (said["cicd.pipeline.name"], said["cicd.pipeline.run.id"], said["cicd.pipeline.result"]) == ("d", "r 1", "success")
    assert said["cicd.pipeline.run.url.full"] == page
    assert attributes(task)["cicd.pipeline.task.run.url.full"] == f"{page}/tasks/t"
    log = "https://evenflow.example/api/v1/dags/d/runs/r%201/tasks/t/logs?map_index=-1&try_number=1"
    assert attributes(tried)["url.full"] == log
    assert {shown.get("Authorization", shown.get("authorization")) for shown in collector.headers} == {"Bearer shown-there"}
    assert collector.resources[0]["service.name"] == "evenflow"
    assert world.due == 0


async def test_failures_and_retries_say_why(world: World, collector: OtlpReceiver, database_url: str) -> None:
    world.add_dag(ONE)
    world.trigger("d")
    for _ in range(2):
        world.advance()
        world.conn.execute("update timer set due_at = now()")
        world.advance()
        tries = world.claim()
        world.report(tries, started=True)
        world.advance()
        world.report(tries, "failed", reason="ValueError: no", error_types=["builtins.ValueError", "builtins.Exception"])
        world.advance()
    async with sender(database_url, collector) as telling:
        await telling.tell()
    assert collector.names() >= Counter({"run d": 1, "t": 1, "try 1": 1, "try 2": 1, "run": 2})
    first, second = collector.one("try 1"), collector.one("try 2")
    assert first.end_time_unix_nano <= second.start_time_unix_nano
    for span in (first, second, *collector.named("run"), collector.one("t")):
        assert (span.status.code, span.status.message) == (2, "ValueError: no")
        assert attributes(span)["error.type"] == "builtins.ValueError"
    assert [event.name for event in first.events] == ["retry"]
    for ran in collector.named("run"):
        (event,) = ran.events
        assert attributes(event) == {"exception.type": "builtins.ValueError", "exception.message": "ValueError: no"}
    root = collector.one("run d")
    assert (root.status.code, attributes(root)["cicd.pipeline.result"]) == (2, "failure")


async def test_what_waits_without_a_process_is_told_between_its_segments(
    world: World, collector: OtlpReceiver, database_url: str
) -> None:
    world.add_dag(ONE)
    run_key = world.trigger("d")
    world.advance()
    tries = world.claim()
    world.report(tries, started=True)
    world.advance()
    world.defer(tries)
    world.advance()
    world.fire(run_key)
    world.advance()
    resumed = world.claim()
    world.report(resumed, started=True)
    world.advance()
    world.report(resumed)
    world.advance()
    async with sender(database_url, collector) as telling:
        await telling.tell()
    tried = collector.one("try 1")
    assert collector.children(tried) == ["wait for a worker", "run", "deferred", "wait for a worker", "run"]
    assert [event.name for event in tried.events] == ["defer", "resume"]
    assert attributes(collector.one("deferred"))["evenflow.trigger"] == "module.Trigger"
    trace = RunTrace("here", run_key)
    assert {span.span_id.hex() for span in collector.named("run")} == {trace.segment(t.epoch) for t in (*tries, *resumed)}


async def test_each_instance_of_a_mapped_task_is_told(world: World, collector: OtlpReceiver, database_url: str) -> None:
    parts = Mapping(inputs=(MapInput(name="part", task=0),))
    spec = DagSpec(
        dag_id="m",
        tasks=(
            TaskSpec(task_id="list", operator="python"),
            TaskSpec(task_id="load", operator="python", upstream=(0,), mapping=parts),
        ),
    )
    world.add_dag(spec)
    world.trigger("m")
    world.advance()
    world.report(world.claim(), result=[1, 2, 3])
    world.advance()
    world.report(world.claim())
    world.advance()
    async with sender(database_url, collector) as telling:
        await telling.tell()
    loads = collector.named("load")
    assert sorted(attributes(load)["evenflow.task.map_index"] for load in loads) == [0, 1, 2]
    assert attributes(loads[0])["cicd.pipeline.task.run.url.full"].endswith("?map=0")


async def test_a_cancelled_run_says_so(world: World, collector: OtlpReceiver, database_url: str) -> None:
    world.add_dag(ONE)
    run_key = world.trigger("d")
    world.advance()
    world.cancel(run_key)
    world.advance()
    world.report(world.claim(), "failed")
    world.advance()
    assert world.run_state(run_key) == "failed"
    async with sender(database_url, collector) as telling:
        await telling.tell()
    root = collector.one("run d")
    assert (root.status.code, attributes(root)["cicd.pipeline.result"]) == (2, "cancellation")


async def test_a_run_that_is_cleared_lives_again_in_the_same_trace(
    world: World, collector: OtlpReceiver, database_url: str
) -> None:
    run_key = ended(world)
    request(world.conn, [run_key], Operation(event=TaskEvent.CLEAR, actor="ada"))
    world.advance()
    world.report(world.claim())
    world.advance()
    async with sender(database_url, collector) as telling:
        await telling.tell()
    trace = RunTrace("here", run_key)
    first, second = sorted(collector.named("run d"), key=lambda span: span.start_time_unix_nano)
    assert (first.span_id.hex(), second.span_id.hex()) == (trace.root(1), trace.root(2))
    assert [(link.span_id, attributes(link)) for link in second.links] == [(first.span_id, {"evenflow.link": "cleared"})]
    assert (len(collector.children(first)), len(collector.children(second))) == (len(collector.children(second)),) * 2


async def test_a_run_joins_the_trace_of_who_asked_for_it(world: World, collector: OtlpReceiver, database_url: str) -> None:
    ended(world, traceparent=CALLER)
    async with sender(database_url, collector, ratio=0.0) as telling:
        await telling.tell()
    caller = read_traceparent(CALLER)
    assert caller is not None
    root = collector.one("run d")
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (caller.trace_id, caller.span_id)


async def test_runs_that_are_not_chosen_are_not_told(world: World, collector: OtlpReceiver, database_url: str) -> None:
    ended(world)
    ended(world, traceparent=CALLER[:-2] + "00")
    async with sender(database_url, collector, ratio=0.0) as telling:
        await telling.tell()
    assert (collector.headers, world.due) == ([], 0)


async def test_a_run_that_an_asset_made_begin_links_to_the_one_that_changed_it(
    world: World, collector: OtlpReceiver, database_url: str
) -> None:
    maker = ended(world)
    (version,) = world.conn.execute("select version_key from dag where dag_id = 'd'").fetchone()
    made = world.run(version, "made")
    world.conn.execute(
        "with event as (insert into asset_event (asset, dag_id, run_id, task_id, map_index, actor)"
        " select 'a', dag_id, run_id, 't', -1, 'task' from dag_run where run_key = %s returning event_id)"
        " insert into run_asset_event select %s, event_id from event",
        [maker, made],
    )
    world.drain()
    async with sender(database_url, collector) as telling:
        await telling.tell()
    links = [(link, root) for root in collector.named("run d") for link in root.links]
    ((link, root),) = links
    assert (link.span_id.hex(), attributes(link)) == (RunTrace("here", maker).root(1), {"evenflow.link": "asset"})
    assert root.trace_id.hex() == RunTrace("here", made).trace_id


@pytest.mark.parametrize("status", [302, 401, 404, 429, 500, 503])
async def test_a_collector_that_takes_nothing_gets_it_later(
    world: World, collector: OtlpReceiver, database_url: str, status: int
) -> None:
    """The same ids then, and nothing is shown elsewhere."""
    ended(world)
    collector.statuses = [status]
    async with sender(database_url, collector) as telling:
        with pytest.raises(OSError, match=str(status)):
            await telling.tell()
        assert (collector.spans, world.due) == ([], 1)
        await telling.tell()
    assert (collector.names()["run d"], world.due) == (1, 0)


async def test_what_is_refused_for_good_is_not_sent_again(world: World, collector: OtlpReceiver, database_url: str) -> None:
    ended(world)
    ended(world)
    collector.statuses = [400]
    async with sender(database_url, collector) as telling:
        await telling.tell()
        refused = telling.meter.value(metrics.TRACE_SPANS_REFUSED)
        assert (world.due, telling.meter.value(metrics.TRACE_SPANS)) == (0, 0)
        assert refused >= 8
        ended(world)
        collector.rejects = 1
        await telling.tell()
        assert telling.meter.value(metrics.TRACE_SPANS_REFUSED) == refused + 1


async def test_a_run_whose_history_cannot_be_read_keeps_up_no_other(
    world: World, collector: OtlpReceiver, database_url: str
) -> None:
    broken, good = ended(world), ended(world)
    world.conn.execute(
        "update task_event set detail = '{\"ran_s\": \"no number\"}' where event = 'succeed' and run_key = %s", [broken]
    )
    async with sender(database_url, collector) as telling:
        await telling.tell()
        assert telling.meter.value(metrics.TRACES_LOST) == 1
    assert RunTrace("here", good).root(1) in {span.span_id.hex() for span in collector.named("run d")}
    assert world.due == 0


async def test_who_dies_in_the_middle_loses_nothing_and_doubles_no_id(
    world: World, collector: OtlpReceiver, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One API server has sent some requests of a run and is gone; another takes the run over when the time is up."""
    monkeypatch.setattr(limits, "TRACE_SPANS", 2)
    run_key = ended(world, spec=DagSpec(dag_id="d", tasks=tuple(TaskSpec(task_id=f"t{n}", operator="python") for n in range(5))))
    async with sender(database_url, collector) as dying:
        await dying.sender.look()
        await world_takes(world)  # as one that was killed would have it
        trace = RunTrace("here", run_key)
        part = [spans async for spans in dying.sender._told(trace, await due_of(world))]
        await dying.collector.send(part[1][:3])
    sent = {span.span_id for span in collector.spans}
    assert len(sent) == 3
    async with sender(database_url, collector) as other:
        await other.tell()
        assert world.due == 1  # it is the other one's still
        world.conn.execute("update trace_due set due_at = now()")
        await other.tell()
    assert world.due == 0
    by_id: dict[bytes, bytes] = {}
    for span in collector.spans:
        assert by_id.setdefault(span.span_id, span.SerializeToString()) == span.SerializeToString()
    assert sent < set(by_id)
    assert collector.names() >= Counter({"run d": 1, "run": 5, "try 1": 5, **{f"t{n}": 1 for n in range(5)}})
    assert {span.parent_span_id for span in collector.spans} - set(by_id) == {b""}
    await orphans(collector)


async def test_too_much_that_waits_goes_the_oldest_first(
    world: World, collector: OtlpReceiver, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [ended(world) for _ in range(4)]
    monkeypatch.setattr(limits, "TRACES_WAITING", 2)
    async with sender(database_url, collector) as telling:
        await telling.sender.look()
        assert telling.meter.value(metrics.TRACES_LOST) == 2
        assert world.due == 2
        await telling.tell()
        assert {span.trace_id.hex() for span in collector.spans} == {RunTrace("here", run).trace_id for run in runs[2:]}
        ended(world)
        await telling.sender.look()
        world.conn.execute("update trace_due set ended_at = ended_at - interval '2 days'")
        await telling.sender.look()
        assert world.due == 0


async def test_a_large_run_is_read_by_parts(
    world: World, collector: OtlpReceiver, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TRACE_MOVES", 5)
    ended(world, spec=DagSpec(dag_id="d", tasks=tuple(TaskSpec(task_id=f"t{n}", operator="python") for n in range(7))))
    async with sender(database_url, collector) as telling:
        await telling.tell()
    assert collector.names() >= Counter({"run": 7, **{f"t{n}": 1 for n in range(7)}})
    assert len({span.span_id for span in collector.spans}) == len(collector.spans)


async def test_a_run_whose_transaction_ends_late_is_told_once(world: World, collector: OtlpReceiver, database_url: str) -> None:
    """Whatever the order in which transactions begin and end."""
    late, early = ended(world), ended(world)
    world.conn.execute("delete from run_event where event = 'succeed'")
    event = "insert into run_event (run_key, event, state, actor) values (%s, 'succeed', 'success', 'scheduler')"
    async with sender(database_url, collector) as telling:
        with connect(database_url, name="late") as other:
            with other.transaction():
                other.execute(event, [late])
                world.conn.execute(event, [early])
                await telling.tell()
                assert {span.trace_id.hex() for span in collector.spans} == {RunTrace("here", early).trace_id}
            await telling.tell()
        await telling.tell()
    assert collector.names()["run d"] == 2
    assert len([span for span in collector.spans if span.name == "run d"]) == 2


async def test_the_runs_of_callbacks_and_deleted_runs_are_not_told(
    world: World, collector: OtlpReceiver, database_url: str
) -> None:
    ended(world, run_type="callback")
    gone = ended(world)
    async with sender(database_url, collector) as telling:
        await telling.sender.look()
        assert world.due == 1
        world.conn.execute("delete from dag_run where run_key = %s", [gone])
        await telling.tell()
    assert (collector.spans, world.due) == ([], 0)


async def test_a_collector_that_is_away_is_one_failure(world: World, database_url: str, collector: OtlpReceiver) -> None:
    ended(world)
    away = OtlpReceiver(9)
    async with sender(database_url, away) as telling:
        with pytest.raises(aiohttp.ClientError):
            await telling.tell()
    assert world.due == 1


async def due_of(world: World) -> DueTrace:
    return DueTrace(*world.conn.execute("select run_key, ended_at, null from trace_due").fetchone())


async def world_takes(world: World) -> None:
    assert len(world.conn.execute(sql("traces/take_due"), {"limit": 10, "again_s": 60.0}).fetchall()) == 1


async def orphans(collector: OtlpReceiver) -> None:
    known = {span.span_id for span in collector.spans} | {b""}
    assert [span.name for span in collector.spans if span.parent_span_id not in known] == []
