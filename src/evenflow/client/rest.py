"""REST for the command line: one method a route."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from evenflow.client import answers as a
from evenflow.client import explanations as x
from evenflow.client import operation_answers as o
from evenflow.client import service_state_answers as s
from evenflow.client import version_answers as v
from evenflow.client.http import PLAIN, HttpClient, Response
from evenflow.errors import ApiRefused
from evenflow.wire.tls import Tls

T = TypeVar("T")

PREFIX = "/api/v1"


class RestClient:
    """Raises :class:`ApiUnavailable` when the API does not answer, :class:`ApiRefused` with its own words when it refuses."""

    def __init__(self, api_url: str, token: str, *, patience_s: float = 0.0, tls: Tls = PLAIN) -> None:
        self._http = HttpClient(api_url, token, patience_s=patience_s, tls=tls)

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

    async def release_dag(self, dag_id: str, bundle: str) -> a.DagSummary:
        return await self._send("POST", f"/dags/{_in_path(dag_id)}/release", {"bundle": bundle}, a.DagSummary)

    async def list_parse_errors(self, *, limit: int = 100, offset: int = 0) -> a.Page[a.ParseError]:
        return await self._get("/parse-errors", a.Page[a.ParseError], limit=limit, offset=offset)

    async def list_versions(self, dag_id: str, *, limit: int = 100, offset: int = 0) -> a.Page[v.DagVersion]:
        return await self._get(f"/dags/{_in_path(dag_id)}/versions", a.Page[v.DagVersion], limit=limit, offset=offset)

    async def diff_versions(self, dag_id: str, *, before: int = -1, after: int = 0) -> v.VersionDiff:
        return await self._get(f"/dags/{_in_path(dag_id)}/diff", v.VersionDiff, before=before, after=after)

    async def list_bundles(self, *, limit: int = 100, offset: int = 0) -> a.Page[v.BundleSummary]:
        return await self._get("/bundles", a.Page[v.BundleSummary], limit=limit, offset=offset)

    async def list_parse_warnings(self, *, limit: int = 100, offset: int = 0) -> a.Page[v.ParseWarning]:
        return await self._get("/parse-warnings", a.Page[v.ParseWarning], limit=limit, offset=offset)

    # -- runs ----------------------------------------------------------------------------------------------------------

    async def trigger_run(
        self,
        dag_id: str,
        *,
        run_id: str | None = None,
        params: dict[str, Any] | None = None,
        logical_date: datetime | None = None,
        priority: int = 0,
        note: str | None = None,
    ) -> a.Run:
        request = {"run_id": run_id, "params": params or {}, "logical_date": logical_date, "priority": priority, "note": note}
        return await self._send("POST", f"/dags/{_in_path(dag_id)}/runs", request, a.Run)

    async def list_runs(
        self, *, dag_id: str | None = None, state: str | None = None, limit: int = 100, offset: int = 0
    ) -> a.Page[a.Run]:
        return await self._get("/runs", a.Page[a.Run], dag_id=dag_id, state=state, limit=limit, offset=offset)

    async def get_run(self, dag_id: str, run_id: str) -> a.RunDetail:
        return await self._get(_run_path(dag_id, run_id), a.RunDetail)

    async def set_note(self, dag_id: str, run_id: str, note: str | None) -> a.Run:
        return await self._send("PATCH", _run_path(dag_id, run_id), {"note": note}, a.Run)

    async def cancel_run(self, dag_id: str, run_id: str) -> a.Run:
        return await self._send("POST", f"{_run_path(dag_id, run_id)}/cancel", None, a.Run)

    async def cancel_runs(self, dag_id: str, *, state: str | None, dry_run: bool = False) -> a.CancelledRuns:
        """All runs of a DAG that have not ended, or those in a ``state``."""
        which = {"state": state, "dry_run": dry_run}
        return await self._send("POST", f"/dags/{_in_path(dag_id)}/runs/cancel", which, a.CancelledRuns)

    # -- operations ----------------------------------------------------------------------------------------------------

    async def clear(self, dag_id: str, run_id: str, scope: dict[str, Any]) -> o.Operated:
        """``scope`` is the body of the request."""
        return await self._send("POST", f"{_run_path(dag_id, run_id)}/clear", scope, o.Operated)

    async def mark(self, dag_id: str, run_id: str, scope: dict[str, Any]) -> o.Operated:
        """``scope`` is the body of the request, with the ``state``."""
        return await self._send("POST", f"{_run_path(dag_id, run_id)}/mark", scope, o.Operated)

    async def delete_dag(self, dag_id: str, *, dry_run: bool = False) -> a.DeletedDag:
        return await self._send("DELETE", f"/dags/{_in_path(dag_id)}{'?dry_run=true' if dry_run else ''}", None, a.DeletedDag)

    async def delete_run(self, dag_id: str, run_id: str) -> a.Run:
        return await self._send("DELETE", _run_path(dag_id, run_id), None, a.Run)

    async def list_run_events(self, dag_id: str, run_id: str, *, limit: int = 100, offset: int = 0) -> a.Page[o.RunEvent]:
        return await self._get(f"{_run_path(dag_id, run_id)}/events", a.Page[o.RunEvent], limit=limit, offset=offset)

    async def list_task_events(
        self, dag_id: str, run_id: str, task_id: str, *, map_index: int | None = None, limit: int = 100, offset: int = 0
    ) -> a.Page[o.TaskEvent]:
        path = f"{_run_path(dag_id, run_id)}/tasks/{_in_path(task_id)}/events"
        return await self._get(path, a.Page[o.TaskEvent], map_index=map_index, limit=limit, offset=offset)

    # -- tasks ---------------------------------------------------------------------------------------------------------

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

    # -- backfills -----------------------------------------------------------------------------------------------------

    async def create_backfill(self, dag_id: str, request: dict[str, Any]) -> a.BackfillPlan:
        return await self._send("POST", f"/dags/{_in_path(dag_id)}/backfills", request, a.BackfillPlan)

    async def list_backfills(self, *, dag_id: str | None = None, limit: int = 100, offset: int = 0) -> a.Page[a.Backfill]:
        return await self._get("/backfills", a.Page[a.Backfill], dag_id=dag_id, limit=limit, offset=offset)

    async def get_backfill(self, backfill_id: int) -> a.Backfill:
        return await self._get(f"/backfills/{backfill_id}", a.Backfill)

    async def list_backfill_runs(self, backfill_id: int, *, limit: int = 100, offset: int = 0) -> a.Page[a.BackfillDate]:
        return await self._get(f"/backfills/{backfill_id}/runs", a.Page[a.BackfillDate], limit=limit, offset=offset)

    async def pause_backfill(self, backfill_id: int, is_paused: bool) -> a.Backfill:
        return await self._send("PATCH", f"/backfills/{backfill_id}", {"is_paused": is_paused}, a.Backfill)

    async def cancel_backfill(self, backfill_id: int) -> a.Backfill:
        return await self._send("POST", f"/backfills/{backfill_id}/cancel", None, a.Backfill)

    # -- explanations --------------------------------------------------------------------------------------------------

    async def find_run(self, run_id: str, *, dag_id: str | None = None) -> a.Page[x.RunName]:
        """By name or date."""
        return await self._get(f"/runs/{_in_path(run_id)}", a.Page[x.RunName], dag_id=dag_id)

    async def explain(self, dag_id: str, run_id: str, task_id: str, *, map_index: int = -1) -> x.Why:
        path = f"{_run_path(dag_id, run_id)}/tasks/{_in_path(task_id)}/why"
        return await self._get(path, x.Why, map_index=map_index)

    async def get_plan(self, *, limit: int = 20) -> x.Plan:
        return await self._get("/plan", x.Plan, limit=limit)

    # -- changes -------------------------------------------------------------------------------------------------------

    async def list_changes(
        self, name: str | None = None, *, actor: str | None = None, action: str | None = None, limit: int = 50, offset: int = 0
    ) -> a.Page[o.ChangeEvent]:
        wanted = {"object": name, "actor": actor, "action": action, "limit": limit, "offset": offset}
        return await self._get("/events", a.Page[o.ChangeEvent], **wanted)

    # -- assets --------------------------------------------------------------------------------------------------------

    async def list_assets(self, *, limit: int = 100, offset: int = 0) -> a.Page[a.Asset]:
        return await self._get("/assets", a.Page[a.Asset], limit=limit, offset=offset)

    async def list_asset_events(self, asset: str | None = None, *, limit: int = 100, offset: int = 0) -> a.Page[a.AssetEvent]:
        return await self._get("/assets/events", a.Page[a.AssetEvent], asset=asset, limit=limit, offset=offset)

    async def emit_asset_event(self, asset: str, *, extra: dict[str, Any] | None = None) -> a.Emitted:
        return await self._send("POST", "/assets/events", {"asset": asset, "extra": extra or {}}, a.Emitted)

    # -- the system ----------------------------------------------------------------------------------------------------

    async def get_status(self) -> a.Status:
        return await self._get("/status", a.Status)

    async def list_pools(self) -> a.Page[a.Pool]:
        return await self._get("/pools", a.Page[a.Pool])

    async def set_pool(
        self,
        name: str,
        *,
        slots: int,
        description: str | None = None,
        policy: str | None = None,
        while_deferred: str | None = None,
    ) -> a.Pool:
        change = {"slots": slots, "description": description, "policy": policy, "while_deferred": while_deferred}
        return await self._send("PUT", f"/pools/{_in_path(name)}", change, a.Pool)

    async def list_service_states(self, *, paused_dags: bool = True) -> a.Page[a.StandingObject]:
        return await self._get("/service-states", a.Page[a.StandingObject], paused_dags=paused_dags)

    async def get_service_state(self, kind: str, name: str) -> s.ObjectStanding:
        return await self._get(f"/service-states/{kind}/{_in_path(name)}", s.ObjectStanding)

    async def set_service_state(self, kind: str, name: str, state: str, *, within_s: float | None = None) -> s.ObjectStanding:
        change = {"state": state, "within_s": within_s}
        return await self._send("PUT", f"/service-states/{kind}/{_in_path(name)}", change, s.ObjectStanding)

    async def delete_pool(self, name: str) -> a.Pool:
        return await self._send("DELETE", f"/pools/{_in_path(name)}", None, a.Pool)

    async def list_connections(self, *, limit: int = 100, offset: int = 0) -> a.Page[a.StoredConnection]:
        return await self._get("/connections", a.Page[a.StoredConnection], limit=limit, offset=offset)

    async def get_connection(self, name: str, *, reveal: bool = False) -> a.StoredConnection:
        return await self._get(f"/connections/{_in_path(name)}", a.StoredConnection, reveal=reveal)

    async def set_connection(
        self, name: str, *, uri: str | None = None, description: str | None = None, dags: list[str] | None = None
    ) -> a.StoredConnection:
        change = {"uri": uri, "description": description, "dags": dags}
        return await self._send("PUT", f"/connections/{_in_path(name)}", change, a.StoredConnection)

    async def delete_connection(self, name: str) -> a.StoredConnection:
        return await self._send("DELETE", f"/connections/{_in_path(name)}", None, a.StoredConnection)

    async def list_variables(self, *, limit: int = 100, offset: int = 0) -> a.Page[a.StoredVariable]:
        return await self._get("/variables", a.Page[a.StoredVariable], limit=limit, offset=offset)

    async def get_variable(self, name: str, *, reveal: bool = False) -> a.StoredVariable:
        return await self._get(f"/variables/{_in_path(name)}", a.StoredVariable, reveal=reveal)

    async def set_variable(
        self, name: str, *, value: str | None = None, description: str | None = None, dags: list[str] | None = None
    ) -> a.StoredVariable:
        change = {"value": value, "description": description, "dags": dags}
        return await self._send("PUT", f"/variables/{_in_path(name)}", change, a.StoredVariable)

    async def delete_variable(self, name: str) -> a.StoredVariable:
        return await self._send("DELETE", f"/variables/{_in_path(name)}", None, a.StoredVariable)

    async def check_secret(self, kind: str, name: str, text: str, *, description: str | None = None) -> a.CheckedValue:
        """Refused where it cannot be stored; nothing is."""
        value = {"kind": kind, "name": name, "text": text, "description": description}
        return await self._send("POST", "/secrets/check", value, a.CheckedValue)

    async def rotate_secrets(self) -> a.Rotated:
        return await self._send("POST", "/secrets/rotate", None, a.Rotated)

    async def list_xcoms(
        self, dag_id: str, run_id: str, *, task_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> a.Page[a.XComEntry]:
        return await self._get(
            f"{_run_path(dag_id, run_id)}/xcoms", a.Page[a.XComEntry], task_id=task_id, limit=limit, offset=offset
        )

    async def get_xcom(self, dag_id: str, run_id: str, task_id: str, key: str, *, map_index: int = -1) -> a.XComShown:
        path = f"{_run_path(dag_id, run_id)}/tasks/{_in_path(task_id)}/xcoms/{_in_path(key)}"
        return await self._get(path, a.XComShown, map_index=map_index)

    async def get_rendered(self, dag_id: str, run_id: str, task_id: str, *, map_index: int = -1) -> a.RenderedFields:
        path = f"{_run_path(dag_id, run_id)}/tasks/{_in_path(task_id)}/rendered"
        return await self._get(path, a.RenderedFields, map_index=map_index)

    async def list_settings(self) -> a.Page[a.SettingValue]:
        return await self._get("/settings", a.Page[a.SettingValue])

    async def set_setting(self, name: str, value: Any) -> a.SettingValue:
        return await self._send("PUT", f"/settings/{_in_path(name)}", {"value": value}, a.SettingValue)

    async def get_setting(self, name: str) -> a.SettingValue:
        return await self._get(f"/settings/{_in_path(name)}", a.SettingValue)

    async def unset_setting(self, name: str) -> a.SettingValue:
        return await self._send("DELETE", f"/settings/{_in_path(name)}", None, a.SettingValue)

    async def list_setting_history(self, name: str, *, limit: int = 100, offset: int = 0) -> a.Page[a.SettingVersion]:
        return await self._get(f"/settings/{_in_path(name)}/history", a.Page[a.SettingVersion], limit=limit, offset=offset)

    async def list_triggers(
        self, *, dag_id: str | None = None, run_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> a.Page[a.WaitingTrigger]:
        return await self._get("/triggers", a.Page[a.WaitingTrigger], dag_id=dag_id, run_id=run_id, limit=limit, offset=offset)

    async def list_quarantine(self, *, limit: int = 100, offset: int = 0) -> a.Page[a.QuarantineEntry]:
        return await self._get("/quarantine", a.Page[a.QuarantineEntry], limit=limit, offset=offset)

    async def release_quarantined(self, kind: str, name: str) -> a.Released:
        return await self._send("POST", "/quarantine/release", {"kind": kind, "object": name}, a.Released)

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
