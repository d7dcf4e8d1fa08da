"""R-HA13 over REST: what is set aside shows with its reason, wherever one looks, and is released by name."""

from __future__ import annotations

import pytest

from evenflow.client.rest import RestClient
from evenflow.core import why as x
from evenflow.errors import ApiRefused
from tests.api.world import World

REASON = "KeyError in scheduler/branches.py, line 44"


@pytest.fixture
def run_key(world: World) -> int:
    run = world.run(world.add_dag())
    world.instance(run, 0, -1, state="none")
    world.conn.execute("update dag_run set quarantined_at = now() where run_key = %s", [run])
    world.conn.execute("insert into quarantine (kind, object, run_key, reason) values ('run', 'sales/r1', %s, %s)", [run, REASON])
    world.conn.execute("insert into report (run_key, kind, epoch, held) values (%s, 'started', 7, true)", [run])
    return run


async def test_it_shows_wherever_one_looks(rest: RestClient, run_key: int) -> None:
    (found,) = (await rest.list_quarantine()).items
    assert (found.kind, found.object, found.reason) == ("run", "sales/r1", REASON)
    assert [run.quarantine for run in (await rest.list_runs()).items] == [REASON]
    assert (await rest.get_run("sales", "r1")).quarantine == REASON
    status = await rest.get_status()
    assert (status.quarantined, status.inbox) == ({"run": 1}, 0)
    (reason,) = (await rest.explain("sales", "r1", "extract")).reasons
    assert isinstance(reason, x.Quarantined)
    assert reason.explanation == REASON


async def test_a_release_lets_wait_nothing_any_more_and_is_recorded(rest: RestClient, world: World, run_key: int) -> None:
    await rest.release_quarantined(kind="run", object="sales/r1")
    assert (await rest.list_quarantine()).items == []
    assert world.one("select held from report") is False
    assert world.one("select quarantined_at from dag_run") is None
    assert world.all("select event || ' ' || actor from run_event") == ["release ada"]
    assert world.all("select action || ' ' || object from audit_event") == ["run.release sales/r1"]
    with pytest.raises(ApiRefused, match=r"'sales/r1' is not in quarantine. To see what is: evenflow quarantine list") as refused:
        await rest.release_quarantined(kind="run", object="sales/r1")
    assert refused.value.status == 404
    assert world.one("select count(*) from audit_event") == 1


async def test_a_schedule_is_looked_at_again(rest: RestClient, world: World) -> None:
    world.add_dag()
    world.conn.execute("insert into quarantine (kind, object, reason) values ('schedule', 'sales', 'x'), ('backfill', '7', 'x')")
    await rest.release_quarantined(kind="schedule", object="sales")
    assert world.one("select next_run_at is not null from dag where dag_id = 'sales'") is True
    assert [found.kind for found in (await rest.list_quarantine()).items] == ["backfill"]


async def test_a_run_in_quarantine_is_deleted_with_its_place_there(rest: RestClient, world: World, run_key: int) -> None:
    world.conn.execute("update dag_run set state = 'failed'")
    await rest.delete_run("sales", "r1")
    assert (await rest.list_quarantine()).items == []
