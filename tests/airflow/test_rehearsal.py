"""Issue 18: a template of a worker has done once what each try of an Airflow task would do anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.airflow.conftest import run_inside


@pytest.mark.system
def test_a_template_has_run_a_task_before_there_is_any_and_nothing_of_it_is_left(airflow_python: Path) -> None:
    found = json.loads(run_inside(airflow_python, "rehearsed.py"))  # and so nothing else was printed
    assert found["patterns"] > 0
    assert found["children"] == 0
    assert found["unchanged"]
