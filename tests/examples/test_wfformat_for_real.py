"""All recorded workflows on a whole Evenflow: real processes, real order."""

from __future__ import annotations

import asyncio
import json
import shutil
from datetime import datetime
from typing import Any

import pytest
import wfformat

from evenflow.client.rest import RestClient, every
from tests.examples.conftest import EXAMPLES
from tests.examples.test_wfformat import RECORDED
from tests.running import RunningEvenflow, running_evenflow

WITHIN_S = 600.0
PAGE = 1000


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not RECORDED.is_dir(), reason=f"no recorded workflows at {RECORDED}; name a folder of them in WFINSTANCES")
def test_all_recorded_workflows_succeed_in_dependency_order(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = dict(wfformat.instances(str(RECORDED)))
    monkeypatch.setenv("WFFORMAT", str(RECORDED))
    with running_evenflow() as evenflow:
        for name in ("wfformat.py", "wfformat_sample.py"):
            shutil.copy(EXAMPLES / name, evenflow.dags)
        times = asyncio.run(run_all(evenflow, list(recorded)))
    for dag_id, instance in recorded.items():
        parents, _ = wfformat.read_tasks(dag_id, instance)
        assert times[dag_id].keys() == parents.keys()
        for task_id, before in parents.items():
            begun = times[dag_id][task_id][0]
            assert all(times[dag_id][parent][1] <= begun for parent in before), (dag_id, task_id)


async def run_all(evenflow: RunningEvenflow, dag_ids: list[str]) -> dict[str, dict[str, tuple[datetime, datetime]]]:
    """Runs every DAG; answers when each task began and ended."""
    times: dict[str, dict[str, tuple[datetime, datetime]]] = {}
    async with RestClient(evenflow.api_url, evenflow.token) as api, asyncio.timeout(WITHIN_S):
        while len((await api.list_dags(limit=PAGE)).items) < len(dag_ids):  # noqa: ASYNC110  (other processes do it)
            await asyncio.sleep(0.2)
        for dag_id in dag_ids:
            await api.trigger_run(dag_id, run_id="recorded", params={"speedup": 1e9})
        for dag_id in dag_ids:
            while (run := await api.get_run(dag_id, "recorded")).ended_at is None:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
            assert run.state == "success", json.dumps([dag_id, run.tasks_by_state, run.reason])
            times[dag_id] = {task.task_id: (task.started_at, task.ended_at) for task in await all_tasks(api, dag_id)}
    return times


async def all_tasks(api: RestClient, dag_id: str) -> list[Any]:
    return [task async for task in every(api.list_tasks, dag_id, "recorded")]
