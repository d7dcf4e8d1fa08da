"""Backfills over REST, and what runs take when somebody asks for one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow.client.rest import RestClient
from evenflow.core.model import DagSpec, RunParamSpec, Schedule, TaskSpec
from evenflow.errors import ApiRefused
from tests.api.world import World

FIRST = datetime(2026, 3, 1, tzinfo=UTC)
DAILY = DagSpec(
    dag_id="daily",
    tasks=(TaskSpec(task_id="only", operator="python"),),
    schedule=Schedule(kind="cron", cron="@daily", trigger=True),
    params={"n": RunParamSpec(default=3, schema={"type": "integer", "minimum": 1})},
)


def asked(days: int, **more: Any) -> dict[str, Any]:
    return {"from_date": FIRST, "to_date": FIRST + timedelta(days=days - 1), **more}


async def test_a_dry_run_makes_nothing(rest: RestClient, world: World) -> None:
    key = world.add_dag(DAILY)
    for day, state in enumerate(("success", "failed")):
        run = world.run(key, f"old{day}", state=state)
        world.conn.execute("update dag_run set logical_date = %s where run_key = %s", [FIRST + timedelta(days=day), run])
    for reprocess, wanted in (("none", [3]), ("failed", [2, 3]), ("completed", [1, 2, 3])):
        plan = await rest.create_backfill("daily", **asked(3, dry_run=True, reprocess=reprocess))
        assert [run.logical_date.day for run in plan.runs if run.passed_over is None] == wanted
    plan = await rest.create_backfill("daily", **asked(3, dry_run=True, reverse=True))
    assert [(run.logical_date.day, run.passed_over) for run in plan.runs] == [
        (3, None),
        (2, "has the run old1, which is failed"),
        (1, "has the run old0, which is success"),
    ]
    assert world.one("select count(*) from backfill") == 0


async def test_the_life_of_a_backfill(rest: RestClient, world: World) -> None:
    world.add_dag(DAILY)
    plan = await rest.create_backfill("daily", **asked(3, params={"n": 5}, max_active_runs=2))
    assert plan.backfill_id is not None
    with pytest.raises(ApiRefused, match="is not over yet"):
        await rest.create_backfill("daily", **asked(1))
    backfill = await rest.get_backfill(plan.backfill_id)
    assert (backfill.total, backfill.waiting, backfill.params, backfill.priority) == (3, 3, {"n": 5}, -1)
    assert (backfill.created_by, backfill.is_paused) == ("ada", False)
    assert (await rest.pause_backfill(plan.backfill_id, is_paused=True)).is_paused
    assert not (await rest.pause_backfill(plan.backfill_id, is_paused=False)).is_paused
    dates = await rest.list_backfill_runs(plan.backfill_id)
    assert [date.logical_date.day for date in dates.items] == [1, 2, 3]
    assert (await rest.cancel_backfill(plan.backfill_id)).cancelled_by == "ada"
    with pytest.raises(ApiRefused, match="is over"):
        await rest.pause_backfill(plan.backfill_id, is_paused=True)
    assert [b.backfill_id for b in (await rest.list_backfills(dag_id="daily")).items] == [plan.backfill_id]


async def test_what_makes_no_sense_is_said(rest: RestClient, world: World) -> None:
    world.add_dag(DAILY)
    world.add_dag(DagSpec(dag_id="manual", tasks=()))
    world.add_dag(DagSpec(dag_id="coded", tasks=(), schedule=Schedule(kind="code", code="Odd")))
    past = TaskSpec(task_id="a", operator="python", depends_on_past=True)
    world.add_dag(DagSpec(dag_id="past", tasks=(past,), schedule=DAILY.schedule))
    for dag_id, request, message in (
        ("manual", asked(1), r"by hand\) names no times.* evenflow runs trigger manual --logical-date DATE"),
        ("coded", asked(1), r"\(Odd\) is code of your own.* evenflow runs trigger coded --logical-date DATE"),
        ("daily", asked(0), "the last date is before the first: exchange them"),
        ("daily", {"from_date": "2099-01-01T00:00Z", "to_date": "2099-02-01T00:00Z"}, "has no date in this range"),
        ("daily", {"from_date": "1970-01-01T00:00Z", "to_date": "2026-01-01T00:00Z"}, "more than 10,000 dates"),
        ("daily", asked(1, params={"n": 0}), "must be at least 1, not 0"),
        ("past", asked(2, reverse=True), "depend on the run before"),
        ("none", asked(1), "There is no DAG 'none'"),
    ):
        with pytest.raises(ApiRefused, match=message):
            await rest.create_backfill(dag_id, **request)


async def test_a_logical_date_is_given_once(rest: RestClient, world: World) -> None:
    world.add_dag(DAILY)
    run = await rest.trigger_run("daily", logical_date=FIRST, note="for Bob")
    assert (run.run_type, run.data_interval_start, run.data_interval_end, run.note) == ("manual", FIRST, FIRST, "for Bob")
    with pytest.raises(ApiRefused, match=f"already: '{run.run_id}'"):
        await rest.trigger_run("daily", logical_date=FIRST, run_id="another")
    assert (await rest.trigger_run("daily")).logical_date is None
    with pytest.raises(ApiRefused, match="are for runs that Evenflow makes"):
        await rest.trigger_run("daily", run_id="scheduled__2026-03-01T00:00:00+00:00")


async def test_notes(rest: RestClient, world: World) -> None:
    world.run(world.add_dag(DAILY))
    assert (await rest.set_note("daily", "r1", note="looked at it")).note == "looked at it"
    assert (await rest.get_run("daily", "r1")).note == "looked at it"
    assert (await rest.set_note("daily", "r1", note=None)).note is None


async def test_params_that_do_not_fit_name_what_to_type(rest: RestClient, world: World) -> None:
    world.add_dag(DAILY)
    with pytest.raises(ApiRefused) as refused:
        await rest.trigger_run("daily", params={"n": 0})
    assert str(refused.value) == "The parameter 'n' must be at least 1, not 0. Type for example: --param n=3"


async def test_unpausing_forgets_why(rest: RestClient, world: World) -> None:
    world.add_dag(DAILY)
    world.conn.execute("update dag set is_paused = true, paused_reason = 'its last 2 runs failed'")
    assert (await rest.get_dag("daily")).paused_reason == "its last 2 runs failed"
    assert (await rest.set_paused("daily", is_paused=False)).paused_reason is None
