"""api_lists: how long each list of REST takes over a history of 5,000,000 finished task instances, the API being a real process.

A client asks for the lists in turn, one at a time, each time for another DAG, run and task. ``p95_s`` is that of the ``worst``
list.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import measure
from asking import Asking
from finished_runs import add_finished_runs, add_partitions
from server import fresh_database, open_connection, serve
from services import environment, service, token, until_listening
from stored_shape import store_shape

CASE = "api_lists"
INSTANCES = 5_000_000
P95_S = 0.1
TASKS, RUNS = 100, 100  # of a run, of a DAG
ROUNDS = 40
LESS = 4  # rounds that are not counted: plans, connections, the first blocks


class Chosen:
    """Names of things that there are."""

    def __init__(self, asking: Asking, dag_ids: list[str], runs: int, tasks: int, chance: random.Random) -> None:
        self._asking, self._dag_ids, self._runs, self._tasks, self._chance = asking, dag_ids, runs, tasks, chance
        self._behind: dict[str, str] = {}

    @property
    def dag(self) -> str:
        return self._chance.choice(self._dag_ids)

    @property
    def run(self) -> str:
        return f"{self.dag}/runs/scheduled__{self._chance.randrange(self._runs)}"

    @property
    def task(self) -> str:
        return f"{self.run}/tasks/t{self._chance.randrange(self._tasks)}"

    def far(self, path: str, pages: int) -> str:
        """The page of the list behind so many, to which one gets page by page."""
        if path not in self._behind:
            cursor = ""
            for _ in range(pages):
                page = json.loads(self._asking.get(f"{path}{cursor}")[1])
                cursor = f"&cursor={page['next']}" if page["next"] else cursor
            self._behind[path] = cursor
        return f"{path}{self._behind[path]}"


# By route and filter: what is asked for. The routes are all that answer pages, but for those of `BY_NAME`.
LISTS: dict[str, Callable[[Chosen], str]] = {
    "dags": lambda _: "dags?limit=100&recent=24",
    "dags, searched": lambda one: f"dags?limit=100&recent=24&search={one.dag}",
    "dags, far": lambda one: one.far("dags?limit=100&recent=24", 3),
    "dags/{dag_id}/versions": lambda one: f"dags/{one.dag}/versions",
    "dags/{dag_id}/grid": lambda one: f"dags/{one.dag}/grid?limit=25",
    "dags/{dag_id}/calendar": lambda one: f"dags/{one.dag}/calendar",
    "runs": lambda _: "runs?limit=100",
    "runs, failed": lambda _: "runs?limit=100&state=failed",
    "runs, running": lambda _: "runs?limit=100&state=running",
    "runs, of a DAG": lambda one: f"runs?limit=100&dag_id={one.dag}",
    "runs, of a DAG, failed": lambda one: f"runs?limit=100&dag_id={one.dag}&state=failed",
    "runs, far": lambda one: one.far("runs?limit=1000", 10),
    "dags/{dag_id}/runs/{run_id}/tasks": lambda one: f"dags/{one.run}/tasks?limit=200",
    "dags/{dag_id}/runs/{run_id}/tasks, failed": lambda one: f"dags/{one.run}/tasks?limit=200&state=failed",
    "dags/{dag_id}/runs/{run_id}/events": lambda one: f"dags/{one.run}/events",
    "dags/{dag_id}/runs/{run_id}/tasks/{task_id}/events": lambda one: f"dags/{one.task}/events",
    "dags/{dag_id}/runs/{run_id}/xcoms": lambda one: f"dags/{one.run}/xcoms",
    "plan": lambda _: "plan?limit=20",
    "parse-errors": lambda _: "parse-errors",
    "parse-warnings": lambda _: "parse-warnings",
    "bundles": lambda _: "bundles",
    "backfills": lambda _: "backfills",
    "triggers": lambda _: "triggers",
    "connections": lambda _: "connections",
    "variables": lambda _: "variables",
    "assets": lambda _: "assets",
    "assets/events": lambda _: "assets/events",
    "events": lambda _: "events",
    "events, of a DAG": lambda one: f"events?object={one.dag}",
    "quarantine": lambda _: "quarantine",
    "approvals": lambda _: "approvals",
    "users": lambda _: "users",
    "sessions": lambda _: "sessions",
    "tokens": lambda _: "tokens",
}
# These are about one thing by its name, of which a history of runs has none.
BY_NAME = {
    "assets/partitions",
    "backfills/{backfill_id}/runs",
    "fleets/{name}/looks",
    "fleets/{name}/steps",
    "settings/{name}/history",
}


def run(*, size: int | None, dsn: str | None) -> Iterator[dict[str, Any]]:
    dags = max(1, (size or INSTANCES) // (TASKS * RUNS))
    shape = {"groups": [{"name": "past", "dags": dags, "graph": "parallel", "n": TASKS, "body": "noop"}]}
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evenflow-bench-")))
        server = stack.enter_context(serve(dsn))
        url = fresh_database(server, "lists")
        dag_ids = list(asyncio.run(store_shape(url, shape)))
        with open_connection(url, "bench") as conn:
            add_partitions(conn)
            instances = sum(add_finished_runs(conn, dag_ids[at : at + 50], RUNS) for at in range(0, dags, 50))
            conn.execute("vacuum analyze")
        settings = environment(home, home / "dags", url)
        bearer = token("operator", settings, "--role", "admin")
        stack.enter_context(service("api", settings))
        until_listening(int(settings["EVENFLOW_API_PORT"]))
        asking = Asking(settings["EVENFLOW_API_URL"], bearer)
        taken = _taken(asking, Chosen(asking, dag_ids, RUNS, TASKS, random.Random(1)))
        told = {name: measure.quantiles(seconds) or {} for name, seconds in taken.items()}
    worst = max(told, key=lambda name: told[name]["p95"])
    p95_s = told[worst]["p95"]
    lists = {name: {key: told[name][key] for key in ("median", "p95")} for name in sorted(told, key=lambda n: -told[n]["p95"])}
    ok = p95_s <= P95_S and instances == dags * RUNS * TASKS
    yield {"ok": ok, "load": measure.load(), "instances": instances, "p95_s": p95_s, "worst": worst, "lists": lists}


def _taken(asking: Asking, chosen: Chosen) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in LISTS}
    for number in range(LESS + ROUNDS):
        for name, path in LISTS.items():
            took, _ = asking.get(path(chosen))
            if number >= LESS:
                taken[name].append(took)
    return taken
