"""Drives the Task Execution API of an Evenflow over HTTP with the SDK's own client, from the start of a try to its end, and prints
what its models made of the answers: ``http_client.py URL TOKEN ID``.
"""

from __future__ import annotations

import json
import sys
import uuid
from datetime import UTC, datetime
from typing import Any

from evenflow.airflow.installed import configure

configure()
from airflow.sdk.api.client import Client  # noqa: E402
from airflow.sdk.execution_time.comms import SkipDownstreamTasks  # noqa: E402
from statuses import status_of  # noqa: E402

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def main(url: str, token: str, id: uuid.UUID) -> dict[str, Any]:
    told: dict[str, Any] = {}
    client = Client(base_url=url, token=token)
    told["before the start"] = client.variables.get("x").error
    run = client.task_instances.start(id, 7, NOW)
    told["run"] = json.loads(run.model_dump_json())
    client.task_instances.heartbeat(id, 7)
    client.task_instances.set_rtif(id, {"sql": "select 1"})
    client.xcoms.set("sales", "r1", "extract", "k", {"a": 1})
    client.xcoms.set("sales", "r1", "extract", "return_value", [1, 2], mapped_length=2)
    told["own"] = client.xcoms.get("sales", "r1", "extract", "return_value").value
    told["count"] = client.xcoms.head("sales", "r1", "extract", "return_value").len
    told["none"] = client.xcoms.get("sales", "r1", "load", "return_value").value
    told["slice"] = client.xcoms.get_sequence_slice("sales", "r1", "clean", "return_value", None, None, None).root
    client.variables.set("new", "1", "why")
    told["variable"], told["no variable"] = client.variables.get("new").value, client.variables.get("missing").error
    told["no connection"] = client.connections.get("missing").error
    told["runs"] = client.dag_runs.get_count(dag_id="sales", run_ids=["r1"], states=["running"]).count
    told["first look"] = client.task_instances.get_reschedule_start_date(id).start_date is not None
    client.task_state_store.set(id, "job", {"id": 7}, None)
    told["kept"] = client.task_state_store.get(id, "job").value
    client.asset_state_store.set("until", "2026-03-01", name="orders")
    told["kept with an asset"] = client.asset_state_store.get("until", uri="orders").value
    told["of another asset"] = status_of(lambda: client.asset_state_store.get("until", name="other"))
    told["unknown"] = status_of(lambda: client.variables.keys())
    client.variables.set("warehouse_password", "open-sesame", "why")
    client.xcoms.set("sales", "r1", "extract", "return_value", "s3://lake/a-list", mapped_length=3)
    password = client.variables.get("warehouse_password").value
    client.xcoms.set("sales", "r1", "extract", "login", {"as": f"user:{password}"})
    client.xcoms.set("sales", "r1", "extract", "harmless", "user")
    client.task_instances.set_rtif(id, {"sql": f"connect with {password}"})
    client.task_instances.skip_downstream_tasks(id, SkipDownstreamTasks(tasks=["load"]))
    made = {"dest_asset_key": {"name": "orders", "uri": "orders"}, "extra": {"by": password}}
    client.task_instances.succeed(id, NOW, [], [made], None)
    return told


print(json.dumps(main(sys.argv[1], sys.argv[2], uuid.UUID(sys.argv[3])), default=str))
