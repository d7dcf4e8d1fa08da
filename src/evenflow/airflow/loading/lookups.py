"""Values that a file asks for while it is loaded: those of the environment, and those that Evenflow keeps for all DAGs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from airflow.sdk.exceptions import AirflowSecretsBackendAccessDenied
from airflow.sdk.execution_time import task_runner

from evenflow.airflow.comms import SdkComms
from evenflow.contracts.airflow.handler import ExecutionApi
from evenflow.contracts.airflow.of_try import AirflowTry
from evenflow.core.likeness import did_you_mean
from evenflow.core.object_names import CONNECTION, VARIABLE, SealedKind
from evenflow.errors import ApiRefused, NoContext
from evenflow.forking.asking import AskOwner
from evenflow.forking.frames import FrameHeader
from evenflow.sdk.secrets.masking import mask_values, secrets_in
from evenflow.sdk.trying.runner import TryContext

_VARIABLE = re.compile(r"Variable (\S+) (?:does not exist|not found)")
_CONNECTION = re.compile(r"The conn_id `([^`]+)` isn't defined")


class _LoadingFile:
    """A channel without a try: it gets values alone, each once, and keeps why one was refused."""

    def __init__(self, ask: AskOwner) -> None:
        self._ask = ask
        self._answers: dict[tuple[str, str], FrameHeader] = {}
        self.refused: str | None = None

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if question not in (CONNECTION, VARIABLE):
            raise NoContext("While a file is loaded there is no task: it can get connections and variables, and nothing else.")
        kind, name = question, arguments["name"]
        if (kind, name) not in self._answers:
            self._answers[kind, name] = self._ask({"kind": kind, "name": name})
        answer = self._answers[kind, name]
        if "error" in answer:
            self.refused = answer["error"]
            raise ApiRefused(answer["status"], answer["error"])
        if answer["text"] is not None:
            mask_values(secrets_in(kind, name, answer["text"]))
        return answer

    def similar(self, kind: SealedKind, name: str) -> list[str]:
        similar: list[str] = self._answers.get((kind, name), {}).get("similar", [])
        return similar

    def xcom_pull(self, task_id: str, key: str, map_index: int | None, run_id: str | None = None) -> tuple[bool, Any]:
        raise NoContext("While a file is loaded there is no task, and so no XCom.")

    def xcom_push(self, key: str, value: Any) -> None:
        raise NoContext("While a file is loaded there is no task, and so no XCom.")

    def progress(self, label: str, done: int, total: int, detail: dict[str, Any]) -> None:
        """Does nothing."""


class _LoadingComms(SdkComms):
    def __init__(self, loading: _LoadingFile) -> None:
        self._loading = loading
        no_try = TryContext(dag_id="", run_id="", task_id="", run_after=datetime.now(UTC))
        super().__init__(ExecutionApi(AirflowTry(no_try, loading, {})))

    def send(self, msg: Any) -> Any:
        self._loading.refused = None
        try:
            return super().send(msg)
        finally:
            if self._loading.refused is not None:
                raise AirflowSecretsBackendAccessDenied(self._loading.refused)  # for others the SDK takes the author's default


@contextmanager
def answered(ask: AskOwner | None) -> Iterator[None]:
    """Inside, code that asks the SDK for a connection or variable gets what ``ask`` has; without one, what the environment has. The
    error of an unknown one says what to do.
    """
    loading = None if ask is None else _LoadingFile(ask)
    try:
        if loading is not None:
            task_runner.SUPERVISOR_COMMS = _LoadingComms(loading)
        yield
    except ImportError:
        raise
    except Exception as error:
        _say_what_to_do(error, loading)
        raise
    finally:
        if loading is not None:
            del task_runner.SUPERVISOR_COMMS  # code that runs later is in a task, or asks for nothing


def _say_what_to_do(error: Exception, loading: _LoadingFile | None) -> None:
    for kind, pattern in ((VARIABLE, _VARIABLE), (CONNECTION, _CONNECTION)):
        if (found := pattern.search(str(error))) is not None:
            error.add_note(_cure(kind, found[1], loading))


def _cure(kind: SealedKind, name: str, loading: _LoadingFile | None) -> str:
    what, prefix = f"{kind.capitalize()} {name!r}", "AIRFLOW_VAR_" if kind == VARIABLE else "AIRFLOW_CONN_"
    template = f"var.value.{name}" if kind == VARIABLE else f"conn.{name}"
    if loading is None:
        return (
            f"{what} is not known where the file is loaded, without a running Evenflow. Set {prefix}{name.upper()} here, or ask "
            f"for it in a task or by the template {{{{ {template} }}}}."
        )
    return (
        f"{what} is not defined for all DAGs.{did_you_mean(name, loading.similar(kind, name))} Type: evenflow {kind}s set {name}. "
        f"Or give it a default, or ask for it in a task or by the template {{{{ {template} }}}}."
    )
