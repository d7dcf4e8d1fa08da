"""What the history pipeline might have returned: a month in which a pool was too small until somebody made it larger."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from evenflow.runtime.embedded import EmbeddedPostgres
from tests.running import RunningEvenflow

DAYS = 30
LARGER = 20  # days after the first: the pool has more slots from then on
HOUR_US = 3.6e9


def return_marts(evenflow: RunningEvenflow) -> None:
    with psycopg.connect(EmbeddedPostgres(evenflow.home).url(), autocommit=True) as conn:
        for name, rows in _marts().items():
            conn.execute("insert into mart (name, rows) values (%s, %s)", [name, Jsonb(rows)])


def _marts() -> dict[str, list[dict[str, Any]]]:
    chance, first = random.Random(1), datetime.now(UTC).toordinal() - datetime(1970, 1, 1).toordinal() - DAYS
    marts: dict[str, list[dict[str, Any]]] = {"lags": [], "wait_by_cause": [], "costs": []}
    for number in range(DAYS):
        day, held = first + number, 1.0 if number < LARGER else 0.12
        work = (0.45 if (day + 3) % 7 > 4 else 1.0) * chance.uniform(0.9, 1.1)  # less on Saturdays and Sundays
        pool = 30 * held * work * (1 + number / DAYS)
        late = {"run_p99_us": 1e6 * (20 + 4 * pool), "wait_p99_us": 1e6 * (10 + 9 * pool)}
        marts["lags"].append({"day": day, "dag_id": "nightly_export", "runs": 24, "tries": 900, **late})
        causes = {"pool": pool, "upstream": 22 * work, "run cap": 7 * work, "retry delay": 3 * work, "scheduling": 0.2 * work}
        marts["wait_by_cause"] += [
            {"day": day, "dag_id": "nightly_export", "cause": cause, "times": 90, "us": hours * HOUR_US}
            for cause, hours in causes.items()
        ]
        for dag_id, owner, share in (("nightly_export", "Warehouse", 0.6), ("orders", "Sales", 0.3), ("tidy_up", "House", 0.1)):
            took = {"tries": int(900 * share), "slot_us": 70 * share * work * HOUR_US, "wait_us": share * pool * HOUR_US}
            marts["costs"].append({"day": day, "dag_id": dag_id, "owner": owner, **took})
    slower = {"dag_id": "orders", "task_id": "load", "tries": 640, "p50_us": 9.4e7, "drift": 1.42, "drifts": 1, "worth": 0.42}
    longest: dict[str, Any] = {
        "dag_id": "orders",
        "task_id": "load",
        "run_key": 1,
        "run_id": "morning 4",
        "map_index": -1,
        "try_number": 1,
    }
    began = (first + DAYS) * 24 * HOUR_US + 6 * HOUR_US
    longest |= {"began_us": began, "us": 8.2e8, "p50_us": 9.4e7, "worth": 8.7}
    worth = {"saved_us": 300 * HOUR_US, "wait_us": 600 * HOUR_US, "worth": 300 * HOUR_US}
    advised = {"cause": "pool", "limit_name": "warehouse", "more": 4, **worth}
    return {**marts, "worth_raising": [advised], "durations": [slower], "anomalies": [longest]}
