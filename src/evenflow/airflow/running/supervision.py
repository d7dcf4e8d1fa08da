"""The SDK's supervisor around one task: it forks the task, answers it by the contract, and notices its end at once."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow.sdk.api.datamodels._generated import BundleInfo, TaskInstance, TaskInstanceState
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.supervisor import ActivitySubprocess

from evenflow.airflow.comms import client_of
from evenflow.airflow.running.log_lines import AirflowLog
from evenflow.contracts.airflow.handler import ExecutionApi
from evenflow.contracts.airflow.of_try import AirflowTry
from evenflow.worker.limits import CLEAN_UP_GRACE

ON_KILL_GRACE = CLEAN_UP_GRACE - 5.0  # the worker ends everything at CLEAN_UP_GRACE


@dataclass(frozen=True, slots=True)
class Bundle:
    """The place of the DAG's code, in the SDK's form."""

    path: Path
    name: str = "evenflow"
    version: str | None = None


class Supervised(ActivitySubprocess):  # type: ignore[misc]
    """Ends with its task: the SDK's own supervisor waits five seconds once the task has closed all descriptors."""

    def watch(self, told: socket.socket, end: Callable[[], None]) -> None:
        """Once ``told`` is readable, ends the task, with its ``on_kill``, and then calls ``end``."""
        self._ends = False
        self._end = end
        self.selector.register(told, 1, (self._hear, lambda _: None))

    def _hear(self, told: socket.socket) -> bool:
        told.recv(1)
        self._ends = True
        return True

    def _service_subprocess(self, max_wait_time: float, raise_on_timeout: bool = False, expect_signal: int | None = None) -> Any:
        if not self._open_sockets:
            self._wait_for_exit(max_wait_time)
            return self._check_subprocess_exit(raise_on_timeout=raise_on_timeout, expect_signal=expect_signal)
        exit_code = super()._service_subprocess(max_wait_time, raise_on_timeout, expect_signal)
        if getattr(self, "_ends", False):
            self._ends = False
            self.kill(signal.SIGTERM, escalation_delay=ON_KILL_GRACE, force=True)
            self._end()
        return exit_code

    def _wait_for_exit(self, seconds: float) -> None:
        """The task has closed its connections; the kernel reports its end."""
        pidfd = os.pidfd_open(self.pid) if self._exit_code is None else None
        if pidfd is not None:
            try:
                select.select([pidfd], [], [], max(seconds, 0.0))
            finally:
                os.close(pidfd)


def supervise(
    of_try: AirflowTry, dags: Mapping[str, Any], root: Path, file: str, armed: Callable[[Supervised], None]
) -> ExecutionApi:
    """Runs the task to its end. ``armed`` gets its process when an early end must stop something outside."""
    context = of_try.context
    lines = AirflowLog()
    api = ExecutionApi(of_try)
    bundle = Bundle(root)
    task_runner.parse = _Loaded(dags, bundle).parse
    what = TaskInstance(
        id=of_try.id,
        task_id=context.task_id,
        dag_id=context.dag_id,
        run_id=context.run_id,
        try_number=context.try_number,
        dag_version_id=of_try.id,
        map_index=context.map_index,
    )
    process = Supervised.start(
        what=what,
        dag_rel_path=file,
        bundle_info=BundleInfo(name=bundle.name, version=bundle.version),
        client=client_of(api),
        logger=lines.logger(),
    )
    armed(process)
    process.wait()
    api.tasks.explain(lines.reason, lines.error_types, lines.skipped_for)
    return api


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Replaces the SDK's ``parse``, which would load the file again for each try: the template has loaded it."""

    dags: Mapping[str, Any]
    bundle: Bundle

    def parse(self, what: Any, log: Any) -> Any:
        dag = self.dags[what.ti.dag_id]
        task_runner._register_deserialization_allowed_classes(dag, log)
        return task_runner.RuntimeTaskInstance.model_construct(
            **what.ti.model_dump(exclude_unset=True),
            task=dag.task_dict[what.ti.task_id],
            bundle_instance=self.bundle,
            _ti_context_from_server=what.ti_context,
            max_tries=what.ti_context.max_tries,
            start_date=what.start_date,
            state=TaskInstanceState.RUNNING,
            sentry_integration=what.sentry_integration,
        )
