"""The two kinds of DAG files that the same work is written as: Evenflow's own, and Airflow's, run by the environment that
``scripts/setup --airflow`` makes.
"""

from __future__ import annotations

import json

PACKAGES = {"evenflow": "evenflow", "airflow": "airflow.sdk"}  # where a file imports dag, task and DAG from
NO_LIMIT = {"evenflow": None, "airflow": 0}  # of tasks or runs at once
ENVIRONMENT = "airflow"


def environ_of(sdk: str) -> dict[str, str]:
    """What services get into their environment, so that they read such files."""
    if sdk == "evenflow":
        return {}
    from tests.airflow.conftest import PYTHON

    if not PYTHON.exists():
        raise SystemExit("There is no environment with Airflow. Type: scripts/setup --airflow")
    return {"EVENFLOW_ENVIRONMENTS": json.dumps({ENVIRONMENT: str(PYTHON)}), "EVENFLOW_DAGS_ENVIRONMENT": ENVIRONMENT}
