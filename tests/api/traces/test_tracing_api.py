"""What an API server does about traces: nothing by itself, and all of it where a collector is named."""

from __future__ import annotations

from pathlib import Path

import psycopg

from evenflow.api.tracing.settings import TraceSettings
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.tracing import RunTrace, TracedRuns, read_traceparent
from evenflow.store.db.rows import Conn
from evenflow.wire.messages import Assignment, Claim
from tests.api.world import ClientOfAll, World, new_worker
from tests.apis import running_api
from tests.otlp import OtlpReceiver
from tests.tokens import operator_token
from tests.waiting import until

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def claimed(db: Conn, port: int, **run: str) -> tuple[int, Assignment]:
    world = World(db)
    client: ExecutionClient = ClientOfAll(f"http://127.0.0.1:{port}", db, "worker")
    try:
        run_key = world.run(world.add_dag(), **run)
        world.dispatch(run_key, 1)
        answer = await client.claim(Claim(service_id=await new_worker(client), request_key="k", slots=1, queues=["default"]))
    finally:
        await client.close()
    (assignment,) = answer.assignments
    return run_key, assignment


async def test_without_a_collector_nothing_is_traced(
    database_url: str, db: psycopg.Connection[tuple[object, ...]], tmp_path: Path
) -> None:
    """Tasks hear of no trace either."""
    async with running_api(database_url, tmp_path) as api:
        _, assignment = await claimed(db, api.port)
        assert assignment.traceparent == ""
        assert "traces" not in {loop.get_name() for loop in api._loops}
    assert db.execute("select count(*) from trace_due").fetchone() == (0,)


async def test_a_try_hears_which_span_it_is(
    database_url: str, db: psycopg.Connection[tuple[object, ...]], tmp_path: Path, collector: OtlpReceiver
) -> None:
    """The one that is told when its run has ended, in the trace of who asked for the run."""
    async with running_api(database_url, tmp_path, tracing=TraceSettings(url=collector.url)) as api:
        run_key, assignment = await claimed(db, api.port, traceparent=CALLER)
        (installation,) = db.execute("select id from installation").fetchone() or ("",)
        trace = RunTrace(str(installation), run_key, read_traceparent(CALLER))
        assert assignment.traceparent == trace.traceparent(1)
        assert assignment.traceparent.startswith(CALLER[:35])


async def test_who_reads_a_run_is_told_its_trace(
    database_url: str, db: psycopg.Connection[tuple[object, ...]], tmp_path: Path, collector: OtlpReceiver
) -> None:
    """The one of its caller or of its own; none of a run whose trace is not sent, nor where traces are off."""
    world = World(db)
    version = world.add_dag()
    for run_id, traceparent in (("called", CALLER), ("unsampled", f"{CALLER[:-1]}0"), ("own", None)):
        world.run(version, run_id, traceparent=traceparent)
    own = TracedRuns(str(world.one("select id from installation"))).trace_of(world.one("select max(run_key) from dag_run"), None)
    for tracing, told in (
        (TraceSettings(url=collector.url), [CALLER[3:35], None, own.trace_id]),
        (TraceSettings(url=collector.url, ratio=0.0), [CALLER[3:35], None, None]),
        (None, [None, None, None]),
    ):
        async with (
            running_api(database_url, tmp_path, tracing=tracing) as api,
            RestClient(f"http://127.0.0.1:{api.port}", operator_token(db)) as rest,
        ):
            assert [(await rest.get_run("sales", run_id)).trace_id for run_id in ("called", "unsampled", "own")] == told


async def test_an_api_server_sends_what_has_ended_by_itself(
    database_url: str, db: psycopg.Connection[tuple[object, ...]], tmp_path: Path, collector: OtlpReceiver
) -> None:
    """And tells when the collector is away, and that it is there again."""
    collector.statuses = [503]
    async with running_api(database_url, tmp_path, tracing=TraceSettings(url=collector.url)) as api:
        world = World(db)
        run_key = world.run(world.add_dag(), state="success", ended_at="2026-03-01T00:00:00Z")
        event = "insert into run_event (run_key, event, state, actor) values (%s, 'succeed', 'success', 'scheduler')"
        db.execute(event, [run_key])
        await until(lambda: collector.spans)
        assert api.health.ready().ok
    assert [span.name for span in collector.spans] == ["run sales"]
    assert len(collector.headers) == 2
