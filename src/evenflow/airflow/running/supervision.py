"""A task of the SDK in the process of its try: what the SDK asks its supervisor is answered here, by the contract, without another
process. A Python that a task begins may ask, too, over a descriptor that the task lends it.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from airflow.sdk.api.datamodels._generated import BundleInfo, TaskInstance, TaskInstanceState
from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import MaskSecret, _RequestFrame
from airflow.sdk.execution_time.supervisor import ActivitySubprocess

from evenflow.airflow.comms import DirectClient, ThreadedAsking
from evenflow.airflow.running.extra_links import Linking
from evenflow.airflow.running.lent import lend, may_borrow
from evenflow.airflow.running.log_lines import AirflowLog
from evenflow.contracts.airflow.handler import ExecutionApi
from evenflow.contracts.airflow.of_try import AirflowTry


@dataclass(frozen=True, slots=True)
class Bundle:
    """The place of the DAG's code, in the SDK's form."""

    path: Path
    name: str = "evenflow"
    version: str | None = None


class InPlace(ActivitySubprocess):  # type: ignore[misc]
    """The SDK's supervisor of a task that runs in the same process: its answers stay here."""

    def send_msg(self, msg: Any, request_id: int, error: Any = None, **dump_opts: Any) -> None:
        self._answer, self._error = msg, error

    def answered(self, msg: Any) -> Any:
        """Answers like the SDK's own connection. Raises the SDK's error for a refused request."""
        requests = self.handle_requests(self.process_log)  # one for each request, because a signal's handler may ask meanwhile
        next(requests)
        self._answer = self._error = None
        requests.send(_RequestFrame(id=0, body=msg))
        answer, error = self._answer, self._error
        if error is not None:
            raise AirflowRuntimeError(error=error)
        return answer

    def kill(self, *how: Any, **more: Any) -> None:
        """Does nothing: the SDK calls it for a task that may not begin, and raises then."""

    def ended(self, code: int) -> None:
        """Reports what the task itself could not report."""
        self._exit_code = code
        self.update_task_state_if_needed()


class _Comms(ThreadedAsking):
    """Replaces the SDK's connection to its supervisor in a task. ``socket`` is for the SDK, which would close it."""

    socket = None

    def __init__(self, supervisor: InPlace) -> None:
        self._supervisor = supervisor
        self._lock = threading.RLock()  # a signal's handler may ask while its thread does

    def __getitem__(self, kinds: Any) -> Callable[..., _Comms]:
        return lambda **_: self

    def _get_response(self) -> Any:
        return self._supervisor._answer

    def send(self, msg: Any) -> Any:
        if isinstance(msg, MaskSecret):
            return None  # the code that gives out secrets masks them, and the SDK's supervisor would ask here again
        with self._lock:
            return self._supervisor.answered(msg)


def supervise(
    of_try: AirflowTry, dags: Mapping[str, Any], root: Path, file: str, armed: Callable[[Any], None] = lambda instance: None
) -> ExecutionApi:
    """Runs the task to its end. ``armed`` gets the SDK's instance of it once the SDK has set its own signal
    handlers.
    """
    context = of_try.context
    lines = AirflowLog(context.logical_date is not None)
    api = ExecutionApi(of_try)
    bundle = Bundle(root)
    what = TaskInstance(
        id=of_try.id,
        task_id=context.task_id,
        dag_id=context.dag_id,
        run_id=context.run_id,
        try_number=context.try_number,
        dag_version_id=of_try.id,
        map_index=context.map_index,
    )
    client = _client()
    client.api = api
    supervisor = InPlace(id=what.id, pid=os.getpid(), stdin=None, process=None, client=client, process_log=lines.supervisors())
    atexit._clear()  # what the template has registered is not the task's
    lines.begin()
    if may_borrow(dags[context.dag_id].task_dict[context.task_id]):
        lend(what.id, client, lines)
    task_runner.parse = _Loaded(dags, bundle).parse
    task_runner._prepare = _Armed(armed)
    task_runner.finalize = Linking(of_try.link_names)
    task_runner.CommsDecoder = _Comms(supervisor)
    supervisor._on_child_started(
        ti=what,
        dag_rel_path=file,
        bundle_info=BundleInfo(name=bundle.name, version=bundle.version),
        sentry_integration="",
    )
    supervisor.ended(_exit_code(task_runner.main))
    atexit._run_exitfuncs()
    lines.end()
    api.tasks.explain(lines.reason, lines.error_types, lines.skipped_for)
    return api


@cache
def _client() -> DirectClient:
    return DirectClient()


def _exit_code(main: Callable[[], None]) -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


_prepare = task_runner._prepare


@dataclass(frozen=True, slots=True)
class _Armed:
    """Replaces the SDK's ``_prepare``, which comes after its signal handlers and before the task's own code."""

    armed: Callable[[Any], None]

    def __call__(self, ti: Any, log: Any, context: Any) -> Any:
        self.armed(ti)
        return _prepare(ti, log, context)


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
