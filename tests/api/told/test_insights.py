"""What history says is told by REST, from the marts that the history pipeline returns."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from evenflow.client.rest import RestClient
from tests.api.world import World

HOUR_US = 3_600_000_000
DAY = 20_000  # days since 1970: 2024-10-04
MARTS: dict[str, list[dict[str, Any]]] = {
    "lags": [
        {"day": DAY + day, "dag_id": dag, "runs": 2, "tries": 5, "run_p99_us": late * 1e6, "wait_p99_us": 2e6}
        for day, dag, late in ((0, "a", 1), (0, "b", 7), (1, "a", 3))
    ],
    "wait_by_cause": [
        {"day": DAY, "dag_id": dag, "cause": "pool", "limit_name": "etl", "times": 3, "us": 5e6} for dag in ("a", "b")
    ],
    "costs": [
        {"day": DAY, "dag_id": "a", "owner": "Ada", "tries": 5, "slot_us": 2 * HOUR_US, "wait_us": HOUR_US},
        {"day": DAY + 1, "dag_id": "a", "owner": "Ada", "tries": 4, "slot_us": HOUR_US, "wait_us": 0},
    ],
    "worth_raising": [
        {"cause": "pool", "limit_name": name, "more": 2, "saved_us": saved, "wait_us": 9 * HOUR_US, "worth": saved}
        for name, saved in (("etl", HOUR_US), ("wide", 8 * HOUR_US))
    ],
    "durations": [
        {"dag_id": "a", "task_id": task, "tries": 40, "p50_us": 6e6, "drift": 1 + (worth or 0), "drifts": 1, "worth": worth}
        for task, worth in (("slower", 0.5), ("steady", None), ("slowest", 0.9))
    ],
    "anomalies": [
        {
            "dag_id": "a",
            "task_id": "t",
            "run_key": 1,
            "run_id": run,
            "map_index": -1,
            "try_number": 2,
            "began_us": 1e15,
            "us": 9e7,
            "p50_us": 1e6,
            "worth": worth,
        }
        for run, worth in (("r", 90.0), ("s", 91.0))
    ],
    "violations": [],
}


async def test_where_the_pipeline_has_returned_nothing_that_is_said(rest: RestClient) -> None:
    found = await rest.read_insights()
    assert (found.made_at, found.days, found.violations) == (None, [], 0)


async def test_marts_are_summed_up_by_day_and_by_what_is_worth_a_look(rest: RestClient, world: World) -> None:
    """R-SP3"""
    for name, rows in MARTS.items():
        world.conn.execute("insert into mart (name, rows) values (%s, %s::jsonb)", [name, json.dumps(rows)])
    found = await rest.read_insights()
    assert found.made_at is not None
    first, second = found.days
    assert (first.day, first.runs, first.tries, first.run_p99_s) == ("2024-10-04", 4, 10, 7.0), "that of the DAG that was latest"
    assert (first.seconds, first.slot_hours, first.wait_hours) == ({"pool": 10.0}, 2.0, 1.0)
    assert (second.day, second.run_p99_s, second.seconds) == ("2024-10-05", 3.0, {})
    assert [(one.limit_name, one.more, one.saved_hours, one.wait_hours) for one in found.advice] == [
        ("wide", 2, 8.0, 9.0),
        ("etl", 2, 1.0, 9.0),
    ]
    assert [(one.dag_id, one.owner, one.tries, one.slot_hours) for one in found.dearest] == [("a", "Ada", 9, 3.0)]
    assert [(one.task_id, one.drift) for one in found.drifting] == [("slowest", 1.9), ("slower", 1.5)]
    longest, long = found.anomalies
    assert longest.run_id == "s"
    assert (long.run_id, long.seconds, long.usual_s) == ("r", 90.0, 1.0)
    assert long.began_at == datetime.fromtimestamp(1e9, UTC)
