"""R-AF1: the second mount of Airflow's Task Execution API, over HTTP, asked by the SDK's own client, as in a pod that has Airflow
alone.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.api.service import ApiService
from evenflow.api.tokens import FleetToken, mint
from evenflow.contracts.airflow.of_try import instance_id
from evenflow.core.executors import KUBERNETES
from evenflow.store.serving import executors
from evenflow.wire.messages import AIRFLOW_API
from tests.airflow.conftest import run_inside
from tests.api.world import SPEC, World
from tests.tokens import key_state
from tests.world import at_once

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("airflow")]

PRODUCING = replace(SPEC, tasks=(replace(SPEC.tasks[0], outlets=("orders",)), *SPEC.tasks[1:]))


async def test_the_sdks_own_client_has_a_try_from_its_start_to_its_end(
    airflow_python: Path, api: ApiService, db: psycopg.Connection[Any]
) -> None:
    world = World(db)
    of_executor: dict[str, Any] = {"kind": KUBERNETES, "queues": ["pods"], "slots": 9, "options": {}, "by": "test"}
    assert at_once(executors.set_executor(world.awaited, name="k8s", **of_executor))
    epoch = world.dispatch(world.run(world.add_dag(PRODUCING), params={"p": 1}), 1, queue="pods")
    token = mint(key_state(db), FleetToken("worker", scope=("pods",), epoch=epoch, worker="the-pod"), ttl=600)
    url = f"http://127.0.0.1:{api.port}{AIRFLOW_API}/"
    printed = await asyncio.to_thread(run_inside, airflow_python, "http_client.py", url, token, str(instance_id(epoch)))
    told = json.loads(printed.splitlines()[-1])
    assert told["before the start"] == "ErrorType.PERMISSION_DENIED"
    assert (told["run"]["dag_run"]["conf"], told["run"]["max_tries"], told["run"]["should_retry"]) == ({"p": 1}, 2, True)
    assert (told["own"], told["count"], told["none"], told["slice"]) == ([1, 2], 1, None, [])
    assert (told["variable"], told["no variable"]) == ("1", "ErrorType.VARIABLE_NOT_FOUND")
    assert told["no connection"] == "ErrorType.CONNECTION_NOT_FOUND"
    assert (told["runs"], told["first look"], told["kept"], told["unknown"]) == (1, True, {"id": 7}, 422)
    assert (told["kept with an asset"], told["of another asset"]) == ("2026-03-01", 403)
    ended = world.one("select payload from report where kind = 'exit' and epoch = %s", epoch)
    assert (ended["outcome"], ended["skip"]) == ("success", [2])
    assert [(change["asset"], change["extra"]) for change in ended["produced"]] == [("orders", {"by": "***"})]
    xcoms = {key: (value, secret) for key, value, secret in world.all("select key, value, secret from xcom")}
    assert xcoms == {
        "k": ({"a": 1}, False),
        "return_value": ("s3://lake/a-list", False),
        "login": ({"as": "user:open-sesame"}, True),
        "harmless": ("user", False),
    }, "R-SE4: people do not see what holds a secret that the try was given"
    assert world.one("select length from xcom where key = 'return_value'") == 3
    assert world.one("select fields from rendered") == {"sql": "connect with ***"}
    assert "open-sesame" not in str(world.all("select value from try_record"))
