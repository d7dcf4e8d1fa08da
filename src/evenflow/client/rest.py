"""REST for the command line: a table of the API's routes, each a method that takes the fields of its request."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, cast
from urllib.parse import quote

import msgspec
from pydantic import TypeAdapter, ValidationError

from evenflow.client.events import server_events
from evenflow.client.http import PLAIN, HttpClient, Response
from evenflow.contracts import rest
from evenflow.contracts.rest import PREFIX
from evenflow.core.flow.effects import Effect
from evenflow.core.limits import PAGE
from evenflow.errors import ApiRefused
from evenflow.wire.tls import Tls

P = ParamSpec("P")
T = TypeVar("T")
Name: TypeAlias = str | int

NAMES = re.compile(r"{(\w+)}")  # in a path


@dataclass(frozen=True, slots=True)
class Route(Generic[P, T]):
    """A route, called with the names in its path, then with the fields of its ``request`` by their names. Functions name the
    records, because a command imports only those of one subject or two.
    """

    method: str
    path: str
    request: Callable[[], Callable[..., Any]]
    answer: Callable[[], type[T]]
    is_keyed: bool = False  # it makes something, and has an idempotency key: asked again, it gets the first answer

    def __get__(self, client: RestClient, _: type[RestClient]) -> Callable[P, Awaitable[T]]:
        def ask(*names: Name, **fields: Any) -> Awaitable[T]:
            return client.ask(self, names, fields)

        return cast(Callable[P, Awaitable[T]], ask)


def route(
    method: str, path: str, request: Callable[[], Callable[P, Any]], answer: Callable[[], type[T]], *, is_keyed: bool = False
) -> Route[P, T]:
    return Route(method, path, request, answer, is_keyed)


def route_1(
    method: str, path: str, request: Callable[[], Callable[P, Any]], answer: Callable[[], type[T]], *, is_keyed: bool = False
) -> Route[Concatenate[Name, P], T]:
    """A route with one name in its path; those below have more."""
    return Route(method, path, request, answer, is_keyed)


def route_2(
    method: str, path: str, request: Callable[[], Callable[P, Any]], answer: Callable[[], type[T]]
) -> Route[Concatenate[Name, Name, P], T]:
    return Route(method, path, request, answer)


def route_3(
    method: str, path: str, request: Callable[[], Callable[P, Any]], answer: Callable[[], type[T]]
) -> Route[Concatenate[Name, Name, Name, P], T]:
    return Route(method, path, request, answer)


def route_4(
    method: str, path: str, request: Callable[[], Callable[P, Any]], answer: Callable[[], type[T]]
) -> Route[Concatenate[Name, Name, Name, Name, P], T]:
    return Route(method, path, request, answer)


def nothing() -> Callable[[], rest.record.Nothing]:
    """The request of a route that takes only the names in its path."""
    return rest.record.Nothing


async def every(read: Callable[..., Awaitable[rest.record.Page[T]]], *names: Name, **filters: Any) -> AsyncIterator[T]:
    """Yields the items of all pages of a list, as ``every(client.list_runs, dag_id="sales")``; a page is read when it is needed."""
    page = await read(*names, **{"limit": PAGE, **filters})
    for item in page.items:
        yield item
    while page.next is not None:
        page = await read(*names, **{"limit": PAGE, **filters}, cursor=page.next)
        for item in page.items:
            yield item


RUN = "/dags/{dag_id}/runs/{run_id}"
TASK = f"{RUN}/tasks/{{task_id}}"


class RestClient:
    """Raises :class:`ApiUnavailable` when the API does not answer, :class:`ApiRefused` with its own words when it refuses."""

    def __init__(self, api_url: str, token: str, *, patience_s: float = 0.0, tls: Tls = PLAIN) -> None:
        self.url = api_url
        self._http = HttpClient(api_url, token, patience_s=patience_s, tls=tls)

    async def close(self) -> None:
        await self._http.close()

    async def __aenter__(self) -> RestClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # DAGs
    list_dags = route("GET", "/dags", lambda: rest.queries.DagQuery, lambda: rest.record.Page[rest.dags.DagSummary])
    get_dag = route_1("GET", "/dags/{dag_id}", nothing, lambda: rest.dags.DagDetail)
    skip_dates = route_1("POST", "/dags/{dag_id}/skip", lambda: rest.dags.DateSkip, lambda: rest.dags.DagSummary)
    set_paused = route_1("PATCH", "/dags/{dag_id}", lambda: rest.dags.DagChange, lambda: rest.dags.DagSummary)
    release_dag = route_1("POST", "/dags/{dag_id}/release", lambda: rest.dags.DagRelease, lambda: rest.dags.DagSummary)
    delete_dag = route_1("DELETE", "/dags/{dag_id}", lambda: rest.queries.DeletionQuery, lambda: rest.dags.DeletedDag)
    list_versions = route_1(
        "GET", "/dags/{dag_id}/versions", lambda: rest.queries.PageQuery, lambda: rest.record.Page[rest.dags.DagVersion]
    )
    diff_versions = route_1("GET", "/dags/{dag_id}/diff", lambda: rest.queries.DiffQuery, lambda: rest.dags.VersionDiff)
    read_code = route_1("GET", "/dags/{dag_id}/code", lambda: rest.queries.CodeQuery, lambda: rest.dags.DagCode)
    read_grid = route_1("GET", "/dags/{dag_id}/grid", lambda: rest.queries.GridQuery, lambda: rest.runs.Grid)
    read_calendar = route_1("GET", "/dags/{dag_id}/calendar", lambda: rest.record.Nothing, lambda: rest.runs.Calendar)
    list_parse_errors = route(
        "GET", "/parse-errors", lambda: rest.queries.PageQuery, lambda: rest.record.Page[rest.dags.ParseError]
    )
    list_parse_warnings = route(
        "GET", "/parse-warnings", lambda: rest.queries.PageQuery, lambda: rest.record.Page[rest.dags.ParseWarning]
    )
    list_bundles = route("GET", "/bundles", lambda: rest.queries.PageQuery, lambda: rest.record.Page[rest.dags.BundleSummary])

    # runs
    trigger_run = route_1("POST", "/dags/{dag_id}/runs", lambda: rest.runs.RunRequest, lambda: rest.runs.RunSummary, is_keyed=True)
    list_runs = route("GET", "/runs", lambda: rest.queries.RunQuery, lambda: rest.record.Page[rest.runs.RunSummary])
    find_run = route_1("GET", "/runs/{run_id}", lambda: rest.queries.RunNameQuery, lambda: rest.record.Page[rest.runs.RunName])
    get_run = route_2("GET", RUN, nothing, lambda: rest.runs.RunDetail)
    count_by_task = route_2("GET", f"{RUN}/task-counts", nothing, lambda: rest.runs.TaskCounts)
    set_note = route_2("PATCH", RUN, lambda: rest.runs.RunChange, lambda: rest.runs.RunSummary)
    delete_run = route_2("DELETE", RUN, nothing, lambda: rest.runs.RunSummary)
    preview_cancel = route_2("GET", f"{RUN}/cancel", nothing, lambda: Effect)
    cancel_run = route_2("POST", f"{RUN}/cancel", nothing, lambda: rest.runs.RunSummary)
    cancel_runs = route_1("POST", "/dags/{dag_id}/runs/cancel", lambda: rest.runs.CancelRequest, lambda: rest.runs.CancelledRuns)
    clear = route_2("POST", f"{RUN}/clear", lambda: rest.runs.ClearRequest, lambda: rest.runs.Operated)
    mark = route_2("POST", f"{RUN}/mark", lambda: rest.runs.MarkRequest, lambda: rest.runs.Operated)
    list_run_events = route_2(
        "GET", f"{RUN}/events", lambda: rest.queries.PageQuery, lambda: rest.record.Page[rest.runs.RunHistoryEntry]
    )

    # tasks
    list_tasks = route_2(
        "GET", f"{RUN}/tasks", lambda: rest.queries.TaskQuery, lambda: rest.record.Page[rest.tasks.InstanceSummary]
    )
    list_task_events = route_3(
        "GET", f"{TASK}/events", lambda: rest.queries.TaskEventQuery, lambda: rest.record.Page[rest.tasks.TaskHistoryEntry]
    )
    list_tries = route_3("GET", f"{TASK}/tries", lambda: rest.queries.InstanceQuery, lambda: rest.tasks.TaskTries)
    read_log = route_3("GET", f"{TASK}/logs", lambda: rest.queries.LogQuery, lambda: rest.live.LogText)
    get_lineage = route_3("GET", f"{TASK}/lineage", lambda: rest.queries.TryQuery, lambda: rest.tasks.TaskLineage)
    get_spark_stages = route_3("GET", f"{TASK}/spark", lambda: rest.queries.TryQuery, lambda: rest.tasks.SparkStages)
    find_spark_ui = route_3("GET", f"{TASK}/spark-ui", lambda: rest.queries.InstanceQuery, lambda: rest.tasks.SparkUiPath)
    get_links = route_3("GET", f"{TASK}/links", lambda: rest.queries.InstanceQuery, lambda: rest.tasks.TaskLinks)
    get_rendered = route_3("GET", f"{TASK}/rendered", lambda: rest.queries.InstanceQuery, lambda: rest.tasks.RenderedFields)
    explain = route_3("GET", f"{TASK}/why", lambda: rest.queries.InstanceQuery, lambda: rest.why.Why)
    list_xcoms = route_2("GET", f"{RUN}/xcoms", lambda: rest.queries.XComQuery, lambda: rest.record.Page[rest.tasks.XComEntry])
    get_xcom = route_4("GET", f"{TASK}/xcoms/{{key}}", lambda: rest.queries.InstanceQuery, lambda: rest.tasks.XComShown)
    list_triggers = route(
        "GET", "/triggers", lambda: rest.queries.WaitingQuery, lambda: rest.record.Page[rest.tasks.WaitingTrigger]
    )

    # what tasks ask people
    list_approvals = route(
        "GET", "/approvals", lambda: rest.queries.ApprovalQuery, lambda: rest.record.Page[rest.approvals.Approval]
    )
    get_approval = route_3("GET", f"{TASK}/approval", lambda: rest.queries.InstanceQuery, lambda: rest.approvals.Approval)
    answer = route_3("POST", f"{TASK}/answer", lambda: rest.approvals.AnswerRequest, lambda: rest.approvals.Answered)

    # backfills
    create_backfill = route_1(
        "POST",
        "/dags/{dag_id}/backfills",
        lambda: rest.backfills.BackfillRequest,
        lambda: rest.backfills.BackfillPlan,
        is_keyed=True,
    )
    list_backfills = route(
        "GET", "/backfills", lambda: rest.queries.BackfillQuery, lambda: rest.record.Page[rest.backfills.Backfill]
    )
    get_backfill = route_1("GET", "/backfills/{backfill_id}", nothing, lambda: rest.backfills.Backfill)
    list_backfill_runs = route_1(
        "GET",
        "/backfills/{backfill_id}/runs",
        lambda: rest.queries.PageQuery,
        lambda: rest.record.Page[rest.backfills.BackfillDate],
    )
    pause_backfill = route_1(
        "PATCH", "/backfills/{backfill_id}", lambda: rest.backfills.BackfillChange, lambda: rest.backfills.Backfill
    )
    cancel_backfill = route_1("POST", "/backfills/{backfill_id}/cancel", nothing, lambda: rest.backfills.Backfill)

    # assets
    list_assets = route("GET", "/assets", lambda: rest.queries.AssetQuery, lambda: rest.record.Page[rest.assets.AssetSummary])
    list_asset_events = route(
        "GET", "/assets/events", lambda: rest.queries.AssetEventQuery, lambda: rest.record.Page[rest.assets.RecordedAssetEvent]
    )
    list_asset_partitions = route(
        "GET", "/assets/partitions", lambda: rest.queries.PartitionQuery, lambda: rest.record.Page[rest.assets.AssetPartition]
    )
    emit_asset_event = route("POST", "/assets/events", lambda: rest.assets.EventRequest, lambda: rest.assets.Emitted, is_keyed=True)

    # what is sealed
    list_connections = route(
        "GET", "/connections", lambda: rest.queries.PageQuery, lambda: rest.record.Page[rest.sealed.StoredConnection]
    )
    get_connection = route_1("GET", "/connections/{name}", lambda: rest.queries.RevealQuery, lambda: rest.sealed.StoredConnection)
    set_connection = route_1(
        "PUT", "/connections/{name}", lambda: rest.sealed.ConnectionRequest, lambda: rest.sealed.StoredConnection
    )
    delete_connection = route_1("DELETE", "/connections/{name}", nothing, lambda: rest.sealed.StoredConnection)
    list_variables = route(
        "GET", "/variables", lambda: rest.queries.PageQuery, lambda: rest.record.Page[rest.sealed.StoredVariable]
    )
    get_variable = route_1("GET", "/variables/{name}", lambda: rest.queries.RevealQuery, lambda: rest.sealed.StoredVariable)
    set_variable = route_1("PUT", "/variables/{name}", lambda: rest.sealed.VariableRequest, lambda: rest.sealed.StoredVariable)
    delete_variable = route_1("DELETE", "/variables/{name}", nothing, lambda: rest.sealed.StoredVariable)
    check_secret = route("POST", "/secrets/check", lambda: rest.sealed.CheckRequest, lambda: rest.sealed.CheckedValue)
    rotate_secrets = route("POST", "/secrets/rotate", nothing, lambda: rest.sealed.Rotated)

    # what people steer with
    list_pools = route("GET", "/pools", nothing, lambda: rest.record.Page[rest.pools.Pool])
    set_pool = route_1("PUT", "/pools/{name}", lambda: rest.pools.PoolChange, lambda: rest.pools.Pool)
    delete_pool = route_1("DELETE", "/pools/{name}", nothing, lambda: rest.pools.Pool)
    list_executors = route("GET", "/executors", nothing, lambda: rest.record.Page[rest.executors.Executor])
    get_executor = route_1("GET", "/executors/{name}", nothing, lambda: rest.executors.Executor)
    set_executor = route_1("PUT", "/executors/{name}", lambda: rest.executors.ExecutorChange, lambda: rest.executors.Executor)
    delete_executor = route_1("DELETE", "/executors/{name}", nothing, lambda: rest.executors.Executor)
    list_sharing = route("GET", "/sharing", nothing, lambda: rest.record.Page[rest.sharing.Sharing])
    set_sharing = route_2("PUT", "/sharing/{kind}/{name}", lambda: rest.sharing.SharingChange, lambda: rest.sharing.Sharing)
    list_tenants = route_2("GET", "/sharing/{kind}/{name}/tenants", nothing, lambda: rest.record.Page[rest.sharing.Tenant])
    list_service_states = route(
        "GET",
        "/service-states",
        lambda: rest.queries.ServiceStatesQuery,
        lambda: rest.record.Page[rest.service_states.ObjectServiceState],
    )
    get_service_state = route_2("GET", "/service-states/{kind}/{name}", nothing, lambda: rest.service_states.DetailedServiceState)
    set_service_state = route_2(
        "PUT",
        "/service-states/{kind}/{name}",
        lambda: rest.service_states.ServiceStateChange,
        lambda: rest.service_states.DetailedServiceState,
    )
    list_settings = route("GET", "/settings", nothing, lambda: rest.record.Page[rest.settings.SettingValue])
    get_setting = route_1("GET", "/settings/{name}", nothing, lambda: rest.settings.SettingValue)
    set_setting = route_1("PUT", "/settings/{name}", lambda: rest.settings.SettingRequest, lambda: rest.settings.SettingValue)
    unset_setting = route_1("DELETE", "/settings/{name}", nothing, lambda: rest.settings.SettingValue)
    list_setting_history = route_1(
        "GET", "/settings/{name}/history", lambda: rest.queries.PageQuery, lambda: rest.record.Page[rest.settings.SettingVersion]
    )

    # fleets
    list_fleets = route("GET", "/fleets", nothing, lambda: rest.record.Page[rest.fleets.FleetSummary])
    get_fleet = route_1("GET", "/fleets/{name}", nothing, lambda: rest.fleets.FleetDetail)
    set_fleet = route_1("PUT", "/fleets/{name}", lambda: rest.fleets.FleetChange, lambda: rest.fleets.FleetSummary)
    delete_fleet = route_1("DELETE", "/fleets/{name}", nothing, lambda: rest.fleets.FleetSummary)
    get_queue_demand = route_1("GET", "/queues/{queue}/demand", nothing, lambda: rest.fleets.QueueDemand)
    list_fleet_looks = route_1(
        "GET", "/fleets/{name}/looks", lambda: rest.queries.PageQuery, lambda: rest.record.Page[rest.fleets.FleetLook]
    )
    list_fleet_steps = route_1(
        "GET", "/fleets/{name}/steps", lambda: rest.queries.PageQuery, lambda: rest.record.Page[rest.fleets.FleetStep]
    )

    # history
    read_insights = route("GET", "/insights", nothing, lambda: rest.insights.Insights)

    # people in browsers
    list_sessions = route(
        "GET", "/sessions", lambda: rest.queries.PageQuery, lambda: rest.record.Page[rest.sessions.SessionSummary]
    )
    end_session = route_1("DELETE", "/sessions/{session_id}", nothing, lambda: rest.sessions.SessionSummary)
    list_users = route("GET", "/users", lambda: rest.queries.PageQuery, lambda: rest.record.Page[rest.users.User])
    add_user = route("POST", "/users", lambda: rest.users.UserRequest, lambda: rest.users.GivenPassword)
    change_user = route_1("PATCH", "/users/{name}", lambda: rest.users.UserChange, lambda: rest.users.ChangedUser)
    set_user_password = route_1(
        "PUT", "/users/{name}/password", lambda: rest.users.PasswordRequest, lambda: rest.users.GivenPassword
    )
    list_notification_rules = route(
        "GET", "/notification-rules", nothing, lambda: rest.record.Page[rest.notifications.NotificationRule]
    )
    set_notification_rule = route_1(
        "PUT", "/notification-rules/{name}", lambda: rest.notifications.RuleChange, lambda: rest.notifications.NotificationRule
    )
    delete_notification_rule = route_1("DELETE", "/notification-rules/{name}", nothing, lambda: rest.notifications.NotificationRule)
    list_tokens = route("GET", "/tokens", lambda: rest.queries.TokenQuery, lambda: rest.record.Page[rest.tokens.TokenSummary])
    create_token = route("POST", "/tokens", lambda: rest.tokens.TokenRequest, lambda: rest.tokens.GivenToken)
    revoke_token = route_1("DELETE", "/tokens/{token_id}", nothing, lambda: rest.tokens.RevokedToken)
    log_out = route("DELETE", "/session", nothing, lambda: rest.sessions.Session)
    begin_device_login = route(
        "POST", "/device-logins", lambda: rest.device_logins.DeviceLoginRequest, lambda: rest.device_logins.DeviceLogin
    )
    take_device_token = route(
        "POST", "/device-logins/token", lambda: rest.device_logins.DeviceTokenRequest, lambda: rest.device_logins.DeviceToken
    )
    find_device_login = route(
        "POST", "/device-logins/find", lambda: rest.device_logins.UserCodeRequest, lambda: rest.device_logins.AskingDevice
    )
    answer_device_login = route(
        "POST", "/device-logins/answer", lambda: rest.device_logins.DeviceAnswer, lambda: rest.device_logins.AskingDevice
    )
    make_login_code = route("POST", "/login-codes", nothing, lambda: rest.sessions.LoginCode)

    # the system
    get_status = route("GET", "/status", nothing, lambda: rest.system.Status)
    get_plan = route("GET", "/plan", lambda: rest.queries.PlanQuery, lambda: rest.plan.Plan)
    list_changes = route("GET", "/events", lambda: rest.queries.ChangeQuery, lambda: rest.record.Page[rest.system.ChangeEvent])
    list_quarantine = route(
        "GET", "/quarantine", lambda: rest.queries.PageQuery, lambda: rest.record.Page[rest.system.QuarantineEntry]
    )
    release_quarantined = route("POST", "/quarantine/release", lambda: rest.system.SetAside, lambda: rest.system.Released)
    get_audit = route("GET", "/audit", nothing, lambda: rest.audit.Audit)

    @asynccontextmanager
    async def export_events(
        self, *, after: str | None = None, since: datetime | None = None, until: datetime | None = None
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """Yields the incarnation of the database, and one event a line, the oldest first, as they arrive: there may be millions."""
        times = {name: at.isoformat() for name, at in (("since", since), ("until", until)) if at is not None}
        params = times if after is None else {"after": after, **times}
        async with self._http.stream(f"{PREFIX}/events/export", params=params) as answer:
            if answer.status >= 400:
                raise _refused(Response(answer.status, answer.headers, await answer.read()))
            yield int(answer.headers["X-Incarnation"]), aiter(answer.content)

    async def read_stored_log(
        self, dag_id: Name, run_id: Name, task_id: Name, *, map_index: int = -1, try_number: int | None = None
    ) -> AsyncIterator[rest.live.LogText]:
        """Yields the log of a try as far as it is stored by now, and an empty part at its end."""
        offset, is_read = 0, False
        while not is_read:
            part = await self.read_log(dag_id, run_id, task_id, map_index=map_index, try_number=try_number, offset=offset)
            yield part
            is_read, offset = part.offset == offset, part.offset

    async def follow_log(
        self, dag_id: Name, run_id: Name, task_id: Name, *, map_index: int = -1, try_number: int | None = None, offset: int = 0
    ) -> AsyncIterator[rest.live.LogText]:
        """Yields the log of a try from ``offset`` on as it grows, up to its end, also over connections that are lost meanwhile."""
        path = f"{TASK}/logs/live".format(dag_id=_in_path(dag_id), run_id=_in_path(run_id), task_id=_in_path(task_id))
        wanted = {"map_index": map_index, "try_number": try_number, "offset": offset}
        params = {name: _text(value) for name, value in wanted.items() if value is not None}
        async with aclosing(server_events(self._http, f"{PREFIX}{path}", params, _refused)) as events:
            async for event in events:
                part = rest.live.LogText.model_validate_json(event.data)
                yield part
                if part.complete:
                    return

    async def is_ready(self) -> bool:
        """Returns whether the API serves and its database answers. Raises :class:`ApiUnavailable` when nothing listens there."""
        return (await self._http.request("GET", "/health/ready")).status == 200

    async def ask(self, route: Route[Any, T], names: tuple[Name, ...], fields: dict[str, Any]) -> T:
        """Sends fields that have a value. The API checks them, and says what is wrong."""
        path = route.path.format(**dict(zip(NAMES.findall(route.path), map(_in_path, names), strict=True)))
        has_body = route.method in ("POST", "PUT", "PATCH") and route.request is not nothing
        response = await self._http.request(
            route.method,
            f"{PREFIX}{path}",
            body=msgspec.json.encode(fields) if has_body else None,
            content_type="application/json" if has_body else None,
            params=None if has_body else {name: _text(value) for name, value in fields.items() if value is not None},
            waits_s=float(fields.get("wait_s", 0.0)),
            idempotent=route.method != "POST" or route.is_keyed,
            idempotency_key=secrets.token_hex(16) if route.is_keyed else None,
        )
        if response.status >= 400:
            raise _refused(response)
        return _read(response, route.answer())


def _read(response: Response, answer: type[T]) -> T:
    if answer is rest.live.LogText:
        told = response.headers
        size, offset, complete = (told[f"X-Log-{name}"] for name in ("Size", "Offset", "Complete"))
        said = {"text": response.body.decode(errors="replace"), "offset": offset, "size": size, "complete": complete}
        return cast(T, rest.live.LogText.model_validate(said))
    try:
        return TypeAdapter(answer).validate_json(response.body)
    except ValidationError as error:
        first, *_ = error.errors(include_url=False, include_input=False)
        wrong = f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"
        raise ApiRefused(
            response.status, f"The answer of the API cannot be read: {wrong}. Upgrade the older of the two sides."
        ) from None


def _refused(response: Response) -> ApiRefused:
    try:
        problem = rest.problems.Problem.model_validate_json(response.body)
    except ValidationError:
        return ApiRefused(
            response.status,
            f"The server answered with status {response.status}, not as an Evenflow API does.",
            hint="Check EVENFLOW_API_URL.",
        )
    return ApiRefused(response.status, problem.detail, code=problem.type.rpartition("/")[2], hint=problem.hint)


def _in_path(name: Name) -> str:
    return quote(str(name), safe="")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
