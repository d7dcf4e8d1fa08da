"""Airflow's own example modules, unmodified: how many load, and how many are refused by the name of what is missing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.airflow.conftest import PYTHON, run_inside

CASE = "airflow_examples"
MODULES = 67  # of Airflow 3.3.2 and its standard provider 1.21.0
EXPECTED = Path(__file__).parents[1] / "tests" / "airflow" / "examples.json"


def run() -> Iterator[dict[str, Any]]:
    if not PYTHON.exists():
        raise SystemExit("There is no environment with Airflow. Type: scripts/setup --airflow")
    began = time.monotonic()
    found = json.loads(run_inside(PYTHON, "load_examples.py"))
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    loaded = [state["loaded"] for state in found.values() if "loaded" in state]
    refused = sum("refused" in state for state in found.values())
    yield {
        "modules": len(found),
        "loaded": len(loaded),
        "refused_by_name": refused,
        "dags": sum(map(len, loaded)),
        "tasks": sum(sum(dags.values()) for dags in loaded),
        "other_than_expected": sorted(name for name in found.keys() | expected if found.get(name) != expected.get(name)),
        "total_s": round(time.monotonic() - began, 1),
        "ok": len(loaded) + refused == len(found) == MODULES and found == expected,
    }
