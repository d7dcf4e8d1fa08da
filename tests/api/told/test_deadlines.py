"""The deadlines of a DAG and of its runs: when the next one falls due, which were met, and which were missed (R-CS6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from evenflow.client.rest import RestClient
from evenflow.core.model import DagSpec, DeadlineSpec, TaskSpec
from tests.scheduler.world import World

TASKS = (TaskSpec(task_id="t", operator="python"),)
HOUR = DeadlineSpec(name="an hour", reference="queued_at", interval=3600.0)
NOW = DeadlineSpec(name="at once", reference="queued_at", callbacks=1)


@pytest.fixture
async def rest(api_url: str, operator_token: str) -> AsyncIterator[RestClient]:
    async with RestClient(api_url, operator_token) as client:
        yield client


@pytest.fixture
def scheduled(db: psycopg.Connection[Any]) -> World:
    return World(db)


async def test_a_dag_says_its_deadlines_the_next_of_each_and_what_was_missed(rest: RestClient, scheduled: World) -> None:
    scheduled.add_dag(DagSpec(dag_id="d", tasks=TASKS, deadlines=(HOUR, NOW)))
    scheduled.trigger("d", run_id="first")
    scheduled.trigger("d", run_id="second")
    scheduled.advance()
    scheduled.advance()
    hour, at_once = (await rest.get_dag("d")).deadlines
    assert (hour.name, hour.when, hour.callbacks) == ("an hour", "1 h 00 m after the run was asked for", 0)
    assert hour.next_run_id == "first"
    assert timedelta(minutes=59) < hour.next_due_at - datetime.now(UTC) <= timedelta(hours=1)
    assert (hour.missed, hour.last_missed_run_id) == (0, None)
    assert (at_once.when, at_once.next_due_at, at_once.next_run_id) == ("when the run is asked for", None, None)
    assert (at_once.missed, at_once.last_missed_run_id) == (2, "second")


async def test_where_no_run_waits_the_next_is_that_of_the_next_date(rest: RestClient, scheduled: World) -> None:
    by_seven = DeadlineSpec(name="by 07:00 UTC", reference="time_of_day", at="07:00:00")
    scheduled.add_dag(DagSpec(dag_id="d", tasks=TASKS, deadlines=(by_seven,)))
    next_date = {"next_run_at": "2050-01-01 05:00Z", "next_logical": "2050-01-01 05:00Z"}
    scheduled.conn.execute(
        "update dag set next_run_at = %(next_run_at)s, next_logical = %(next_logical)s where dag_id = 'd'", next_date
    )
    (told,) = (await rest.get_dag("d")).deadlines
    assert (told.when, told.next_run_id) == ("by 07:00 UTC, the first after the run is due", None)
    assert told.next_due_at == datetime(2050, 1, 1, 7, tzinfo=UTC)
    await rest.set_paused("d", is_paused=True)
    (told,) = (await rest.get_dag("d")).deadlines
    assert told.next_due_at is None


async def test_a_run_says_of_each_deadline_whether_it_is_met(rest: RestClient, scheduled: World) -> None:
    by_logical = DeadlineSpec(name="by date", reference="logical_date")
    scheduled.add_dag(DagSpec(dag_id="d", tasks=TASKS, deadlines=(HOUR, NOW, by_logical)))
    scheduled.trigger("d", run_id="r")
    scheduled.advance()
    scheduled.advance()
    hour, at_once = (await rest.get_run("d", "r")).deadlines  # without a logical date there is none by it
    assert (hour.name, hour.state, at_once.name, at_once.state) == ("an hour", "open", "at once", "missed")
    assert hour.due_at - at_once.due_at == timedelta(hours=1)
    scheduled.report(scheduled.claim())
    scheduled.advance()
    hour, at_once = (await rest.get_run("d", "r")).deadlines
    assert (hour.state, at_once.state) == ("met", "missed")


@pytest.mark.parametrize(
    ("deadline", "when"),
    [
        (DeadlineSpec(name="x", reference="logical_date", interval=-60.0), "1 m 00 s before the logical date of the run"),
        (DeadlineSpec(name="x", reference="fixed_datetime", at="2050-01-01T00:00:00+00:00"), "at 2050-01-01T00:00:00+00:00"),
        (
            DeadlineSpec(name="x", reference="average_runtime", interval=90.0, runs=10, least=3),
            "1 m 30 s after the average of the last 10 runs that succeeded, of at least 3",
        ),
    ],
)
async def test_each_kind_has_its_words(rest: RestClient, scheduled: World, deadline: DeadlineSpec, when: str) -> None:
    scheduled.add_dag(DagSpec(dag_id="d", tasks=TASKS, deadlines=(deadline,)))
    (told,) = (await rest.get_dag("d")).deadlines
    assert told.when == when
