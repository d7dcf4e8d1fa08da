"""What code of Airflow's asks the SDK for where no supervisor stands behind it: triggers, and callbacks of DAGs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from airflow.sdk.execution_time import comms, request_handlers

from evenflow.airflow.contract.handler import ExecutionApi
from evenflow.airflow.contract.transport import client_of
from evenflow.errors import NoContext

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


class SdkComms:
    """In the place of the SDK's way to its supervisor."""

    def __init__(self, api: ExecutionApi) -> None:
        self._client = client_of(api)

    def send(self, msg: Any) -> Any:
        if isinstance(msg, comms.MaskSecret):
            return None  # whoever hands secrets out masks them
        handler = _HANDLERS.get(type(msg))
        if handler is None:
            raise NoContext(f"Evenflow has no {type(msg).__name__} outside of tasks of Airflow.")
        return handler(self._client, msg)[0]

    async def asend(self, msg: Any) -> Any:
        return await asyncio.to_thread(self.send, msg)
