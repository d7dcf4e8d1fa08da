"""Scheduled runs of every kind, in the database."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow.core.forecast import Forecast, TimetableRun
from evenflow.core.limits import FORECAST_LOW, PLANNING_S, SWEEP_S
from evenflow.core.model import DagSpec, Schedule, TaskSpec
from evenflow.scheduler.duties.retention import OldRuns
from evenflow.scheduler.duties.schedules import CATCH_UP_S, DAGS_PER_TURN, RUNS_WAITING, Schedules, create_scheduled
from evenflow.store.scheduling.schedules import ScheduleUpdate, set_next
from tests.scheduler.world import World

TASK = TaskSpec(task_id="a", operator="python")
HOUR = timedelta(hours=1)


def due(world: World, **spec: Any) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(TASK,), **spec))
    world.conn.execute("update dag set next_run_at = now() where dag_id in ('d', 'good')")


def logicals(world: World) -> list[datetime]:
    return [row[0] for row in world.conn.execute("select logical_date from dag_run order by run_key")]


def test_a_trigger_makes_its_run_at_the_tick(world: World) -> None:
    tick = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    due(world, schedule=Schedule(kind="cron", cron="@hourly", trigger=True), start_date=(tick - HOUR).isoformat())
    create_scheduled(world.conn)
    query = "select run_type, logical_date, data_interval_start, data_interval_end, run_after from dag_run"
    row = world.conn.execute(query).fetchone()
    assert row == ("scheduled", tick, tick, tick, tick)
    assert world.conn.execute("select next_run_at, next_logical from dag where dag_id = 'd'").fetchone() == (
        tick + HOUR,
        tick + HOUR,
    )


def test_a_catch_up_of_years_fills_no_table(world: World) -> None:
    first = datetime(2020, 1, 1, tzinfo=UTC)
    due(world, schedule=Schedule(kind="cron", cron="* * * * *", trigger=True), start_date=first.isoformat(), catchup=True)
    create_scheduled(world.conn)
    create_scheduled(world.conn)
    assert logicals(world) == [first + timedelta(minutes=n) for n in range(RUNS_WAITING)]
    world.conn.execute("update dag_run set state = 'success' where logical_date <= %s", [first])
    create_scheduled(world.conn)
    assert logicals(world)[-1] == first + timedelta(minutes=RUNS_WAITING)


def test_continuous_runs_follow_one_another(world: World) -> None:
    due(world, schedule=Schedule(kind="continuous"), max_active_runs=1)
    create_scheduled(world.conn)
    create_scheduled(world.conn)
    assert len(logicals(world)) == 1
    world.drain()
    create_scheduled(world.conn)
    rows = world.conn.execute("select data_interval_start, data_interval_end, state::text from dag_run order by run_key").fetchall()
    assert [state for *_, state in rows] == ["success", "queued"]
    assert rows[0][1] == rows[1][0]


def test_once_is_once(world: World) -> None:
    due(world, schedule=Schedule(kind="once"))
    create_scheduled(world.conn)
    assert world.conn.execute("select next_run_at from dag where dag_id = 'd'").fetchone() == (None,)
    world.conn.execute("update dag set next_run_at = now() where dag_id in ('d', 'good')")
    create_scheduled(world.conn)
    assert len(logicals(world)) == 1


def test_a_logical_date_that_is_taken_is_passed_over(world: World) -> None:
    first = datetime(2026, 1, 1, tzinfo=UTC)
    dates = tuple((first + n * HOUR).isoformat() for n in range(3))
    due(world, schedule=Schedule(kind="dates", dates=dates), start_date=first.isoformat(), catchup=True)
    world.trigger("d", logical_date=first + HOUR)
    create_scheduled(world.conn)
    types = world.conn.execute("select run_type from dag_run order by logical_date").fetchall()
    assert types == [("scheduled",), ("manual",), ("scheduled",)]
    assert world.conn.execute("select next_run_at from dag where dag_id = 'd'").fetchone() == (None,)


def coded(world: World, forecast: Forecast) -> None:
    due(world, schedule=Schedule(kind="code", code="Odd"), catchup=True)
    world.conn.execute("update dag set forecast = %s::jsonb where dag_id = 'd'", [forecast.to_json()])


def test_runs_of_a_schedule_that_is_code_come_from_its_forecast(world: World) -> None:
    """R-AF1: the scheduler runs no author's code, and asks for more before the forecast is used up."""
    first = datetime(2026, 1, 1, tzinfo=UTC)
    runs = [TimetableRun(at, at, at + HOUR, at + 2 * HOUR) for at in (first + n * HOUR for n in range(FORECAST_LOW + 3))]
    coded(world, Forecast(tuple(runs)))
    create_scheduled(world.conn)
    query = "select logical_date, data_interval_start, data_interval_end, run_after from dag_run order by run_key"
    assert world.conn.execute(query).fetchall() == runs[:RUNS_WAITING]
    assert world.conn.execute("select wants_forecast from dag where dag_id = 'd'").fetchone() == (True,)
    assert world.conn.execute("select next_run_at from dag where dag_id = 'd'").fetchone() == (runs[RUNS_WAITING].run_after,)


