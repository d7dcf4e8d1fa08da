"""Metrics as Prometheus reads them, from the row of a real scheduler."""

from __future__ import annotations

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.duties import Presence
from evenflow.scheduler.tally import Tally
from tests.api.world import World

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def scrape(api_url: str) -> Samples:
    async with aiohttp.ClientSession() as session, session.get(f"{api_url}/metrics") as answer:
        assert answer.status == 200, "without a token"
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        text = await answer.text()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}
    assert len(found) == len(samples), "no series twice"
    return found


def of(samples: Samples, name: str, /, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


async def test_a_scheduler_shows_its_own_share(api_url: str, world: World) -> None:
    """R-HA1, R-ST9: what it did, and for how long tasks could have started before they did."""
    world.run(world.version(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python", pool_slots=3),))), state="queued")
    tally = Tally()
    tally.add(advance(world.db, Catalog()), 0.003)
    for _ in range(2):  # the second after it was declared lost, as a scheduler of the same name would come back
        presence = Presence("s1", tally)
        presence.beat(world.db)
        presence.beat(world.db)
    samples = await scrape(api_url)
    assert of(samples, "evenflow_scheduler_turns_total", scheduler="s1") == 1
    assert of(samples, "evenflow_scheduler_rounds_total", scheduler="s1") == 1
    assert of(samples, "evenflow_scheduler_starts_total", scheduler="s1") == 1
    assert of(samples, "evenflow_scheduler_moves_total", scheduler="s1") == 1
    for name in ("lanes_touched", "rows_read", "reports", "stale_reports"):
        assert of(samples, f"evenflow_scheduler_{name}_total", scheduler="s1") >= 0
    assert of(samples, "evenflow_selection_repairs_total", scheduler="s1") == 0
    assert of(samples, "evenflow_scheduler_turn_seconds_bucket", scheduler="s1", le="0.0025") == 0
    assert of(samples, "evenflow_scheduler_turn_seconds_bucket", scheduler="s1", le="0.005") == 1
    assert of(samples, "evenflow_scheduler_turn_seconds_bucket", scheduler="s1", le="+Inf") == 1
    assert of(samples, "evenflow_scheduler_turn_seconds_sum", scheduler="s1") == 0.003
    assert of(samples, "evenflow_task_startable_seconds_count", scheduler="s1") == 1
    assert of(samples, "evenflow_service_healthy", kind="scheduler", name="s1") == 1


async def test_how_full_and_how_busy_the_system_is(api_url: str, world: World) -> None:
    spec = DagSpec(
        dag_id="d", tasks=tuple(TaskSpec(task_id=f"t{i}", operator="python", pool_slots=3) for i in range(3)), max_active_tasks=2
    )
    world.run(world.version(spec), state="queued")
    advance(world.db, Catalog())
    samples = await scrape(api_url)
    assert of(samples, "evenflow_limit_capacity", kind="pool", name="default_pool") == 128
    assert of(samples, "evenflow_limit_used", kind="pool", name="default_pool") == 6
    assert of(samples, "evenflow_limit_used", kind="executor", name="worker") == 2
    assert of(samples, "evenflow_dispatch_waiting", queue="default") == 2
    assert of(samples, "evenflow_dispatch_running", queue="default") == 0
    assert of(samples, "evenflow_dispatch_oldest_waiting_seconds", queue="default") >= 0
    assert (of(samples, "evenflow_lanes", state="open"), of(samples, "evenflow_lanes", state="parked")) == (0, 1)
    assert of(samples, "evenflow_tasks_ready") == 1
    assert of(samples, "evenflow_reports_waiting") == 0
    assert of(samples, "evenflow_database_oldest_snapshot_seconds") >= 0
