"""REST for the command line: one method a route."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from pydantic import TypeAdapter, ValidationError

from evenflow.client.http import PLAIN, HttpClient, Response
from evenflow.contracts import rest
from evenflow.errors import ApiRefused
from evenflow.wire.tls import Tls

T = TypeVar("T")

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True)
class LogText:
    """A part of a log. ``offset`` is where the next part begins; ``complete`` says that there will be none."""

    text: str
    offset: int
    complete: bool


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

    async def list_dags(
        self, *, retired: bool = False, limit: int = 100, offset: int = 0
    ) -> rest.record.Page[rest.dags.DagSummary]:
        return await self._get("/dags", rest.record.Page[rest.dags.DagSummary], retired=retired, limit=limit, offset=offset)

    async def get_dag(self, dag_id: str) -> rest.dags.DagDetail:
        return await self._get(f"/dags/{_in_path(dag_id)}", rest.dags.DagDetail)

    async def set_paused(self, dag_id: str, is_paused: bool) -> rest.dags.DagSummary:
        return await self._send("PATCH", f"/dags/{_in_path(dag_id)}", {"is_paused": is_paused}, rest.dags.DagSummary)

    async def release_dag(self, dag_id: str, bundle: str) -> rest.dags.DagSummary:
        return await self._send("POST", f"/dags/{_in_path(dag_id)}/release", {"bundle": bundle}, rest.dags.DagSummary)

    async def list_parse_errors(self, *, limit: int = 100, offset: int = 0) -> rest.record.Page[rest.dags.ParseError]:
        return await self._get("/parse-errors", rest.record.Page[rest.dags.ParseError], limit=limit, offset=offset)

    async def list_versions(self, dag_id: str, *, limit: int = 100, offset: int = 0) -> rest.record.Page[rest.dags.DagVersion]:
        return await self._get(
            f"/dags/{_in_path(dag_id)}/versions", rest.record.Page[rest.dags.DagVersion], limit=limit, offset=offset
        )

    async def diff_versions(self, dag_id: str, *, before: int = -1, after: int = 0) -> rest.dags.VersionDiff:
        return await self._get(f"/dags/{_in_path(dag_id)}/diff", rest.dags.VersionDiff, before=before, after=after)

    async def list_bundles(self, *, limit: int = 100, offset: int = 0) -> rest.record.Page[rest.dags.BundleSummary]:
        return await self._get("/bundles", rest.record.Page[rest.dags.BundleSummary], limit=limit, offset=offset)

    async def list_parse_warnings(self, *, limit: int = 100, offset: int = 0) -> rest.record.Page[rest.dags.ParseWarning]:
        return await self._get("/parse-warnings", rest.record.Page[rest.dags.ParseWarning], limit=limit, offset=offset)

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
    ) -> rest.runs.RunSummary:
        request = {"run_id": run_id, "params": params or {}, "logical_date": logical_date, "priority": priority, "note": note}
        return await self._send("POST", f"/dags/{_in_path(dag_id)}/runs", request, rest.runs.RunSummary)

    async def list_runs(
        self, *, dag_id: str | None = None, state: str | None = None, limit: int = 100, offset: int = 0
    ) -> rest.record.Page[rest.runs.RunSummary]:
        return await self._get(
            "/runs", rest.record.Page[rest.runs.RunSummary], dag_id=dag_id, state=state, limit=limit, offset=offset
        )

    async def get_run(self, dag_id: str, run_id: str) -> rest.runs.RunDetail:
        return await self._get(_run_path(dag_id, run_id), rest.runs.RunDetail)

    async def set_note(self, dag_id: str, run_id: str, note: str | None) -> rest.runs.RunSummary:
        return await self._send("PATCH", _run_path(dag_id, run_id), {"note": note}, rest.runs.RunSummary)

    async def cancel_run(self, dag_id: str, run_id: str) -> rest.runs.RunSummary:
        return await self._send("POST", f"{_run_path(dag_id, run_id)}/cancel", None, rest.runs.RunSummary)

    async def cancel_runs(self, dag_id: str, *, state: str | None, dry_run: bool = False) -> rest.runs.CancelledRuns:
        """All runs of a DAG that have not ended, or those in a ``state``."""
        which = {"state": state, "dry_run": dry_run}
        return await self._send("POST", f"/dags/{_in_path(dag_id)}/runs/cancel", which, rest.runs.CancelledRuns)

    # -- operations ----------------------------------------------------------------------------------------------------

    async def clear(self, dag_id: str, run_id: str, scope: dict[str, Any]) -> rest.runs.Operated:
        """``scope`` is the body of the request."""
        return await self._send("POST", f"{_run_path(dag_id, run_id)}/clear", scope, rest.runs.Operated)

    async def mark(self, dag_id: str, run_id: str, scope: dict[str, Any]) -> rest.runs.Operated:
        """``scope`` is the body of the request, with the ``state``."""
        return await self._send("POST", f"{_run_path(dag_id, run_id)}/mark", scope, rest.runs.Operated)

    async def delete_dag(self, dag_id: str, *, dry_run: bool = False) -> rest.dags.DeletedDag:
        return await self._send(
            "DELETE", f"/dags/{_in_path(dag_id)}{'?dry_run=true' if dry_run else ''}", None, rest.dags.DeletedDag
        )

    async def delete_run(self, dag_id: str, run_id: str) -> rest.runs.RunSummary:
        return await self._send("DELETE", _run_path(dag_id, run_id), None, rest.runs.RunSummary)

    async def list_run_events(
        self, dag_id: str, run_id: str, *, limit: int = 100, offset: int = 0
    ) -> rest.record.Page[rest.runs.RunHistoryEntry]:
        return await self._get(
            f"{_run_path(dag_id, run_id)}/events", rest.record.Page[rest.runs.RunHistoryEntry], limit=limit, offset=offset
        )

    async def list_task_events(
        self, dag_id: str, run_id: str, task_id: str, *, map_index: int | None = None, limit: int = 100, offset: int = 0
    ) -> rest.record.Page[rest.tasks.TaskHistoryEntry]:
        path = f"{_run_path(dag_id, run_id)}/tasks/{_in_path(task_id)}/events"
        return await self._get(path, rest.record.Page[rest.tasks.TaskHistoryEntry], map_index=map_index, limit=limit, offset=offset)

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
    ) -> rest.record.Page[rest.tasks.InstanceSummary]:
        path = f"{_run_path(dag_id, run_id)}/tasks"
        return await self._get(
            path, rest.record.Page[rest.tasks.InstanceSummary], task_id=task_id, state=state, limit=limit, offset=offset
        )

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
    ) -> LogText:
        """What a try's log has after ``offset`` bytes; waits up to ``wait_s`` for something new."""
        query = _query(map_index=map_index, try_number=try_number, offset=offset, wait_s=wait_s)
        path = f"{PREFIX}{_run_path(dag_id, run_id)}/tasks/{_in_path(task_id)}/logs"
        response = _checked(await self._http.request("GET", path, params=query, waits_s=wait_s))
        return LogText(
            text=response.body.decode(errors="replace"),
            offset=int(response.headers["X-Log-Offset"]),
            complete=response.headers["X-Log-Complete"] == "true",
        )

    # -- backfills -----------------------------------------------------------------------------------------------------

    async def create_backfill(self, dag_id: str, request: dict[str, Any]) -> rest.backfills.BackfillPlan:
        return await self._send("POST", f"/dags/{_in_path(dag_id)}/backfills", request, rest.backfills.BackfillPlan)

    async def list_backfills(
        self, *, dag_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> rest.record.Page[rest.backfills.Backfill]:
        return await self._get("/backfills", rest.record.Page[rest.backfills.Backfill], dag_id=dag_id, limit=limit, offset=offset)

    async def get_backfill(self, backfill_id: int) -> rest.backfills.Backfill:
        return await self._get(f"/backfills/{backfill_id}", rest.backfills.Backfill)

    async def list_backfill_runs(
        self, backfill_id: int, *, limit: int = 100, offset: int = 0
    ) -> rest.record.Page[rest.backfills.BackfillDate]:
        return await self._get(
            f"/backfills/{backfill_id}/runs", rest.record.Page[rest.backfills.BackfillDate], limit=limit, offset=offset
        )

    async def pause_backfill(self, backfill_id: int, is_paused: bool) -> rest.backfills.Backfill:
        return await self._send("PATCH", f"/backfills/{backfill_id}", {"is_paused": is_paused}, rest.backfills.Backfill)

    async def cancel_backfill(self, backfill_id: int) -> rest.backfills.Backfill:
        return await self._send("POST", f"/backfills/{backfill_id}/cancel", None, rest.backfills.Backfill)

    # -- explanations --------------------------------------------------------------------------------------------------

    async def find_run(self, run_id: str, *, dag_id: str | None = None) -> rest.record.Page[rest.runs.RunName]:
        """By name or date."""
        return await self._get(f"/runs/{_in_path(run_id)}", rest.record.Page[rest.runs.RunName], dag_id=dag_id)

    async def explain(self, dag_id: str, run_id: str, task_id: str, *, map_index: int = -1) -> rest.why.Why:
        path = f"{_run_path(dag_id, run_id)}/tasks/{_in_path(task_id)}/why"
        return await self._get(path, rest.why.Why, map_index=map_index)

    async def get_plan(self, *, limit: int = 20) -> rest.plan.Plan:
        return await self._get("/plan", rest.plan.Plan, limit=limit)

    # -- changes -------------------------------------------------------------------------------------------------------

    async def list_changes(
        self, name: str | None = None, *, actor: str | None = None, action: str | None = None, limit: int = 50, offset: int = 0
    ) -> rest.record.Page[rest.system.ChangeEvent]:
        wanted = {"object": name, "actor": actor, "action": action, "limit": limit, "offset": offset}
        return await self._get("/events", rest.record.Page[rest.system.ChangeEvent], **wanted)

    # -- assets --------------------------------------------------------------------------------------------------------

    async def list_assets(self, *, limit: int = 100, offset: int = 0) -> rest.record.Page[rest.assets.AssetSummary]:
        return await self._get("/assets", rest.record.Page[rest.assets.AssetSummary], limit=limit, offset=offset)

    async def list_asset_events(
        self, asset: str | None = None, *, limit: int = 100, offset: int = 0
    ) -> rest.record.Page[rest.assets.RecordedAssetEvent]:
        return await self._get(
            "/assets/events", rest.record.Page[rest.assets.RecordedAssetEvent], asset=asset, limit=limit, offset=offset
        )

    async def emit_asset_event(self, asset: str, *, extra: dict[str, Any] | None = None) -> rest.assets.Emitted:
        return await self._send("POST", "/assets/events", {"asset": asset, "extra": extra or {}}, rest.assets.Emitted)

    # -- the system ----------------------------------------------------------------------------------------------------

    async def get_status(self) -> rest.system.Status:
        return await self._get("/status", rest.system.Status)

    async def list_pools(self) -> rest.record.Page[rest.steering.Pool]:
        return await self._get("/pools", rest.record.Page[rest.steering.Pool])

    async def set_pool(
        self,
        name: str,
        *,
        slots: int,
        description: str | None = None,
        policy: str | None = None,
        while_deferred: str | None = None,
    ) -> rest.steering.Pool:
        change = {"slots": slots, "description": description, "policy": policy, "while_deferred": while_deferred}
        return await self._send("PUT", f"/pools/{_in_path(name)}", change, rest.steering.Pool)

    async def list_service_states(self, *, paused_dags: bool = True) -> rest.record.Page[rest.steering.StandingObject]:
        return await self._get("/service-states", rest.record.Page[rest.steering.StandingObject], paused_dags=paused_dags)

    async def get_service_state(self, kind: str, name: str) -> rest.steering.ObjectStanding:
        return await self._get(f"/service-states/{kind}/{_in_path(name)}", rest.steering.ObjectStanding)

    async def set_service_state(
        self, kind: str, name: str, state: str, *, within_s: float | None = None
    ) -> rest.steering.ObjectStanding:
        change = {"state": state, "within_s": within_s}
        return await self._send("PUT", f"/service-states/{kind}/{_in_path(name)}", change, rest.steering.ObjectStanding)

    async def delete_pool(self, name: str) -> rest.steering.Pool:
        return await self._send("DELETE", f"/pools/{_in_path(name)}", None, rest.steering.Pool)

    async def list_connections(self, *, limit: int = 100, offset: int = 0) -> rest.record.Page[rest.sealed.StoredConnection]:
        return await self._get("/connections", rest.record.Page[rest.sealed.StoredConnection], limit=limit, offset=offset)

    async def get_connection(self, name: str, *, reveal: bool = False) -> rest.sealed.StoredConnection:
        return await self._get(f"/connections/{_in_path(name)}", rest.sealed.StoredConnection, reveal=reveal)

    async def set_connection(
        self, name: str, *, uri: str | None = None, description: str | None = None, dags: list[str] | None = None
    ) -> rest.sealed.StoredConnection:
        change = {"uri": uri, "description": description, "dags": dags}
        return await self._send("PUT", f"/connections/{_in_path(name)}", change, rest.sealed.StoredConnection)

    async def delete_connection(self, name: str) -> rest.sealed.StoredConnection:
        return await self._send("DELETE", f"/connections/{_in_path(name)}", None, rest.sealed.StoredConnection)

    async def list_variables(self, *, limit: int = 100, offset: int = 0) -> rest.record.Page[rest.sealed.StoredVariable]:
        return await self._get("/variables", rest.record.Page[rest.sealed.StoredVariable], limit=limit, offset=offset)

    async def get_variable(self, name: str, *, reveal: bool = False) -> rest.sealed.StoredVariable:
        return await self._get(f"/variables/{_in_path(name)}", rest.sealed.StoredVariable, reveal=reveal)

    async def set_variable(
        self, name: str, *, value: str | None = None, description: str | None = None, dags: list[str] | None = None
    ) -> rest.sealed.StoredVariable:
        change = {"value": value, "description": description, "dags": dags}
        return await self._send("PUT", f"/variables/{_in_path(name)}", change, rest.sealed.StoredVariable)

    async def delete_variable(self, name: str) -> rest.sealed.StoredVariable:
        return await self._send("DELETE", f"/variables/{_in_path(name)}", None, rest.sealed.StoredVariable)

    async def check_secret(self, kind: str, name: str, text: str, *, description: str | None = None) -> rest.sealed.CheckedValue:
        """Refused where it cannot be stored; nothing is."""
        value = {"kind": kind, "name": name, "text": text, "description": description}
        return await self._send("POST", "/secrets/check", value, rest.sealed.CheckedValue)

    async def rotate_secrets(self) -> rest.sealed.Rotated:
        return await self._send("POST", "/secrets/rotate", None, rest.sealed.Rotated)

    async def list_xcoms(
        self, dag_id: str, run_id: str, *, task_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> rest.record.Page[rest.tasks.XComEntry]:
        return await self._get(
            f"{_run_path(dag_id, run_id)}/xcoms",
            rest.record.Page[rest.tasks.XComEntry],
            task_id=task_id,
            limit=limit,
            offset=offset,
        )

    async def get_xcom(self, dag_id: str, run_id: str, task_id: str, key: str, *, map_index: int = -1) -> rest.tasks.XComShown:
        path = f"{_run_path(dag_id, run_id)}/tasks/{_in_path(task_id)}/xcoms/{_in_path(key)}"
        return await self._get(path, rest.tasks.XComShown, map_index=map_index)

    async def get_rendered(self, dag_id: str, run_id: str, task_id: str, *, map_index: int = -1) -> rest.tasks.RenderedFields:
        path = f"{_run_path(dag_id, run_id)}/tasks/{_in_path(task_id)}/rendered"
        return await self._get(path, rest.tasks.RenderedFields, map_index=map_index)

    async def list_settings(self) -> rest.record.Page[rest.steering.SettingValue]:
        return await self._get("/settings", rest.record.Page[rest.steering.SettingValue])

    async def set_setting(self, name: str, value: Any) -> rest.steering.SettingValue:
        return await self._send("PUT", f"/settings/{_in_path(name)}", {"value": value}, rest.steering.SettingValue)

    async def get_setting(self, name: str) -> rest.steering.SettingValue:
        return await self._get(f"/settings/{_in_path(name)}", rest.steering.SettingValue)

    async def unset_setting(self, name: str) -> rest.steering.SettingValue:
        return await self._send("DELETE", f"/settings/{_in_path(name)}", None, rest.steering.SettingValue)

    async def list_setting_history(
        self, name: str, *, limit: int = 100, offset: int = 0
    ) -> rest.record.Page[rest.steering.SettingVersion]:
        return await self._get(
            f"/settings/{_in_path(name)}/history", rest.record.Page[rest.steering.SettingVersion], limit=limit, offset=offset
        )

    async def list_triggers(
        self, *, dag_id: str | None = None, run_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> rest.record.Page[rest.tasks.WaitingTrigger]:
        return await self._get(
            "/triggers", rest.record.Page[rest.tasks.WaitingTrigger], dag_id=dag_id, run_id=run_id, limit=limit, offset=offset
        )

    async def list_quarantine(self, *, limit: int = 100, offset: int = 0) -> rest.record.Page[rest.system.QuarantineEntry]:
        return await self._get("/quarantine", rest.record.Page[rest.system.QuarantineEntry], limit=limit, offset=offset)

    async def release_quarantined(self, kind: str, name: str) -> rest.system.Released:
        return await self._send("POST", "/quarantine/release", {"kind": kind, "object": name}, rest.system.Released)

    async def get_audit(self) -> rest.audit.Audit:
        return await self._get("/audit", rest.audit.Audit)

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
        return TypeAdapter(answer).validate_json(_checked(response).body)
    except ValidationError as error:
        raise ApiRefused(
            response.status, f"The answer of the API cannot be read: {_wrong(error)}. Upgrade the older of the two sides."
        ) from None


def _wrong(error: ValidationError) -> str:
    """The first thing that is wrong, and where."""
    first, *_ = error.errors(include_url=False, include_input=False)
    return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"


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
