"""The tries of a task instance with their segments, as people ask for them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from evenflow.client.rest import RestClient
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.errors import ApiRefused
from tests.scheduler.world import World

ONE = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python", retries=1, retry_delay=0.0),))


@pytest.fixture
def scheduled(db: psycopg.Connection[Any]) -> World:
    return World(db)


async def test_each_try_has_its_segments_with_worker_and_reason(api_url: str, operator_token: str, scheduled: World) -> None:
    """R-ST10: the first try fails; the second waits for a trigger, goes on and ends before its start is told."""
    scheduled.add_dag(ONE)
    run = scheduled.trigger("d", run_id="r")
    scheduled.advance()
    tried = scheduled.claim()
    scheduled.report(tried, started=True)
    scheduled.advance()
    scheduled.report(tried, "failed", reason="boom")
    scheduled.advance()
    scheduled.advance()  # the second try is due
    scheduled.defer(scheduled.claim())
    scheduled.advance()
    scheduled.fire(run)
    scheduled.advance()
    scheduled.report(scheduled.claim())
    scheduled.advance()
    async with RestClient(api_url, operator_token) as client:
        told = await client.list_tries("d", "r", "t")
        first, second = told.tries
        assert not told.is_cut
        assert (first.try_number, first.state, first.reason, second.try_number, second.state) == (
            1, "up_for_retry", "boom", 2, "success",
        )  # fmt: skip
        assert first.segments[-1].state == "running"
        states = [part.state for part in second.segments if part.state not in ("scheduled", "queued")]
        assert states == ["up_for_retry", "running", "deferred", "running"]  # a wait for a worker may be shorter than what is told
        ran = [part for part in second.segments if part.state == "running"]
        assert {part.worker for one in told.tries for part in one.segments if part.state == "running"} == {"w"}
        assert [part.begun_by for part in ran] == ["grant", "resume"]
        assert 0 < second.ran_s < 0.021
        events = await client.list_task_events("d", "r", "t")
        assert {entry.detail["worker"] for entry in events.items if entry.event in ("start", "defer", "succeed")} == {"w"}


async def test_what_has_not_begun_has_no_try_and_what_is_not_there_says_so(
    api_url: str, operator_token: str, scheduled: World
) -> None:
    scheduled.add_dag(ONE)
    scheduled.trigger("d", run_id="r")
    async with RestClient(api_url, operator_token) as client:
        assert (await client.list_tries("d", "r", "t")).tries == []
        with pytest.raises(ApiRefused, match="no task 'x'"):
            await client.list_tries("d", "r", "x")
