"""The contract without HTTP: the requests of the SDK's client go to the handler in the same process. This also serves callers of
the SDK without a supervisor: triggers, and callbacks of DAGs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
from airflow.sdk.api.client import Client
from airflow.sdk.execution_time import comms, request_handlers

from evenflow.contracts.airflow.handler import ExecutionApi
from evenflow.errors import NoContext


class _Transport(httpx.BaseTransport):  # type: ignore[misc]
    def __init__(self, api: ExecutionApi) -> None:
        self._api = api

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._api.handle(
            request.method,
            request.url.raw_path.decode("ascii").partition("?")[0],
            request.url.query.decode("ascii"),
            request.read(),
            request.headers.get("airflow-api-version", ""),
        )
        return httpx.Response(answer.status, headers=answer.heads, content=answer.body, request=request)


def client_of(api: ExecutionApi) -> Client:
    """Returns the SDK's own client, without a server."""
    return Client(base_url=None, dry_run=True, token="", transport=_Transport(api), trust_env=False)


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
    """Replaces the SDK's connection to its supervisor."""

    def __init__(self, api: ExecutionApi) -> None:
        self._client = client_of(api)

    def send(self, msg: Any) -> Any:
        if isinstance(msg, comms.MaskSecret):
            return None  # the code that gives out secrets masks them
        handler = _HANDLERS.get(type(msg))
        if handler is None:
            raise NoContext(f"Evenflow has no {type(msg).__name__} outside of tasks of Airflow.")
        return handler(self._client, msg)[0]

    async def asend(self, msg: Any) -> Any:
        return await asyncio.to_thread(self.send, msg)
