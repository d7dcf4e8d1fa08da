"""Callbacks of a whole DAG, called in separate tries; the SDK calls those of tasks where the task runs."""

from __future__ import annotations

import asyncio
from typing import Any

from airflow.sdk._shared.module_loading import accepts_context, import_string
from airflow.sdk.api.datamodels._generated import DagRun
from airflow.sdk.definitions.callback import AsyncCallback
from airflow.sdk.definitions.callback import Callback as DeadlineCallback
from airflow.sdk.execution_time import task_runner

from evenflow.airflow.comms import SdkComms
from evenflow.contracts.airflow.handler import ExecutionApi
from evenflow.contracts.airflow.of_try import AirflowTry
from evenflow.core.callbacks import Callback, CallbackOf
from evenflow.core.ending import Ending
from evenflow.sdk.secrets import outside
from evenflow.sdk.trying.runner import Channel, TryContext, guarded


def functions_of(dag: Any, event: str) -> list[Any]:
    """Returns the author's functions for this event; of deadlines, the one of each in the SDK's form."""
    if event == Callback.DEADLINE:
        return [alert.callback for alert in dag.deadline or ()]
    value = getattr(dag, event, None)
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def call_back(dag: Any, context: TryContext, callback: CallbackOf, channel: Channel) -> Ending:
    functions = functions_of(dag, callback.event)
    if callback.position >= len(functions):
        what = f"{callback.event} of DAG {context.dag_id!r} has {len(functions)} functions here, and one more is to be called"
        return Ending(outcome="cannot_start", reason=f"{what}; a DAG file must define the same wherever it is loaded")
    api = ExecutionApi(AirflowTry(context, channel, {}))
    task_runner.SUPERVISOR_COMMS = SdkComms(api)

    def call() -> Ending:
        function, told = functions[callback.position], _context(dag, context, callback, api)
        if isinstance(function, DeadlineCallback):
            _call_missed(function, told)
        else:
            function(told)
        return Ending(outcome="success")

    with outside.reaching(channel):
        return guarded(call)


def _call_missed(callback: DeadlineCallback, context: dict[str, Any]) -> None:
    """Calls it as Airflow does: with its arguments and a context in which the run is plain data. What a class makes is called, or
    awaited if it is asynchronous.
    """
    run = context["dag_run"]
    context = {**context, "dag_run": {**run.model_dump(mode="json"), "dag_run_id": run.run_id}}
    function = import_string(callback.path)
    made = function(**callback.kwargs, **({"context": context} if accepts_context(function) else {}))
    if isinstance(callback, AsyncCallback):
        asyncio.run(_awaited(made))
    elif callable(made):
        made(context)


async def _awaited(made: Any) -> None:
    await made


def _context(dag: Any, context: TryContext, callback: CallbackOf, api: ExecutionApi) -> dict[str, Any]:
    told = {**api.tasks.dag_run(), "state": callback.state, "end_date": callback.ended_at}
    if callback.started_at is not None:
        told["start_date"] = callback.started_at
    run = DagRun.model_validate(told)
    return {
        "dag": dag,
        "dag_run": run,
        "run_id": run.run_id,
        "logical_date": run.logical_date,
        "data_interval_start": run.data_interval_start,
        "data_interval_end": run.data_interval_end,
        "params": context.params,
        "reason": callback.reason,
    }
