"""Metrics and health of an API server, as Prometheus and probes read them, from a real database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import aiohttp
import psycopg
from prometheus_client.parser import text_string_to_metric_families

from evenflow.api.service import ApiService
from evenflow.client.execution import ExecutionClient
from evenflow.core.limits import LEASE_S, MOST_COUNTED
from evenflow.core.meter import Reading
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.service import ServiceKind
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.duties import SchedulerPresence
from evenflow.scheduler.turn_metrics import TurnMetrics
from evenflow.store.db.sql import sql
from evenflow.store.scheduling.leases import list_lost
from evenflow.store.serving import views
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.prometheus import exposition
from evenflow.wire.messages import Claim
from tests.api.world import World
from tests.world import at_once

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parse(text: str) -> Samples:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}
    assert len(found) == len(samples), "no series twice"
    return found


async def scrape(api_url: str) -> Samples:
    async with aiohttp.ClientSession() as session, session.get(f"{api_url}/metrics") as answer:
        assert answer.status == 200, "without a token"
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        return parse(await answer.text())


async def get(url: str) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.json()


def of(samples: Samples, name: str, /, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


def test_a_scheduler_shows_its_own_share(world: World) -> None:
    """R-HA1, R-ST9: what it did, and for how long tasks could have started before they did."""
    world.run(world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python", pool_slots=3),))), state="queued")
    health = HealthMonitor(ServiceKind.SCHEDULER, "s1")
    TurnMetrics(health.meter).add(advance(world.conn, Catalog()), 0.003)
    samples = parse(exposition(health.meter.read()).decode())
    own = {"kind": "scheduler", "name": "s1"}
    for name in ("turns", "rounds", "starts", "moves"):
        assert of(samples, f"evenflow_scheduler_{name}_total", **own) == 1
    for name in ("lanes_touched", "rows_read", "reports", "stale_reports", "picks", "contended_picks"):
        assert of(samples, f"evenflow_scheduler_{name}_total", **own) >= 0
    assert of(samples, "evenflow_selection_repairs_total", **own) == 0
    assert of(samples, "evenflow_scheduler_turn_seconds_bucket", le="0.0025", **own) == 0
    assert of(samples, "evenflow_scheduler_turn_seconds_bucket", le="0.005", **own) == 1
    assert of(samples, "evenflow_scheduler_turn_seconds_bucket", le="+Inf", **own) == 1
    assert of(samples, "evenflow_scheduler_turn_seconds_sum", **own) == 0.003
    assert of(samples, "evenflow_task_startable_seconds_count", **own) == 1


async def test_a_service_that_misses_its_beats_is_unhealthy_everywhere(api: ApiService, api_url: str, world: World) -> None:
    """R-HA4: in the metrics, and in ``/health``; and the same name again, alive, counts."""
    api._probes._kept._kept_s = 0.0  # each look is a fresh one
    presence = SchedulerPresence(HealthMonitor(ServiceKind.SCHEDULER, "s1"))
    presence.beat(world.conn)
    key = {"kind": "scheduler", "name": "s1"}
    assert of(await scrape(api_url), "evenflow_service_healthy", **key) == 1
    world.conn.execute("update service set beat_at = now() - interval '16 s' where kind = 'scheduler'")
    status, health = await get(f"{api_url}/health")
    assert (status, health["status"]) == (503, "unhealthy")
    assert health["missing"] == ["scheduler", "processor", "worker"]
    (silent,) = [service for service in health["services"] if service["kind"] == "scheduler"]
    assert not silent["healthy"]
    assert silent["beat_age_s"] > 15
    world.conn.execute("update service set state = 'lost' where kind = 'scheduler'")
    presence.beat(world.conn)
    _, health = await get(f"{api_url}/health")
    assert health["missing"] == ["processor", "worker"]
    assert [service["healthy"] for service in health["services"] if service["kind"] == "scheduler"] == [True]


async def test_a_service_that_was_lost_is_listed_until_one_of_its_name_replaces_it(api_url: str, world: World) -> None:
    """R-HA4: and by doctor."""
    for name, state in (("w", "lost"), ("v", "lost"), ("v", "active"), ("u", "stopped")):
        world.service("worker", name, state=state)
    _, health = await get(f"{api_url}/health")
    listed = [(s["name"], s["state"]) for s in health["services"] if s["kind"] == "worker"]
    assert listed == [("v", "active"), ("w", "lost")]
    assert list_lost(world.conn) == [("worker", "w", "h")]


def test_a_lost_worker_of_a_fleet_is_listed_until_the_fleet_has_as_many_as_it_is_to_have(world: World) -> None:
    """R-HA4, R-AS2: pods have new names, and what a fleet has replaced needs no person. A worker of no fleet does."""
    world.conn.execute(
        "insert into fleet (name, target, queues, options, replicas, changed_by) values"
        " ('f', 'kubernetes', '{q}', '{\"deployment\": \"pods\"}', 2, 'x'), ('g', 'native', '{r}', '{}', 0, 'x')"
    )

    def worker(name: str, queue: str, state: str = "active") -> None:
        service_id = world.service("worker", name, state=state)
        detail = "update service set detail = jsonb_build_object('queues', array[%s]) where service_id = %s"
        world.conn.execute(detail, [queue, service_id])

    def lost() -> list[str]:
        listed = at_once(views.list_services(world.awaited, lease_s=LEASE_S, limit=100))
        found = sorted(s["name"] for s in listed if s["state"] == "lost")
        assert found == sorted(name for _, name, _ in list_lost(world.conn))
        return found

    for name, queue in (("pods-a", "q"), ("other", "q"), ("pods-of-others", "x"), ("g-1", "r")):
        worker(name, queue, "lost")
    worker("pods-b", "q")
    worker("pods-x", "x")
    assert lost() == ["other", "pods-a", "pods-of-others"]
    worker("pods-c", "q")
    assert lost() == ["other", "pods-of-others"]
    world.conn.execute("update service set beat_at = now() - interval '1 minute' where name = 'pods-b'")
    assert lost() == ["other", "pods-a", "pods-of-others"]


async def test_an_api_server_knows_whether_it_is_live_and_ready(api_url: str) -> None:
    status, live = await get(f"{api_url}/health/live")
    assert (status, live["status"]) == (200, "live")
    status, ready = await get(f"{api_url}/health/ready")
    assert (status, ready["status"]) == (200, "ready")
    assert ready["checks"]["database"] == {"ok": True, "reason": "it answers"}
    assert ready["checks"]["lease"]["ok"]


async def test_where_services_tell_their_metrics(api_url: str, world: World) -> None:
    """As Prometheus reads it: only those that live, and the API itself."""
    for name, address in (("s1", "127.0.0.1:1"), ("s2", "127.0.0.1:2"), ("s3", "")):
        health = HealthMonitor(ServiceKind.SCHEDULER, name)
        health.address = address
        SchedulerPresence(health).beat(world.conn)
    world.conn.execute("update service set state = 'lost' where name = 's2'")
    status, targets = await get(f"{api_url}/metrics/targets")
    assert status == 200
    addresses = [address for group in targets for address in group["targets"]]
    assert addresses == [api_url.removeprefix("http://"), "127.0.0.1:1"]
    assert all(group["labels"] == {} for group in targets), "its series name their service themselves"


async def test_how_full_and_how_busy_the_system_is(api_url: str, world: World) -> None:
    spec = DagSpec(
        dag_id="d", tasks=tuple(TaskSpec(task_id=f"t{i}", operator="python", pool_slots=3) for i in range(3)), max_active_tasks=2
    )
    world.run(world.add_dag(spec), state="queued")
    advance(world.conn, Catalog())
    world.conn.execute("insert into dag_file (bundle, file, fingerprint, error) values ('b', 'f', '', 'x')")
    world.conn.execute("insert into quarantine (kind, object, reason) values ('dag', 'd', 'x')")
    samples = await scrape(api_url)
    assert of(samples, "evenflow_limit_capacity", kind="pool", name="default_pool") == 128
    assert of(samples, "evenflow_limit_used", kind="pool", name="default_pool") == 6
    assert of(samples, "evenflow_limit_used", kind="executor", name="worker") == 2
    assert of(samples, "evenflow_dispatch_waiting", queue="default") == 2
    assert of(samples, "evenflow_dispatch_running", queue="default") == 0
    assert of(samples, "evenflow_dispatch_oldest_waiting_seconds", queue="default") >= 0
    assert (of(samples, "evenflow_lanes", state="open"), of(samples, "evenflow_lanes", state="parked")) == (0, 1)
    assert of(samples, "evenflow_tasks_ready") == 1
    assert of(samples, "evenflow_runs_queued") == 0
    assert of(samples, "evenflow_reports_waiting") == 0
    assert of(samples, "evenflow_dag_files_broken") == 1
    assert (of(samples, "evenflow_quarantined", kind="run"), of(samples, "evenflow_quarantined", kind="dag")) == (0, 1)
    assert of(samples, "evenflow_history_days_ahead") == -1, "no scheduler has made partitions"
    assert of(samples, "evenflow_database_oldest_snapshot_seconds") >= 0
    assert of(samples, "evenflow_database_dead_rows", table="task_instance") >= 0
    assert of(samples, "evenflow_database_connections", state="idle") >= 1


async def test_requests_are_counted(api_url: str) -> None:
    await get(f"{api_url}/health/live")
    async with aiohttp.ClientSession() as session, session.get(f"{api_url}/api/v1/dags") as answer:
        assert answer.status == 401
    samples = await scrape(api_url)
    own = {"kind": "api", "name": "api"}
    assert of(samples, "evenflow_api_requests_total", part="other", status="2xx", **own) == 1
    assert of(samples, "evenflow_api_requests_total", part="rest", status="4xx", **own) == 1
    assert of(samples, "evenflow_api_request_seconds_count", part="rest", **own) == 1
    assert of(samples, "evenflow_api_database_connections", state="idle", **own) >= 0
    assert of(samples, "evenflow_api_log_disk_free_bytes", **own) > 0


async def test_without_the_database_an_api_server_tells_of_itself_alone(api: ApiService, api_url: str) -> None:
    async def away() -> list[Reading]:
        raise psycopg.OperationalError("the connection is lost")

    api.health.system = away
    samples = await scrape(api_url)
    assert of(samples, "evenflow_service_live", kind="api", name="api") == 1
    assert not any(name.startswith("evenflow_limit") for name, _ in samples)


async def test_a_claim_says_how_long_tries_waited(api_url: str, world: World, client: ExecutionClient, worker: int) -> None:
    world.dispatch(world.run(world.add_dag()), 7)
    world.conn.execute("update dispatch set created_at = now() - interval '3 s'")
    claim = Claim(service_id=worker, request_key="k", slots=1, queues=["default"])
    assert [assignment.epoch for assignment in (await client.claim(claim)).assignments] == [7]
    samples = await scrape(api_url)
    own = {"kind": "api", "name": "api"}
    assert of(samples, "evenflow_api_claim_wait_seconds_bucket", le="2.5", **own) == 0
    assert of(samples, "evenflow_api_claim_wait_seconds_bucket", le="5.0", **own) == 1


STATEMENTS = ("metrics/count_lanes", "metrics/read_backlog", "views/read_health")
FILL = (
    "insert into limit_class (class_id, base_id, pool_limit, executor_limit, queue, weight) overriding system value"
    " values (1, 1, 1, 2, 'default', 1)",
    "insert into lane (lane_id, class_id, base_id, run_key, run_priority, priority, order_key, locals, parked_on, ready)"
    " select n, 1, 1, n, 0, 1, int8send(n), '{}', n, 2 from generate_series(1, %(rows)s) n",
    "insert into dag_run (dag_id, run_id, version_key, run_type) select dag_id, n::text, version_key, 'manual'"
    " from generate_series(1, %(rows)s) n, (select dag_id, version_key from dag limit 1) d",
    "insert into report (run_key, kind, epoch) select n, 'exit', 1 from generate_series(1, %(rows)s) n",
    "insert into dag_file (bundle, file, fingerprint) select 'b', n::text, '' from generate_series(1, %(rows)s) n",
)
COUNTED = {"lane", "dag_run", "report", "dag_file"}


async def test_a_backlog_is_counted_no_further_than_ten_thousand(api_url: str, world: World) -> None:
    """Neither a scrape nor a look at the status costs more the longer the backlog is."""
    world.add_dag()
    for statement in FILL:
        world.conn.execute(statement, {"rows": 3 * MOST_COUNTED})
    world.conn.execute("analyze")
    for name in STATEMENTS:
        with psycopg.ClientCursor(world.conn) as cursor:
            names = {"most": MOST_COUNTED, "scope": None} if name.startswith("metrics/") else None
            cursor.execute(b"explain (analyze, format json) " + sql(name), names)
            (((plan,),),) = cursor.fetchall()
        for relation, rows in scanned(plan["Plan"]):
            assert rows <= MOST_COUNTED or relation not in COUNTED, (name, relation, rows)
    samples = await scrape(api_url)
    for name in ("runs_queued", "reports_waiting"):
        assert of(samples, f"evenflow_{name}") == MOST_COUNTED
    assert of(samples, "evenflow_lanes", state="parked") == MOST_COUNTED
    assert of(samples, "evenflow_tasks_ready") == 2 * MOST_COUNTED
    assert of(samples, "evenflow_dag_files_broken") == 0


def scanned(node: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Relations, and how many rows of each were looked at."""
    if "Relation Name" in node:
        yield (
            node["Relation Name"],
            (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"],
        )
    for child in node.get("Plans", []):
        yield from scanned(child)
