"""Issue 18: shapes that are written as DAG files of Airflow are the same work as Evenflow's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.conftest import ROOT, run_inside

sys.path.insert(0, str(ROOT / "bench"))

import parsing
import specs
from resumes import Plan
from shapes import SHAPES

TIMES = Path("/nowhere/times")


@pytest.fixture(scope="module")
def loaded(airflow_python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By DAG, of the files of all benchmarks that have ``--sdk airflow``."""
    folder = tmp_path_factory.mktemp("dags")
    body = specs.writes_times(str(TIMES), sdk="airflow")
    for name in ("b_i", "b_ii"):
        (folder / f"{name}.py").write_text(specs.dag_file(SHAPES[name], body, sdk="airflow"))
    (folder / "d_busy.py").write_text(Plan.of(SHAPES["d_busy"], sdk="airflow").file(TIMES))
    parsing.write_file(folder, 1, parsing.TASKS, sdk="airflow")
    found = json.loads(run_inside(airflow_python, "load_files.py", str(folder)))
    assert {name: file["error"] for name, file in found.items() if file["error"]} == {}
    return {dag_id: spec for file in found.values() for dag_id, spec in file["dags"].items()}


@pytest.mark.system
def test_the_same_graphs_and_limits(loaded: dict[str, Any]) -> None:
    for planned in (plan for name in ("b_i", "b_ii") for plan in specs.plan(SHAPES[name])):
        spec = loaded[planned.spec.dag_id]
        assert [tuple(task.get("upstream", ())) for task in spec["tasks"]] == [task.upstream for task in planned.spec.tasks]
        assert (spec.get("max_active_runs"), spec.get("max_active_tasks")) == (None, None)
    assert (len(loaded["low"]["tasks"]), len(loaded["dag_00001"]["tasks"])) == (10, parsing.TASKS)
    assert loaded["low"]["tasks"][0]["cleans_up"], "it is the deferrable operator of a provider"


@pytest.mark.parametrize("shape", [["a_i"], ["d_full"], ["b_i", "--reuse"], ["b_ii", "--execution-free"]])
def test_a_shape_that_has_none_is_refused(shape: list[str]) -> None:
    command = [sys.executable, ROOT / "bench" / "run.py", *shape, "--sdk", "airflow"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "--sdk is for b_i, b_ii, d_idle, d_busy, parsing" in done.stderr
