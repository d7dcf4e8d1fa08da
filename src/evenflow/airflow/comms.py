"""The contract without HTTP: the requests of the SDK's client go to the handler in the same process. This also serves callers of
the SDK without a supervisor: triggers, and callbacks of DAGs.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from json import dumps
from typing import Any

import httpx
from airflow.sdk.api.client import Client, raise_on_4xx_5xx
from airflow.sdk.execution_time import comms, request_handlers

from evenflow.contracts.airflow.handler import ExecutionApi
from evenflow.errors import NoContext


class DirectClient(Client):  # type: ignore[misc]
    """The SDK's own client, without a server: a request is a call of ``api``, which a process sets before it asks."""

    api: ExecutionApi

    def __init__(self) -> None:
        super().__init__(base_url=None, dry_run=True, token="", trust_env=False)
        self._date = self.headers["airflow-api-version"]
        self._lock = threading.RLock()  # one question at a time; a signal's handler may ask while its thread does

    def request(
        self, method: str, url: str, *, content: str | bytes | None = None, json: Any = None, params: Any = None, **of_http: Any
    ) -> httpx.Response:
        path, _, query = httpx.URL(url, params=params).raw_path.decode("ascii").partition("?")
        body = (dumps(json) if json is not None else content) or b""
        with self._lock:
            answer = self.api.handle(method, path, query, body.encode() if isinstance(body, str) else body, self._date)
        request = httpx.Request(method, self.base_url) if answer.status >= 400 else None  # only an error shows it
        response = httpx.Response(answer.status, headers=answer.heads, content=answer.body, request=request)
        if request is not None:
            raise_on_4xx_5xx(response)
        return response


def client_of(api: ExecutionApi) -> DirectClient:
    client = DirectClient()
    client.api = api
    return client


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


class ThreadedAsking(ABC):
    """A connection to a supervisor that only waits: code of an event loop asks in another thread."""

    @abstractmethod
    def send(self, msg: Any) -> Any: ...

    async def asend(self, msg: Any) -> Any:
        return await asyncio.to_thread(self.send, msg)


class SdkComms(ThreadedAsking):
    """Replaces the SDK's connection to its supervisor where there is none."""

    def __init__(self, api: ExecutionApi) -> None:
        self._client = client_of(api)

    def send(self, msg: Any) -> Any:
        if isinstance(msg, comms.MaskSecret):
            return None  # the code that gives out secrets masks them
        handler = _HANDLERS.get(type(msg))
        if handler is None:
            raise NoContext(f"Evenflow has no {type(msg).__name__} outside of tasks of Airflow.")
        return handler(self._client, msg)[0]
