"""Airflow's own example DAGs, unmodified, run by a whole Evenflow: how each run and each task of it ended.

``outcomes.json`` says how they end in Airflow 3.3.2, by module and DAG, or what a module needs that is not
here: a network, an hour.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from tests.running import RunningEvenflow, running_evenflow

OUTCOMES: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "outcomes.json").read_text(encoding="utf-8"))
LOGICAL_DATE = datetime(2026, 1, 15, tzinfo=UTC)  # a Thursday: there are branches by days of the week
RUN_ID = "intended"
AT_ONCE = 8  # runs, of which many have tasks that sleep
RUN_WITHIN_S = 300.0
LOOK_S = 0.5
FOLDERS = {"core": "example_dags", "standard": "providers/standard/example_dags"}
ENDS = ("success", "failed")

Outcome = dict[str, Any]


def intended() -> dict[str, Outcome]:
    """By DAG, of all modules that need nothing that is not here."""
    return {dag_id: outcome for dags in OUTCOMES.values() if "needs" not in dags for dag_id, outcome in dags.items()}


def run_examples(python: Path) -> dict[str, Outcome]:
    """How they end, all on one ``evenflow up``, by DAG."""
    modules = [module for module, dags in OUTCOMES.items() if "needs" not in dags]
    environments = json.dumps({"airflow": str(python)})
    with running_evenflow(EVENFLOW_ENVIRONMENTS=environments, EVENFLOW_DAGS_ENVIRONMENT="airflow") as running:
        _bring(python, modules, running.dags)
        return asyncio.run(_run(running, intended()))


def agrees(found: Outcome | None, wanted: Outcome) -> bool:
    """``one_of`` are the outcomes that the clock chooses from."""
    outcomes = wanted["one_of"] if "one_of" in wanted else [{name: wanted[name] for name in ("state", "tasks")}]
    return found in outcomes


def _bring(python: Path, modules: Iterable[str], folder: Path) -> None:
    done = subprocess.run([python, "-c", "import airflow; print(*airflow.__path__)"], capture_output=True, text=True, check=True)
    base = Path(done.stdout.split()[0])
    for module in modules:
        kind, _, name = module.partition("/")
        shutil.copy(base / FOLDERS[kind] / f"{name}.py", folder)
    for beside in ("libs", "sql", "plugins"):
        shutil.copytree(base / FOLDERS["core"] / beside, folder / beside, dirs_exist_ok=True)


async def _run(running: RunningEvenflow, wanted: dict[str, Outcome]) -> dict[str, Outcome]:
    async with RestClient(running.api_url, running.token) as api:
        async for _ in _looks():
            there = {dag.dag_id for dag in (await api.list_dags(limit=1000)).items} & wanted.keys()
            if len(there) == len(wanted):
                break
        room = asyncio.Semaphore(AT_ONCE)
        asked = [dag_id for dag_id in wanted if dag_id in there]
        found = await asyncio.gather(*(_outcome(api, dag_id, wanted[dag_id].get("params", {}), room) for dag_id in asked))
    return dict(zip(asked, found, strict=True))


async def _outcome(api: RestClient, dag_id: str, params: dict[str, Any], room: asyncio.Semaphore) -> Outcome:
    async with room:
        try:
            await api.trigger_run(dag_id, run_id=RUN_ID, logical_date=LOGICAL_DATE, params=params)
        except ApiRefused as error:
            return {"state": str(error), "tasks": {}}
        async for _ in _looks():
            run = await api.get_run(dag_id, RUN_ID)
            if run.state in ENDS:
                break
        tasks: dict[str, list[str]] = {}
        for task in (await api.list_tasks(dag_id, RUN_ID, limit=1000)).items:
            tasks.setdefault(task.task_id, []).append(str(task.state))
    return {"state": str(run.state), "tasks": {name: states if len(states) > 1 else states[0] for name, states in tasks.items()}}


async def _looks() -> AsyncIterator[float]:
    """When to look, for as long as is waited for anything."""
    deadline = time.monotonic() + RUN_WITHIN_S
    while (now := time.monotonic()) < deadline:
        yield now
        await asyncio.sleep(LOOK_S)
