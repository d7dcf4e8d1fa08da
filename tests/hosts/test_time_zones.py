"""Hosts in different time zones decide alike: the zone of a DAG matters, or the setting where it names none."""

from __future__ import annotations

import shutil
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil
import pytest

from evenflow.store.db.connect import UNBOUNDED, connect
from evenflow.store.db.migrate import migrate
from tests.hosts import zones_dags
from tests.hosts.fleet import Fleet
from tests.waiting import wait_until

ZONES = ("Asia/Kathmandu", "America/St_Johns", "UTC")
BAD = "select count(*) from dag_file where error is not null"

# All that is decided, in the words of the database; its sessions are in UTC.
DECISIONS = {
    "runs": """
        select dag_id, run_id, run_type, logical_date, data_interval_start, data_interval_end,
               case when run_type = 'scheduled' then run_after end, state::text
        from dag_run where dag_id <> 'evenflow_callbacks' order by dag_id, logical_date, run_id""",
    "order of creation": """
        select dag_id, array_agg(run_id order by run_key) from dag_run where run_type = 'scheduled' group by 1 order by 1""",
    "order of starts": """
        select dag_id, array_agg(run_id order by started_at, run_key)
        from dag_run where run_type = 'scheduled' group by 1 order by 1""",
    "tasks": """
        select dag_id, run_id, task_id, i.state::text, try_number
        from task_instance i join dag_run r using (run_key) join task t using (version_key, task_index)
        where run_type = 'scheduled' order by 1, 2, 3""",
    "moves": """
        select dag_id, run_id, e.task_index, array_agg(e.event || ' ' || e.try_number order by e.at, e.epoch)
        from task_event e join dag_run r using (run_key)
        where run_type = 'scheduled' and e.event in ('retry', 'fail', 'succeed') group by 1, 2, 3 order by 1, 2, 3""",
    "deadlines": """
        select dag_id, run_id, detail ->> 'deadline', (detail ->> 'due_at')::timestamptz
        from run_event join dag_run r using (run_key) where event = 'deadline_missed' order by 1, 2, 3""",
    "templates": """
        select dag_id, run_id, x.task_index, value from xcom x join dag_run r using (run_key) order by 1, 2, 3""",
    "to come": "select dag_id, next_run_at, next_logical from dag where dag_id <> 'evenflow_callbacks' order by 1",
    "specs": "select dag_id, spec from dag_version order by 1",
}


def decide(fleet: Fleet, zones: tuple[str, ...]) -> dict[str, list[Any]]:
    """What a fleet on hosts in these zones decides; each kind of service is in several of them."""
    assert zones_dags.__file__
    shutil.copy(zones_dags.__file__, fleet.directory / "dags" / "zones.py")
    zone = cycle(zones)
    fleet.start("api", "api", timezone=next(zone))
    assert fleet.evenflow("settings", "set", "default_timezone", "Europe/Berlin").returncode == 0
    for kind, name in (("scheduler", "s1"), ("processor", "p1"), ("worker", "w1"), ("scheduler", "s2"), ("worker", "w2")):
        fleet.launch(kind, name, timezone=next(zone))
    for service in fleet.services[1:]:
        service.await_ready()
    seen = {psutil.Process(service.process.pid).environ()["TZ"] for service in fleet.services}
    assert seen == set(zones)

    def done() -> bool:
        (dags, due, live) = fleet.db.execute(
            "select count(*), count(*) filter (where next_run_at < now()),"
            " (select count(*) from dag_run where state in ('queued', 'running')) from dag where dag_id <> 'evenflow_callbacks'"
        ).fetchone()
        return dags == zones_dags.COUNT + 1 and not due and not live

    wait_until(done, lambda: [fleet.db.execute("select * from dag_file").fetchall(), fleet.live_runs()])
    assert fleet.db.execute(BAD).fetchone() == (0,)
    found = {what: fleet.db.execute(query).fetchall() for what, query in DECISIONS.items()}
    fleet.end()
    return found


@pytest.mark.slow
def test_hosts_in_three_zones_decide_as_hosts_in_utc_do(fleet: Fleet, empty_database_url: str, tmp_path: Path) -> None:
    """R-HA12: run ids, dates, intervals, times due, order, retries, deadlines and what tasks see, across changes of summer time.
    R-HA6: a default time zone that is a setting, and no host's.
    """
    expected = decide(fleet, ("UTC",))
    with connect(empty_database_url, name="test", timeouts=UNBOUNDED) as db:
        migrate(db)
        directory = tmp_path / "elsewhere"
        (directory / "dags").mkdir(parents=True)
        far = Fleet(empty_database_url, db, directory)
        try:
            found = decide(far, ZONES)
        finally:
            far.end()
    assert len(expected["runs"]) > 30
    assert len(expected["deadlines"]) > 3
    for what in DECISIONS:
        assert found[what] == expected[what], what
    dates = {run_id: logical for dag_id, run_id, _, logical, *_ in expected["runs"] if dag_id == "no_zone"}
    assert [at.hour for at in sorted(dates.values())] == [1, 1, 0], "two o'clock in Berlin, on the 30th of March three"
