"""R-AF1: an error of Airflow's that says what is missing comes with what to write or type."""

from __future__ import annotations

import pytest

from evenflow.airflow.running.cures import cure_of


@pytest.mark.parametrize(
    ("error", "has_date", "cure"),
    [
        ("'prev_ds'", True, "prev_ds is of Airflow 2, and of no task here. Write prev_data_interval_start_success."),
        ("'prev_execution_date' is undefined", True, "prev_execution_date is of Airflow 2, and of no task here."),
        ("'ds'", False, "This run has no logical date, so it has no dates at all. Type: evenflow runs trigger"),
        ("'ds'", True, ""),
        ("The conn_id `w` isn't defined", True, "Type: evenflow connections set w."),
        ("'prev_ds_of_mine'", True, ""),
    ],
)
def test_what_is_missing_is_told_with_its_cure(error: str, has_date: bool, cure: str) -> None:
    assert cure_of(error, has_date).startswith(cure)
    assert bool(cure_of(error, has_date)) == bool(cure)
