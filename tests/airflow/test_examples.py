"""R-AF1: Airflow's own example modules load as they are, or what is missing is named: ``examples.json`` says which, of each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.airflow.conftest import run_inside

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("airflow")]

EXPECTED = json.loads((Path(__file__).parent / "examples.json").read_text(encoding="utf-8"))


def test_every_example_module_loads_or_is_refused_by_name(airflow_python: Path) -> None:
    found = json.loads(run_inside(airflow_python, "load_examples.py"))
    assert {name for name, state in found.items() if "failed" in state} == set()
    assert found == EXPECTED
