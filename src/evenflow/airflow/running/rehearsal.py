"""A whole try of a task that does nothing, before there is any: the SDK and its libraries then have their patterns, types and
tables in memory that all tries share, where each would make them anew.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG
from airflow.sdk._shared.listeners.listener import ListenerManager
from airflow.sdk._shared.listeners.spec import lifecycle, taskinstance
from airflow.sdk.execution_time import task_runner
from setproctitle import getproctitle, setproctitle

from evenflow.airflow.running.supervision import supervise
from evenflow.contracts.airflow.of_try import AirflowTry
from evenflow.sdk.trying.runner import TryContext

_DAG, _TASK = "rehearsal", "nothing"
_MOST_LOG = 65536  # bytes that an error shows


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
    """Runs it in this process, and undoes what it has changed here."""
    dag = DAG(_DAG, schedule=None)
    PythonOperator(task_id=_TASK, python_callable=lambda: None, dag=dag)
    context = TryContext(dag_id=_DAG, run_id=_DAG, task_id=_TASK, run_after=datetime.now(UTC))
    with _undone(), _unheard(), _stdout_kept() as log:
        of_try = AirflowTry(context, _Rehearsed(), {_TASK: 0})
        api = copy_context().run(supervise, of_try, {_DAG: dag}, Path(), "")
        if api.tasks.ending is None or api.tasks.ending.outcome != "success":
            raise RuntimeError(f"A task of Airflow that does nothing has failed here:\n{log()}")


@contextmanager
def _undone() -> Iterator[None]:
    handler, environ, title = signal.getsignal(signal.SIGTERM), dict(os.environ), getproctitle()
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
        for name in os.environ.keys() - environ.keys():
            del os.environ[name]
        os.environ.update(environ)
        setproctitle(title)
        del task_runner.SUPERVISOR_COMMS  # code that is loaded later is not in a task


@contextmanager
def _unheard() -> Iterator[None]:
    """Listeners of plugins are told nothing inside: there is no such task."""
    real, deaf = task_runner.get_listener_manager, ListenerManager()
    deaf.add_hookspecs(lifecycle)
    deaf.add_hookspecs(taskinstance)
    task_runner.get_listener_manager = lambda: deaf
    try:
        yield
    finally:
        task_runner.get_listener_manager = real


@contextmanager
def _stdout_kept() -> Iterator[Callable[[], str]]:
    """Keeps what is written to the descriptor of stdout inside; what it yields returns that."""
    kept, before = os.memfd_create("rehearsal"), os.dup(1)
    os.dup2(kept, 1)
    try:
        yield lambda: os.pread(kept, _MOST_LOG, 0).decode(errors="replace")
    finally:
        os.dup2(before, 1)
        os.close(before)
        os.close(kept)
