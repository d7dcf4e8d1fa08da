"""What a scheduler does beside applying and selecting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from evenflow.core.limits import PARTITIONS_AHEAD
from evenflow.core.model import DagSpec, Schedule, TaskSpec
from evenflow.core.service import ServiceKind
from evenflow.scheduler.duties import SchedulerPresence
from evenflow.scheduler.duties.partitions import make_partitions
from evenflow.scheduler.duties.schedules import create_scheduled
from evenflow.store.scheduling.partitions import first_run_key
from evenflow.telemetry.health import HealthMonitor
from tests.scheduler.world import World

TASK = TaskSpec(task_id="a", operator="python")


def test_a_scheduled_run_is_created_when_it_is_due(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(TASK,), schedule=Schedule(kind="cron", cron="0 * * * *")))
    world.conn.execute("update dag set next_run_at = now() - interval '1 minute'")
    create_scheduled(world.conn)
    run_id, logical, start, end, run_after = world.conn.execute(
        "select run_id, logical_date, data_interval_start, data_interval_end, run_after from dag_run"
    ).fetchone()
    assert run_id == f"scheduled__{logical.isoformat()}"
    assert (start, end, run_after) == (logical, logical + timedelta(hours=1), logical + timedelta(hours=1))
    (next_run_at,) = world.conn.execute("select next_run_at from dag where dag_id = 'd'").fetchone()
    assert next_run_at == end + timedelta(hours=1)
    create_scheduled(world.conn)
    assert world.conn.execute("select count(*) from dag_run").fetchone() == (1,)


def test_catchup_creates_one_run_after_the_other(world: World) -> None:
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    spec = DagSpec(
        dag_id="d",
        tasks=(TASK,),
        schedule=Schedule(kind="cron", cron="@hourly"),
        start_date=(now - timedelta(hours=5)).isoformat(),
        catchup=True,
    )
    world.add_dag(spec)
    world.conn.execute("update dag set next_run_at = now()")
    for _ in range(7):
        create_scheduled(world.conn)
    logicals = [row[0] for row in world.conn.execute("select logical_date from dag_run order by run_key")]
    assert logicals == [now - timedelta(hours=h) for h in (5, 4, 3, 2, 1)]


def test_a_paused_dag_gets_no_scheduled_runs(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(TASK,), schedule=Schedule(kind="cron", cron="@hourly")))
    world.conn.execute("update dag set next_run_at = now() - interval '1 day', is_paused = true")
    create_scheduled(world.conn)
    assert world.conn.execute("select count(*) from dag_run").fetchone() == (0,)


def test_history_goes_to_the_partition_of_the_day_of_its_run(world: World) -> None:
    today = datetime.now(UTC)
    make_partitions(world.conn, today)
    make_partitions(world.conn, today)
    names = [f"task_event_{today + timedelta(days=d):%Y%m%d}" for d in range(PARTITIONS_AHEAD + 1)]
    for name in names:
        assert world.conn.execute("select to_regclass(%s) is not null", [name]).fetchone() == (True,)
    world.add_dag(DagSpec(dag_id="d", tasks=(TASK,)))
    run = world.trigger("d")
    assert first_run_key(today.replace(hour=0, minute=0, second=0, microsecond=0)) <= run
    world.drain()
    assert world.conn.execute("select count(*) from task_event_default").fetchone() == (0,)
    events = world.conn.execute(f"select event, state::text from {names[0]} order by at").fetchall()
    assert events == [("grant", "queued"), ("succeed", "success")]


def test_a_scheduler_that_is_not_known_any_more_registers_anew(world: World) -> None:
    """R-HA4: every scheduler heartbeats."""
    presence = SchedulerPresence(HealthMonitor(ServiceKind.SCHEDULER, "s"))
    presence.beat(world.conn)
    presence.beat(world.conn)
    query = "select count(*) from service where kind = 'scheduler' and state = %s"
    assert world.conn.execute(query, ["active"]).fetchone() == (1,)
    world.conn.execute("update service set state = 'lost' where kind = 'scheduler'")
    presence.beat(world.conn)
    assert world.conn.execute(query, ["active"]).fetchone() == (1,)
    presence.sign_off(world.conn)
    assert world.conn.execute(query, ["stopped"]).fetchone() == (1,)