def forgotten(world: World) -> list[datetime]:
    """The runs end, and retention deletes them; answers their dates."""
    dates = logicals(world)
    world.conn.execute("update dag_run set state = 'success', ended_at = now()")
    OldRuns().delete(world.conn, datetime.now(UTC) + HOUR)
    assert logicals(world) == []
    world.conn.execute("update dag set next_run_at = now()")
    return dates


def test_retention_does_not_make_the_first_dates_run_again(world: World) -> None:
    """R-HA20: what was scheduled last is remembered by the DAG, not by its runs."""
    start = (datetime.now(UTC) - timedelta(days=150)).isoformat()
    due(world, schedule=Schedule(kind="cron", cron="@monthly", trigger=True), start_date=start, catchup=True)
    create_scheduled(world.conn)
    assert len(forgotten(world)) >= 4
    create_scheduled(world.conn)
    assert logicals(world) == []


def test_retention_does_not_make_the_newest_date_run_again(world: World) -> None:
    """R-HA20."""
    due(world, schedule=Schedule(kind="cron", cron="@monthly", trigger=True), start_date="2020-01-01T00:00:00+00:00")
    create_scheduled(world.conn)
    assert len(forgotten(world)) == 1
    create_scheduled(world.conn)
    assert logicals(world) == []


def test_once_is_once_when_its_run_is_gone(world: World) -> None:
    """R-HA20."""
    due(world, schedule=Schedule(kind="once"))
    create_scheduled(world.conn)
    assert len(forgotten(world)) == 1
    create_scheduled(world.conn)
    assert logicals(world) == []


def test_a_continuous_dag_goes_on_where_its_last_run_ended_when_that_is_gone(world: World) -> None:
    """R-HA20."""
    due(world, schedule=Schedule(kind="continuous"), start_date="2020-01-01T00:00:00+00:00")
    create_scheduled(world.conn)
    (end,) = world.conn.execute("select data_interval_end from dag_run").fetchone()
    forgotten(world)
    create_scheduled(world.conn)
    assert logicals(world) == [end]


def test_dates_that_other_runs_have_are_passed_over_once(world: World) -> None:
    """R-HA20: more of them than may wait are in nobody's way."""
    first = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - 70 * HOUR
    due(world, schedule=Schedule(kind="cron", cron="@hourly", trigger=True), start_date=first.isoformat(), catchup=True)
    for n in range(3 * RUNS_WAITING):
        world.trigger("d", logical_date=first + n * HOUR)
    for _ in range(4):
        create_scheduled(world.conn)
    dates = world.conn.execute("select logical_date from dag_run where run_type = 'scheduled' order by run_key").fetchall()
    assert dates == [(first + n * HOUR,) for n in range(3 * RUNS_WAITING, 4 * RUNS_WAITING)]


def test_what_was_scheduled_never_goes_back(world: World) -> None:
    """R-HA20."""
    due(world, schedule=Schedule(kind="cron", cron="@hourly"))
    query = "select last_logical, last_interval_end from dag where dag_id = 'd'"
    create_scheduled(world.conn)
    known = world.conn.execute(query).fetchone()
    assert known[1] - known[0] == HOUR
    for past in (None, known[0] - HOUR):
        set_next(world.conn, [ScheduleUpdate("d", None, None, past, past)])
        assert world.conn.execute(query).fetchone() == known


def test_a_dag_that_cannot_be_planned_stands_in_nobodys_way(world: World) -> None:
    """R-HA13."""
    due(world, schedule=Schedule(kind="cron", cron="@hourly", timezone="Mars/Olympus"))
    world.add_dag(DagSpec(dag_id="good", tasks=(TASK,), schedule=Schedule(kind="cron", cron="@hourly")))
    world.conn.execute("update dag set next_run_at = now() where dag_id in ('d', 'good')")
    create_scheduled(world.conn)
    assert world.conn.execute("select dag_id from dag_run").fetchall() == [("good",)]
    assert world.conn.execute("select next_run_at from dag where dag_id = 'd'").fetchone() == (None,)


