"""DAGs and runs for the web UI: something that went well, something that failed, and something that waits for a limit."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import psycopg

from evenflow.runtime.embedded import EmbeddedPostgres
from tests.running import RunningEvenflow
from tests.waiting import wait_until

ORDERS = '''
"""Orders of a shop, from its API to a report."""
from datetime import datetime

from evenflow import Param, dag, task


@dag(
    schedule="0 6 * * *",
    start_date=datetime.fromisoformat(TOMORROW),
    tags=["sales", "daily"],
    description="Orders of the day: fetched, checked, weighed and reported.",
    params={
        "region": Param("north", enum=["north", "south", "west"], description="Whose orders."),
        "limit": Param(100, type="integer", minimum=1, description="Orders at most."),
        "break_it": Param(False, type="boolean", description="Send an order that no one can weigh."),
    },
)
def orders():
    @task
    def fetch(params=None) -> list[int]:
        print(f"fetching orders of {params['region']}")
        for page in range(1, 13):
            print(f"page {page} of 12: {page * 8} orders so far")
        return list(range(6))

    @task
    def check(found: list[int]) -> int:
        print(f"{len(found)} orders are complete")
        return len(found)

    @task
    def weigh(order: int) -> int:
        return 100 + order

    @task
    def load(weights: list[int], params=None) -> int:
        for weight in weights:
            print(f"loading an order of {weight} g")
        if params["break_it"]:
            raise ValueError("order 4711 has no weight: None")
        return sum(weights)

    @task
    def report(total: int, complete: int) -> str:
        return f"{complete} orders, {total} g"

    found = fetch()
    report(load(weigh.expand(order=found)), check(found))


orders()
'''

NIGHTLY = '''
"""Exports for the warehouse, two at a time."""
from pathlib import Path
import time

from evenflow import dag, task


@dag(schedule=None, tags=["warehouse"], description="Exports of every table; the warehouse takes two at once.")
def nightly_export():
    @task
    def tables() -> list[str]:
        return ["customers", "orders", "parcels", "prices", "returns", "stock"]

    @task(pool="warehouse")
    def export(table: str) -> str:
        print(f"exporting {table}")
        while not Path(GATE).exists():
            time.sleep(0.2)
        return table

    export.expand(table=tables())


nightly_export()
'''

QUIET = """
from datetime import datetime

from evenflow import DeadlineAlert, dag, task


@dag(schedule="@weekly", start_date=datetime.fromisoformat(TOMORROW), tags=["house"], deadline=[DeadlineAlert.done_by("07:00")])
def tidy_up():
    @task
    def sweep() -> None:
        pass

    sweep()


tidy_up()
"""


def seed(evenflow: RunningEvenflow) -> None:
    """Returns when `orders` has three good runs and a failed one, and when six exports share two slots, until :func:`let_go`."""
    ask(evenflow, "PUT", "pools/warehouse", {"slots": 2})
    gate, tomorrow = (
        evenflow.home / "gate",
        datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1),
    )
    for name, text in (("orders", ORDERS), ("nightly_export", NIGHTLY.replace("GATE", repr(str(gate)))), ("tidy_up", QUIET)):
        (evenflow.dags / f"{name}.py").write_text(text.replace("TOMORROW", repr(tomorrow.isoformat())))
    wait_until(lambda: len(ask(evenflow, "GET", "dags")["items"]) == 3, "the DAGs are known")
    for number in range(1, 5):
        run = f"morning {number}"
        trigger(evenflow, "orders", run, {"limit": number * 10, "break_it": number == 4})
        wait_until(lambda run=run: state_of(evenflow, "orders", run) in ("success", "failed"), f"{run} has ended")
    trigger(evenflow, "nightly_export", "tonight")
    tasks = "dags/nightly_export/runs/tonight/tasks"
    wait_until(lambda: [t["state"] for t in ask(evenflow, "GET", tasks)["items"]].count("running") == 2, "two exports run")


def let_go(evenflow: RunningEvenflow) -> None:
    """What waits may go on."""
    (evenflow.home / "gate").touch()


def set_aside(evenflow: RunningEvenflow, kind: str, name: str, reason: str) -> None:
    """As a scheduler does with what it cannot handle."""
    with psycopg.connect(EmbeddedPostgres(evenflow.home).url(), autocommit=True) as conn:
        conn.execute("insert into quarantine (kind, object, reason) values (%s, %s, %s)", [kind, name, reason])


def trigger(evenflow: RunningEvenflow, dag_id: str, run_id: str, params: dict[str, Any] | None = None) -> None:
    ask(evenflow, "POST", f"dags/{dag_id}/runs", {"run_id": run_id, "params": params or {}})


def state_of(evenflow: RunningEvenflow, dag_id: str, run_id: str) -> str:
    return str(ask(evenflow, "GET", f"dags/{dag_id}/runs/{quote(run_id)}")["state"])


def ask(evenflow: RunningEvenflow, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """What REST answers. A command would say the same, and cost half a second of CPU."""
    shown = {"Authorization": f"Bearer {evenflow.token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{evenflow.api_url}/api/v1/{path}", data, shown, method=method), timeout=60) as answer:
        return json.load(answer)
