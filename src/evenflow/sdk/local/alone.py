"""The answers of a control plane that is not there: what ``dag.test()`` says to a task that asks for other runs or for events."""

from __future__ import annotations

import atexit
import functools
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import Any


@functools.cache
def _results() -> Path:
    """For files that are results, as long as this process lives."""
    folder = Path(tempfile.mkdtemp(prefix="evenflow-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def answer_alone(question: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """In ``dag.test()`` a run is alone: no events came before it, nothing is defined outside, and what it triggers or waits for in
    other DAGs is said on stdout and taken as done.
    """
    match question:
        case "waited":
            return {"waited_s": 0.0}
        case "triggering_events" | "inlet_events":
            return {"events": []}
        case "trigger":
            print(f"dag.test() runs no other DAG: taken as triggered is {arguments['dag_id']} with conf {arguments['conf']!r}")
            return {"run_id": arguments.get("run_id") or "test__triggered", "state": "success", "is_own": True}
        case "states":
            print(f"dag.test() sees no other DAG: taken as successful is {arguments['dag_id']}")
            dates, names = arguments.get("logical_dates", []), arguments.get("run_ids", [])
            tasks = {task_id: {"success": 1} for task_id in arguments.get("task_ids") or ["all"]}
            return {
                "runs": [
                    *({"run_id": "test", "logical_date": d, "state": "success", "tasks": tasks} for d in dates),
                    *({"run_id": name, "logical_date": None, "state": "success", "tasks": tasks} for name in names),
                ],
                "missing": [],
            }
        case "record":
            return {}  # nobody keeps it
        case "folder":
            name = f"0-{secrets.token_hex(8)}.parquet"
            (_results() / name).mkdir()
            return {"url": _results().as_uri(), "name": name}
        case "set_variable" | "delete_variable":
            print(f"dag.test() has no database: the variable {arguments['name']} is left as it is")
            return {}
        case _:
            return {}