def test_a_dag_whose_file_is_gone_gets_no_runs_and_its_runs_end(world: World) -> None:
    """The stored version is all that a scheduler needs (R-HA7)."""
    due(world, schedule=Schedule(kind="cron", cron="@hourly"))
    run = world.trigger("d")
    world.advance()
    world.conn.execute("update dag set is_active = false where dag_id = 'd'")
    create_scheduled(world.conn)
    assert len(logicals(world)) == 1
    assert world.drain() == ["a"]
    assert world.run_state(run) == "success"


def test_a_hundred_due_dags_are_a_few_statements(world: World) -> None:
    for n in range(100):
        world.add_dag(DagSpec(dag_id=f"d{n}", tasks=(TASK,), schedule=Schedule(kind="cron", cron="@hourly")))
    world.conn.execute("update dag set next_run_at = now() where dag_id like 'd%'")
    assert create_scheduled(world.conn) == (True, [])
    assert world.conn.execute("select count(*), count(distinct dag_id) from dag_run").fetchone() == (100, 100)
    assert create_scheduled(world.conn) == (False, [])


def late(world: World, *names: str) -> None:
    """DAGs that have missed more dates than may wait."""
    start = (datetime.now(UTC) - 300 * HOUR).isoformat()
    schedule = Schedule(kind="cron", cron="@hourly", trigger=True)
    for name in names:
        world.add_dag(DagSpec(dag_id=name, tasks=(TASK,), schedule=schedule, start_date=start, catchup=True))
    world.conn.execute("update dag set next_run_at = %s where dag_id = any(%s)", [start, list(names)])


def made(world: World) -> dict[str, int]:
    return dict(world.conn.execute("select dag_id, count(*) from dag_run group by 1").fetchall())


def test_a_catch_up_waits_for_room_alone(world: World) -> None:
    """R-HA20: the next runs are made as soon as those that waited have begun, not with the next sweep."""
    late(world, "d")
    duty = Schedules()
    assert duty.perform(world.conn) == CATCH_UP_S
    pauses = []
    while (pause := duty.perform(world.conn)) is not None:
        pauses.append(pause)
    assert made(world) == {"d": RUNS_WAITING}
    assert pauses[0] == 2 * CATCH_UP_S
    assert pauses[-1] >= SWEEP_S, "while nothing begins, the looks become as rare as they are without a catch-up"
    world.conn.execute("update dag_run set state = 'running'")
    assert duty.perform(world.conn) == CATCH_UP_S
    assert made(world) == {"d": 2 * RUNS_WAITING}


def test_catch_ups_delay_nobody_who_is_due_now(world: World) -> None:
    """R-HA20: each fills its room once in a look, and whoever falls due in the middle comes next."""
    names = [f"late{number}" for number in range(DAGS_PER_TURN + 20)]
    late(world, *names)
    duty = Schedules()
    assert duty.perform(world.conn) == 0.0
    world.conn.execute("update dag_run set state = 'success'")
    world.add_dag(DagSpec(dag_id="punctual", tasks=(TASK,), schedule=Schedule(kind="cron", cron="@hourly")))
    world.conn.execute("update dag set next_run_at = now() where dag_id = 'punctual'")
    assert duty.perform(world.conn) == CATCH_UP_S
    assert made(world) == {"punctual": 1, **dict.fromkeys(names, RUNS_WAITING)}
    first = world.conn.execute("select dag_id from dag_run where state = 'queued' order by run_key limit 1").fetchone()
    assert first == ("punctual",)


@pytest.mark.parametrize("poisoned", [False, True])
def test_dates_that_take_long_to_find_keep_no_transaction(world: World, monkeypatch: pytest.MonkeyPatch, poisoned: bool) -> None:
    """R-HA20: the server ends a session that says nothing, and whatever it was about. So the rest comes in the next transaction."""
    clock = itertools.count(0.0, PLANNING_S / 4)  # each DAG takes so long
    monkeypatch.setattr("evenflow.scheduler.duties.schedules.monotonic", lambda: next(clock))
    hourly = Schedule(kind="cron", cron="@hourly")
    for n in range(10):
        world.add_dag(DagSpec(dag_id=f"d{n}", tasks=(TASK,), schedule=hourly))
    world.conn.execute("update dag set next_run_at = now() - right(dag_id, 1)::int * interval '1 s' where dag_id like 'd%'")
    if poisoned:
        world.conn.execute("update dag_version set spec = jsonb_set(spec, '{schedule,cron}', '\"61 * * * *\"') where dag_id = 'd1'")
    duty, transactions = Schedules(), 1
    while (pause := duty.perform(world.conn)) == 0.0:
        transactions += 1
    assert pause is None
    assert transactions == 3
    assert len(made(world)) == 10 - poisoned
