"""REST for the command line: one method a route."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from evenflow.client import answers as a
from evenflow.client import explanations as x
from evenflow.client.http import HttpClient, Response
from evenflow.errors import ApiRefused

T = TypeVar("T")

PREFIX = "/api/v1"


class RestClient:
    """Raises :class:`ApiUnavailable` when the API does not answer, :class:`ApiRefused` with its own words when it refuses."""

    def __init__(self, api_url: str, token: str, *, patience_s: float = 0.0) -> None:
        self._http = HttpClient(api_url, token, patience_s=patience_s)

    async def close(self) -> None:
        await self._http.close()

    async def __aenter__(self) -> RestClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- DAGs ----------------------------------------------------------------------------------------------------------

    async def list_dags(self, *, retired: bool = False, limit: int = 100, offset: int = 0) -> a.Page[a.DagSummary]:
        return await self._get("/dags", a.Page[a.DagSummary], retired=retired, limit=limit, offset=offset)

    async def get_dag(self, dag_id: str) -> a.DagDetail:
        return await self._get(f"/dags/{_in_path(dag_id)}", a.DagDetail)

    async def set_paused(self, dag_id: str, is_paused: bool) -> a.DagSummary:
        return await self._send("PATCH", f"/dags/{_in_path(dag_id)}", {"is_paused": is_paused}, a.DagSummary)

    async def list_parse_errors(self, *, limit: int = 100, offset: int = 0) -> a.Page[a.ParseError]:
        return await self._get("/parse-errors", a.Page[a.ParseError], limit=limit, offset=offset)

    # -- runs ----------------------------------------------------------------------------------------------------------

    async def trigger_run(
        self,
        dag_id: str,
        *,
        run_id: str | None = None,
        params: dict[str, Any] | None = None,
        logical_date: datetime | None = None,
        priority: int = 0,
    ) -> a.Run:
        request = {"run_id": run_id, "params": params or {}, "logical_date": logical_date, "priority": priority}
        return await self._send("POST", f"/dags/{_in_path(dag_id)}/runs", request, a.Run)

    async def list_runs(
        self, *, dag_id: str | None = None, state: str | None = None, limit: int = 100, offset: int = 0
    ) -> a.Page[a.Run]:
        return await self._get("/runs", a.Page[a.Run], dag_id=dag_id, state=state, limit=limit, offset=offset)

    async def get_run(self, dag_id: str, run_id: str) -> a.RunDetail:
        return await self._get(_run_path(dag_id, run_id), a.RunDetail)

    async def cancel_run(self, dag_id: str, run_id: str) -> a.Run:
        return await self._send("POST", f"{_run_path(dag_id, run_id)}/cancel", None, a.Run)

    async def list_tasks(
        self,
        dag_id: str,
        run_id: str,
        *,
        task_id: str | None = None,
        state: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> a.Page[a.TaskInstance]:
        path = f"{_run_path(dag_id, run_id)}/tasks"
        return await self._get(path, a.Page[a.TaskInstance], task_id=task_id, state=state, limit=limit, offset=offset)

    async def read_log(
        self,
        dag_id: str,
        run_id: str,
        task_id: str,
        *,
        map_index: int = -1,
        try_number: int | None = None,
        offset: int = 0,
        wait_s: float = 0.0,
    ) -> a.LogText:
        """What a try's log has after ``offset`` bytes; waits up to ``wait_s`` for something new."""
        query = _query(map_index=map_index, try_number=try_number, offset=offset, wait_s=wait_s)
        path = f"{PREFIX}{_run_path(dag_id, run_id)}/tasks/{_in_path(task_id)}/logs"
        response = _checked(await self._http.request("GET", path, params=query, waits_s=wait_s))
        return a.LogText(
            text=response.body.decode(errors="replace"),
            offset=int(response.headers["X-Log-Offset"]),
            complete=response.headers["X-Log-Complete"] == "true",
        )

    # -- explanations --------------------------------------------------------------------------------------------------

    async def find_run(self, run_id: str) -> a.Page[x.RunName]:
        return await self._get(f"/runs/{_in_path(run_id)}", a.Page[x.RunName])

    async def explain(self, dag_id: str, run_id: str, task_id: str, *, map_index: int = -1) -> x.Why:
        path = f"{_run_path(dag_id, run_id)}/tasks/{_in_path(task_id)}/why"
        return await self._get(path, x.Why, map_index=map_index)

    async def get_plan(self, *, limit: int = 20) -> x.Plan:
        return await self._get("/plan", x.Plan, limit=limit)

    # -- the system ----------------------------------------------------------------------------------------------------

    async def get_status(self) -> a.Status:
        return await self._get("/status", a.Status)

    async def list_pools(self) -> a.Page[a.Pool]:
        return await self._get("/pools", a.Page[a.Pool])

    async def set_pool(self, name: str, *, slots: int, description: str | None = None, policy: str | None = None) -> a.Pool:
        change = {"slots": slots, "description": description, "policy": policy}
        return await self._send("PUT", f"/pools/{_in_path(name)}", change, a.Pool)

    async def delete_pool(self, name: str) -> a.Pool:
        return await self._send("DELETE", f"/pools/{_in_path(name)}", None, a.Pool)

    async def list_settings(self) -> a.Page[a.SettingValue]:
        return await self._get("/settings", a.Page[a.SettingValue])

    async def set_setting(self, name: str, value: Any) -> a.SettingValue:
        return await self._send("PUT", f"/settings/{_in_path(name)}", {"value": value}, a.SettingValue)

    async def get_audit(self) -> a.Audit:
        return await self._get("/audit", a.Audit)

    async def is_ready(self) -> bool:
        """Whether the API serves and its database answers. Raises :class:`ApiUnavailable` when nothing listens there."""
        return (await self._http.request("GET", "/health/ready")).status == 200

    async def _get(self, path: str, answer: type[T], **query: object) -> T:
        response = await self._http.request("GET", f"{PREFIX}{path}", params=_query(**query))
        return _decoded(response, answer)

    async def _send(self, method: str, path: str, body: dict[str, Any] | None, answer: type[T]) -> T:
        response = await self._http.request(
            method,
            f"{PREFIX}{path}",
            body=None if body is None else msgspec.json.encode(body),
            content_type="application/json",
            idempotent=method != "POST",
        )
        return _decoded(response, answer)


def _decoded(response: Response, answer: type[T]) -> T:
    try:
        return msgspec.json.decode(_checked(response).body, type=answer)
    except msgspec.MsgspecError as error:
        raise ApiRefused(
            response.status, f"The answer of the API cannot be read: {error}. Upgrade the older of the two sides."
        ) from None


def _checked(response: Response) -> Response:
    if response.status < 400:
        return response
    try:
        message = str(msgspec.json.decode(response.body)["error"]["message"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        message = f"The server answered with status {response.status}, not as an Evenflow API does. Check EVENFLOW_API_URL."
    raise ApiRefused(response.status, message)


def _query(**values: object) -> dict[str, str]:
    return {name: _text(value) for name, value in values.items() if value is not None}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _in_path(name: str) -> str:
    return quote(name, safe="")


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/dags/{_in_path(dag_id)}/runs/{_in_path(run_id)}"
