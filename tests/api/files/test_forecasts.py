"""R-AF1: the next runs of schedules that are code: a processor computes them, they are stored, and asked for again in time."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.forecast import Forecast, TimetableRun
from evenflow.core.limits import FORECAST_RUNS
from evenflow.core.model import DagSpec, Schedule, TaskSpec
from evenflow.wire import messages as m
from evenflow.wire.code import pack
from tests.api.world import World
from tests.world import CODE, CODE_HASH

pytestmark = pytest.mark.usefixtures("no_dag")

DAY = timedelta(days=1)
NOW = datetime.now(UTC)
CODED = DagSpec(
    dag_id="coded", tasks=(TaskSpec(task_id="a", operator="python"),), schedule=Schedule(kind="code", code="Odd"), catchup=True
)


def ahead(first: datetime, n: int = FORECAST_RUNS) -> Forecast:
    return Forecast(tuple(TimetableRun(at, at, at + DAY, at + 2 * DAY) for at in (first + day * DAY for day in range(n))))


async def see(processor: ExecutionClient, fingerprint: str = "1") -> None:
    await processor.files_seen(m.FilesSeen(bundle="main", files=[m.FileSeen(file="a.py", fingerprint=fingerprint)]))


async def lease(processor: ExecutionClient) -> list[m.LeasedFile]:
    identity = m.Register(kind="processor", name="p", host="h", pid=1, version="0")
    service_id = (await processor.register(identity)).service_id
    return (await processor.lease_files(m.FilesLease(service_id=service_id, bundles=["main"], limit=9, lease_s=60.0))).files


async def parsed(processor: ExecutionClient, *specs: DagSpec, **other: Any) -> list[str]:
    texts = [spec.to_json() for spec in specs]
    message = m.ParsedFile(bundle="main", file="a.py", fingerprint="1", seconds=0.1, specs=texts, code_hash=CODE_HASH, **other)
    return (await processor.file_parsed(message)).errors


@pytest.fixture(autouse=True)
async def _code(processor: ExecutionClient) -> None:
    await processor.put_code(CODE_HASH, pack(CODE))
    await see(processor)


async def test_a_forecast_says_when_the_next_run_is(processor: ExecutionClient, world: World) -> None:
    found = ahead(NOW)
    assert await parsed(processor, CODED, forecasts={"coded": found.to_json()}) == []
    assert world.one("select next_run_at, next_logical, wants_forecast from dag") == (NOW + 2 * DAY, NOW, False)
    assert await lease(processor) == []
    await see(processor)
    await parsed(processor, dataclasses.replace(CODED, schedule=Schedule()))
    assert world.one("select next_run_at, forecast, wants_forecast from dag") == (None, None, False)


async def test_nonsense_is_refused_with_the_name_of_the_dag(processor: ExecutionClient) -> None:
    (error,) = await parsed(processor, CODED)
    assert "'coded' came without next runs" in error
    backwards = Forecast(tuple(reversed(ahead(NOW, 2).runs)))
    (error,) = await parsed(processor, CODED, forecasts={"coded": backwards.to_json()})
    assert error.startswith("DAG 'coded': The timetable made a run for")


async def test_a_file_whose_forecast_is_low_is_loaded_again_from_where_its_dag_is(processor: ExecutionClient, world: World) -> None:
    await parsed(processor, CODED, forecasts={"coded": ahead(NOW, 3).to_json()})
    world.conn.execute("update dag set last_logical = %s, last_interval_end = %s", [NOW, NOW + DAY])
    (leased,) = await lease(processor)
    begin, end = leased.pasts["coded"]
    assert (datetime.fromisoformat(begin), datetime.fromisoformat(end)) == (NOW, NOW + DAY)
    assert await lease(processor) == [], "it is leased"
    await parsed(processor, CODED, forecasts={"coded": ahead(NOW + DAY).to_json()})
    assert world.one("select next_logical from dag") == NOW + DAY
    assert await lease(processor) == []


async def test_a_file_that_cannot_be_loaded_any_more_is_loaded_again_after_a_while(
    processor: ExecutionClient, world: World
) -> None:
    await parsed(processor, CODED, forecasts={"coded": ahead(NOW, 3).to_json()})
    await parsed(processor, error="the timetable has raised it")
    assert await lease(processor) == []
    world.conn.execute("update dag_file set parsed_at = now() - interval '2 minutes'")
    assert [leased.file for leased in await lease(processor)] == ["a.py"]


async def test_after_a_pause_in_which_all_dates_have_passed_new_ones_are_asked_for(
    processor: ExecutionClient, api_url: str, operator_token: str, world: World
) -> None:
    """Without catchup none of the old dates is run."""
    spec = dataclasses.replace(CODED, catchup=False)
    await parsed(processor, spec, forecasts={"coded": ahead(NOW).to_json()})
    world.conn.execute("update dag set forecast = %s::jsonb", [ahead(NOW - 200 * DAY).to_json()])
    async with RestClient(api_url, operator_token) as rest:
        await rest.set_paused("coded", is_paused=True)
        await rest.set_paused("coded", is_paused=False)
    assert world.one("select next_run_at, wants_forecast from dag") == (None, True)
    assert [leased.file for leased in await lease(processor)] == ["a.py"]
