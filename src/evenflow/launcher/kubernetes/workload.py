"""What the pod of an image runs that has Airflow and not Evenflow: Airflow's own entry point, for one workload in its form. It asks
the API by Airflow's Task Execution API.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evenflow.contracts.airflow.of_try import instance_id
from evenflow.core.limits import BEAT_S
from evenflow.core.model import UNMAPPED
from evenflow.kubernetes.client import Object
from evenflow.store.serving.launches import LaunchedCode
from evenflow.wire.messages import AIRFLOW_API

WORKLOAD = "EVENFLOW_WORKLOAD"  # the variable that has the workload, with the token: arguments are seen by all of a node
API_URL = "AIRFLOW__CORE__EXECUTION_API_SERVER_URL"
_FILE, _BUNDLE, _QUEUE = "evenflow/file", "evenflow/bundle", "evenflow/queue"
_PROGRAM = (
    "import os, sys; from airflow.sdk.execution_time import execute_workload; "
    f"sys.argv[1:] = ['--json-string', os.environ.pop('{WORKLOAD}')]; execute_workload.main()"
)
ARGUMENTS = ("-c", _PROGRAM)  # of Python


def settings(api_url: str, code: LaunchedCode) -> dict[str, str]:
    """Returns the configuration of the image's Airflow: where the API is, and that its own folder of DAGs is the bundle."""
    bundle = {"name": code.bundle, "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle", "kwargs": {}}
    return {
        API_URL: f"{api_url.rstrip('/')}{AIRFLOW_API}/",
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle]),
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": f"{BEAT_S:g}",
    }


def notes_of(code: LaunchedCode, queue: str) -> dict[str, str]:
    """Returns the annotations that a workload needs to be made of a pod, beside what every pod says."""
    return {_FILE: code.file, _BUNDLE: code.bundle, _QUEUE: queue}


def workload_of(pod: Object, epoch: int, token: str) -> str:
    """Returns the workload of an existing pod, as JSON."""
    said: Mapping[str, str] = pod["metadata"]["annotations"]
    instance: dict[str, Any] = {
        "id": str(instance_id(epoch)),
        "dag_version_id": str(instance_id(epoch)),
        "dag_id": said["evenflow/dag-id"],
        "run_id": said["evenflow/run-id"],
        "task_id": said["evenflow/task-id"],
        "map_index": int(said.get("evenflow/map-index", UNMAPPED)),
        "try_number": int(said["evenflow/try-number"]),
        "queue": said[_QUEUE],
        "pool_slots": 1,
        "priority_weight": 1,
    }
    told = {
        "type": "ExecuteTask",
        "token": token,
        "ti": instance,
        "dag_rel_path": said[_FILE],
        "bundle_info": {"name": said[_BUNDLE], "version": None},
        "log_path": None,
    }
    return json.dumps(told)
