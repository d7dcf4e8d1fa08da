"""Airflow's own example modules, unmodified: how many load, how many are refused by the name of what is missing, and how many of
their DAGs, of those that need no cloud and no network, end as in Airflow, with all their tasks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.airflow.conftest import PYTHON, run_inside
from tests.airflow.example_runs import agrees, intended, run_examples

CASE = "airflow_examples"
MODULES = 67  # of Airflow 3.3.2 and its standard provider 1.21.0
AS_INTENDED = 0.95
EXPECTED = Path(__file__).parents[1] / "tests" / "airflow" / "examples.json"


def run() -> Iterator[dict[str, Any]]:
    if not PYTHON.exists():
        raise SystemExit("There is no environment with Airflow. Type: scripts/setup --airflow")
    began = time.monotonic()
    found = json.loads(run_inside(PYTHON, "load_examples.py"))
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    loaded = [state["loaded"] for state in found.values() if "loaded" in state]
    refused = sum("refused" in state for state in found.values())
    wanted = intended()
    ran = run_examples(PYTHON)
    others = sorted(dag_id for dag_id, outcome in wanted.items() if not agrees(ran.get(dag_id), outcome))
    as_intended = 1 - len(others) / len(wanted)
    yield {
        "modules": len(found),
        "loaded": len(loaded),
        "refused_by_name": refused,
        "dags": sum(map(len, loaded)),
        "tasks": sum(sum(dags.values()) for dags in loaded),
        "other_than_expected": sorted(name for name in found.keys() | expected if found.get(name) != expected.get(name)),
        "ran": len(wanted),
        "as_intended": round(as_intended, 4),
        "other_than_intended": others,
        "total_s": round(time.monotonic() - began, 1),
        "ok": len(loaded) + refused == len(found) == MODULES and found == expected and as_intended >= AS_INTENDED,
    }
