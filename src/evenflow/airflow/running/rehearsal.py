"""A whole try of a task that does nothing, before there is any: the SDK and its libraries then have their patterns, types and
tables in memory that all tries share, where each would make them anew.
"""

from __future__ import annotations

import contextlib
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG

from evenflow.airflow.running.supervision import supervise
from evenflow.contracts.airflow.of_try import AirflowTry
from evenflow.sdk.trying.runner import TryContext

_DAG, _TASK = "rehearsal", "nothing"


class _Rehearsed:
    """A channel to nowhere."""

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {}

    def xcom_pull(self, task_id: str, key: str, map_index: int | None, run_id: str | None = None) -> tuple[bool, Any]:
        return False, None

    def xcom_push(self, key: str, value: Any) -> None:
        """Does nothing."""

    def progress(self, label: str, done: int, total: int, detail: dict[str, Any]) -> None:
        """Does nothing."""


def rehearse() -> None:
    dag = DAG(_DAG, schedule=None)
    PythonOperator(task_id=_TASK, python_callable=lambda: None, dag=dag)
    context = TryContext(dag_id=_DAG, run_id=_DAG, task_id=_TASK, run_after=datetime.now(UTC))
    with contextlib.redirect_stdout(io.StringIO()) as log:
        api = supervise(AirflowTry(context, _Rehearsed(), {_TASK: 0}), {_DAG: dag}, Path(), "", lambda _: None)
    if api.tasks.ending is None or api.tasks.ending.outcome != "success":
        raise RuntimeError(f"A task of Airflow that does nothing has failed here:\n{log.getvalue()}")
