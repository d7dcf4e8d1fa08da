"""What triggers and their hooks ask the SDK for, answered by the same contract as tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from airflow.sdk.execution_time import comms, request_handlers

from evenflow.airflow.contract.handler import ExecutionApi
from evenflow.airflow.contract.of_try import AirflowTry
from evenflow.airflow.contract.transport import client_of
from evenflow.errors import NoContext
from evenflow.sdk.triggers import TriggerChannel
from evenflow.sdk.trying.runner import TryContext

_HANDLERS: dict[type, Callable[..., tuple[Any, Any]]] = {
    comms.GetConnection: request_handlers.handle_get_connection,
    comms.GetVariable: request_handlers.handle_get_variable,
    comms.PutVariable: request_handlers.handle_put_variable,
    comms.DeleteVariable: request_handlers.handle_delete_variable,
    comms.GetTICount: request_handlers.handle_get_ti_count,
    comms.GetTaskStates: request_handlers.handle_get_task_states,
    comms.GetDRCount: request_handlers.handle_get_dr_count,
    comms.GetDagRunState: request_handlers.handle_get_dag_run_state,
}
_ANSWERED_WITHIN = 60.0  # a question of a trigger, which waits in a thread for it


class TriggerComms:
    """In the place of the SDK's way to its supervisor. Who asks is known by the context that it asks in."""

    def __init__(self, loop: asyncio.AbstractEventLoop, channel: TriggerChannel) -> None:
        nobody = TryContext(dag_id="", run_id="", task_id="", run_after=datetime.now(UTC))
        self._client = client_of(ExecutionApi(AirflowTry(nobody, _FromThreads(loop, channel), {})))

    def send(self, msg: Any) -> Any:
        if isinstance(msg, comms.MaskSecret):
            return None  # the triggerer masks what it hands out
        handler = _HANDLERS.get(type(msg))
        if handler is None:
            raise NoContext(f"Evenflow has no {type(msg).__name__} for triggers of Airflow.")
        return handler(self._client, msg)[0]

    async def asend(self, msg: Any) -> Any:
        return await asyncio.to_thread(self.send, msg)


class _FromThreads:
    """A channel that blocks the thread that asks, for the answer comes by the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, channel: TriggerChannel) -> None:
        self._loop, self._channel = loop, channel

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if asyncio._get_running_loop() is self._loop:
            raise NoContext(
                "A trigger asks for a connection or a state in the middle of its event loop, which would wait for itself. Use "
                "sync_to_async, or the asynchronous method of the hook."
            )
        return asyncio.run_coroutine_threadsafe(self._channel.ask(question, arguments), self._loop).result(_ANSWERED_WITHIN)

    def xcom_pull(self, task_id: str, key: str, map_index: int | None, run_id: str | None = None) -> tuple[bool, Any]:
        raise NoContext("A trigger has no XComs.")

    def xcom_push(self, key: str, value: Any) -> None:
        raise NoContext("A trigger has no XComs.")

    def progress(self, label: str, done: int, total: int, detail: dict[str, Any]) -> None:
        """Nobody is told."""
