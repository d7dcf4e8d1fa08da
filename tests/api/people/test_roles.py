"""Every route of REST with every role: what each needs stands here a second time, so that no change of it goes unseen."""

from __future__ import annotations

import inspect
import re

import aiohttp
import pytest
from fastapi.routing import APIRoute

from evenflow.api.rest.app import described_rest
from evenflow.contracts.airflow.dates import NEWEST
from evenflow.contracts.airflow.of_try import instance_id
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope
from evenflow.wire.messages import AIRFLOW_API
from tests.api.world import World
from tests.tokens import operator_token

NEEDED: dict[Role | None, str] = {
    None: """
        POST /api/v1/session
        POST /api/v1/device-logins
        POST /api/v1/device-logins/token
        GET /api/v1/problems/{code}
        GET /api/v1/identity
        GET /api/v1/identity/callback
        GET /api/v1/identity/login
        GET /api/v1/identity/logout
        GET /health
        GET /health/live
        GET /health/ready
        GET /metrics
        GET /metrics/targets
    """,
    Role.VIEWER: """
        GET /api/v1/approvals
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/approval
        POST /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/answer
        GET /api/v1/assets
        GET /api/v1/assets/events
        GET /api/v1/assets/partitions
        GET /api/v1/backfills
        GET /api/v1/backfills/{backfill_id}
        GET /api/v1/backfills/{backfill_id}/runs
        GET /api/v1/bundles
        GET /api/v1/dags
        GET /api/v1/dags/{dag_id}
        GET /api/v1/dags/{dag_id}/calendar
        GET /api/v1/dags/{dag_id}/code
        GET /api/v1/dags/{dag_id}/diff
        GET /api/v1/dags/{dag_id}/grid
        GET /api/v1/dags/{dag_id}/runs/{run_id}
        GET /api/v1/dags/{dag_id}/runs/{run_id}/cancel
        GET /api/v1/dags/{dag_id}/runs/{run_id}/events
        GET /api/v1/dags/{dag_id}/runs/{run_id}/task-counts
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/events
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/lineage
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/links
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/logs
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/logs/live
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/logs/file
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/rendered
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/spark
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/spark-ui
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/spark-ui/{map_index}/{path}
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/tries
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/why
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/xcoms/{key}
        GET /api/v1/dags/{dag_id}/runs/{run_id}/xcoms
        GET /api/v1/dags/{dag_id}/versions
        GET /api/v1/executors
        GET /api/v1/executors/{name}
        GET /api/v1/fleets
        GET /api/v1/fleets/{name}
        GET /api/v1/fleets/{name}/looks
        GET /api/v1/fleets/{name}/steps
        GET /api/v1/insights
        GET /api/v1/notification-rules
        GET /api/v1/capacity/live
        GET /api/v1/live
        POST /api/v1/device-logins/answer
        POST /api/v1/device-logins/find
        POST /api/v1/login-codes
        GET /api/v1/parse-errors
        GET /api/v1/parse-warnings
        GET /api/v1/plan
        GET /api/v1/pools
        GET /api/v1/quarantine
        GET /api/v1/queues/{queue}/demand
        GET /api/v1/runs
        GET /api/v1/runs/{run_id}
        GET /api/v1/service-states
        GET /api/v1/service-states/{kind}/{name}
        DELETE /api/v1/session
        GET /api/v1/session
        PUT /api/v1/session/password
        GET /api/v1/sessions
        DELETE /api/v1/sessions/{session_id}
        GET /api/v1/settings
        GET /api/v1/settings/{name}
        GET /api/v1/settings/{name}/history
        GET /api/v1/sharing
        GET /api/v1/sharing/{kind}/{name}/tenants
        GET /api/v1/status
        GET /api/v1/triggers
    """,
    Role.AUTHOR: """
        POST /api/v1/assets/events
        PATCH /api/v1/backfills/{backfill_id}
        POST /api/v1/backfills/{backfill_id}/cancel
        GET /api/v1/connections
        PATCH /api/v1/dags/{dag_id}
        POST /api/v1/dags/{dag_id}/backfills
        POST /api/v1/dags/{dag_id}/release
        POST /api/v1/dags/{dag_id}/runs
        POST /api/v1/dags/{dag_id}/runs/cancel
        PATCH /api/v1/dags/{dag_id}/runs/{run_id}
        POST /api/v1/dags/{dag_id}/runs/{run_id}/cancel
        POST /api/v1/dags/{dag_id}/runs/{run_id}/clear
        POST /api/v1/dags/{dag_id}/runs/{run_id}/mark
        POST /api/v1/dags/{dag_id}/skip
        GET /api/v1/variables
    """,
    Role.OPERATOR: """
        PUT /api/v1/notification-rules/{name}
        DELETE /api/v1/notification-rules/{name}
        GET /api/v1/audit
        DELETE /api/v1/connections/{name}
        GET /api/v1/connections/{name}
        PUT /api/v1/connections/{name}
        DELETE /api/v1/dags/{dag_id}
        DELETE /api/v1/dags/{dag_id}/runs/{run_id}
        GET /api/v1/events
        DELETE /api/v1/executors/{name}
        PUT /api/v1/executors/{name}
        DELETE /api/v1/fleets/{name}
        PUT /api/v1/fleets/{name}
        DELETE /api/v1/pools/{name}
        PUT /api/v1/pools/{name}
        POST /api/v1/quarantine/release
        POST /api/v1/secrets/check
        PUT /api/v1/service-states/{kind}/{name}
        DELETE /api/v1/settings/{name}
        PUT /api/v1/settings/{name}
        PUT /api/v1/sharing/{kind}/{name}
        DELETE /api/v1/variables/{name}
        GET /api/v1/variables/{name}
        PUT /api/v1/variables/{name}
    """,
    Role.ADMIN: """
        GET /api/v1/events/export
        POST /api/v1/secrets/rotate
        GET /api/v1/tokens
        POST /api/v1/tokens
        DELETE /api/v1/tokens/{token_id}
        GET /api/v1/users
        POST /api/v1/users
        PATCH /api/v1/users/{name}
        PUT /api/v1/users/{name}/password
    """,
}

SCOPED: dict[str | None, str] = {
    "answer": """
        GET /api/v1/approvals
        GET /api/v1/assets
        GET /api/v1/assets/events
        POST /api/v1/assets/events
        GET /api/v1/assets/partitions
        GET /api/v1/backfills
        GET /api/v1/backfills/{backfill_id}
        PATCH /api/v1/backfills/{backfill_id}
        POST /api/v1/backfills/{backfill_id}/cancel
        GET /api/v1/backfills/{backfill_id}/runs
        GET /api/v1/bundles
        GET /api/v1/dags
        GET /api/v1/events
        GET /api/v1/executors
        GET /api/v1/executors/{name}
        GET /api/v1/capacity/live
        GET /api/v1/live
        GET /api/v1/parse-errors
        GET /api/v1/parse-warnings
        GET /api/v1/plan
        GET /api/v1/pools
        GET /api/v1/quarantine
        GET /api/v1/runs
        GET /api/v1/runs/{run_id}
        GET /api/v1/service-states
        GET /api/v1/service-states/{kind}/{name}
        PUT /api/v1/service-states/{kind}/{name}
        GET /api/v1/sharing
        GET /api/v1/status
        GET /api/v1/triggers
    """,
    "pool": """
        PUT /api/v1/pools/{name}
    """,
    "queue": """
        GET /api/v1/queues/{queue}/demand
    """,
    "own": """
        POST /api/v1/device-logins/answer
        POST /api/v1/device-logins/find
        POST /api/v1/login-codes
        DELETE /api/v1/session
        GET /api/v1/session
        PUT /api/v1/session/password
        GET /api/v1/sessions
        DELETE /api/v1/sessions/{session_id}
        GET /api/v1/settings
        GET /api/v1/settings/{name}
        GET /api/v1/settings/{name}/history
    """,
    None: """
        PUT /api/v1/notification-rules/{name}
        DELETE /api/v1/notification-rules/{name}
        GET /api/v1/audit
        GET /api/v1/events/export
        GET /api/v1/connections
        DELETE /api/v1/connections/{name}
        GET /api/v1/connections/{name}
        PUT /api/v1/connections/{name}
        DELETE /api/v1/executors/{name}
        PUT /api/v1/executors/{name}
        GET /api/v1/fleets
        DELETE /api/v1/fleets/{name}
        GET /api/v1/fleets/{name}
        PUT /api/v1/fleets/{name}
        GET /api/v1/fleets/{name}/looks
        GET /api/v1/fleets/{name}/steps
        GET /api/v1/insights
        GET /api/v1/notification-rules
        DELETE /api/v1/pools/{name}
        POST /api/v1/quarantine/release
        POST /api/v1/secrets/check
        POST /api/v1/secrets/rotate
        DELETE /api/v1/settings/{name}
        PUT /api/v1/settings/{name}
        PUT /api/v1/sharing/{kind}/{name}
        GET /api/v1/sharing/{kind}/{name}/tenants
        GET /api/v1/tokens
        POST /api/v1/tokens
        DELETE /api/v1/tokens/{token_id}
        GET /api/v1/users
        POST /api/v1/users
        PATCH /api/v1/users/{name}
        PUT /api/v1/users/{name}/password
        GET /api/v1/variables
        DELETE /api/v1/variables/{name}
        GET /api/v1/variables/{name}
        PUT /api/v1/variables/{name}
    """,
}

OPEN = {route.strip() for route in NEEDED[None].strip().splitlines()}
STATED = {route: role for role, lines in NEEDED.items() for route in lines.strip().splitlines()}
STATED = {route.strip(): role for route, role in STATED.items()}


def every_route() -> dict[str, str | None]:
    """With the role that it names."""
    paths = described_rest().openapi()["paths"]
    return {f"{method.upper()} {path}": one.get("x-role") for path, methods in paths.items() for method, one in methods.items()}


def test_each_route_names_the_role_that_it_needs() -> None:
    """R-SE3: what is for everyone is a short list, and a route that names none fails here."""
    found = every_route()
    assert {route for route, role in found.items() if role is None} == OPEN
    assert unasserted() == {}
    assert found == {route: None if role is None else str(role) for route, role in STATED.items()}


def scoped_by() -> dict[str, str | None]:
    """How each route keeps to the scope of who asks, as it says itself."""
    paths = described_rest().openapi()["paths"]
    return {
        f"{method.upper()} {path}": one.get("x-scoped-by")
        for path, methods in paths.items()
        for method, one in methods.items()
        if "x-role" in one
    }


def unasserted() -> dict[str, str]:
    """Routes of which nothing here says which role they need, or how they keep to a scope; and what is said of no route."""
    stated = {route.strip(): how for how, lines in SCOPED.items() for route in lines.strip().splitlines()}
    stated |= {route: "dag" for route in STATED if "{dag_id}" in route}
    scoped = scoped_by()
    wrong = {route: f"keeps to a scope: {how}" for route, how in scoped.items() if stated.get(route, "nothing") != how}
    return (
        wrong
        | dict.fromkeys(set(every_route()) ^ set(STATED), "its role")
        | dict.fromkeys(stated.keys() - scoped.keys(), "no route")
    )


def test_each_route_says_how_it_keeps_to_a_scope() -> None:
    """R-SE3: one that says nothing is closed to those who have one, and stands here as such."""
    assert unasserted() == {}


def test_what_filters_takes_the_scope() -> None:
    """R-SE3: a route that says that its answer keeps to the scope asks for it."""
    takes = {
        route.name: "scope" in inspect.signature(route.endpoint).parameters
        for route in described_rest().routes
        if isinstance(route, APIRoute) and (route.openapi_extra or {}).get("x-scoped-by") == "answer"
    }
    assert takes
    assert all(takes.values()), takes


@pytest.mark.system  # it walks all routes
@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
async def test_who_has_a_scope_gets_where_routes_keep_to_it_and_no_further(
    api_url: str, world: World, http: aiohttp.ClientSession, role: Role
) -> None:
    """R-SE3: every route, asked with this role in a scope that has nothing of what there is. An admin has none."""
    scope = PersonScope(tags=("none",), pools=("none",), queues=("none",))
    shown = {"Authorization": f"Bearer {operator_token(world.conn, name='eve', role=role, scope=scope)}"}
    wrong: list[str] = []
    for route, how in scoped_by().items():
        method, path = route.split()
        needed = STATED[route]
        assert needed is not None
        async with http.request(method, f"{api_url}{re.sub('{.*?}', '7', path)}", headers=shown) as answer:
            told = "" if answer.content_type == "text/event-stream" else await answer.text()
        if not role.allows(needed):
            is_right = answer.status == 403 and f"This is for the role {needed}" in told
        elif how is None:
            is_right = answer.status == 403 and "This is for those whose role counts everywhere" in told
        elif how in ("dag", "pool", "queue"):
            is_right = answer.status == 404 and "There is no " in told
        else:
            is_right = answer.status not in (401, 403, 500)
        if not is_right:
            wrong.append(f"{route}: {answer.status} {told}")
    assert wrong == []


def test_roles_are_a_ladder() -> None:
    assert [[one.allows(other) for other in Role] for one in Role] == [[at >= below for below in range(4)] for at in range(4)]


@pytest.mark.parametrize("role", Role)
async def test_a_role_may_what_it_is_for_and_nothing_else(
    api_url: str, world: World, http: aiohttp.ClientSession, role: Role
) -> None:
    """R-SE3: every route, asked with this role. Whoever may not is told which role it needs; nobody else is refused."""
    shown = {"Authorization": f"Bearer {operator_token(world.conn, name='eve', role=role)}"}
    wrong: list[str] = []
    for route, needed in STATED.items():
        method, path = route.split()
        if needed is None or (path == "/api/v1/secrets/rotate" and role is Role.ADMIN):  # which would take a second
            continue
        async with http.request(method, f"{api_url}{re.sub('{.*?}', '7', path)}", headers=shown) as answer:
            told = await answer.text() if answer.status == 403 else ""
        if (answer.status == 403) is role.allows(needed) or answer.status in (401, 500):
            wrong.append(f"{route}: {answer.status}")
        elif told and f"This is for the role {needed}" not in told:
            wrong.append(f"{route}: {told}")
    assert wrong == []


async def test_a_body_is_not_read_for_who_may_not(api_url: str, world: World, http: aiohttp.ClientSession) -> None:
    """R-SE3: what is wrong with it is nothing that they learn."""
    shown = {"Authorization": f"Bearer {operator_token(world.conn, role=Role.VIEWER)}"}
    async with http.put(f"{api_url}/api/v1/pools/p", data=b"{", headers=shown) as answer:
        assert (answer.status, answer.headers["Connection"]) == (403, "close")


@pytest.mark.parametrize("role", Role)
async def test_people_have_no_way_into_the_api_of_airflows_tasks(
    api_url: str, world: World, http: aiohttp.ClientSession, role: Role
) -> None:
    """R-SE1, R-SE3: it takes the token of one try, whatever the role of a person; nothing is told, and nothing is done."""
    shown = {"Authorization": f"Bearer {operator_token(world.conn, role=role)}", "Airflow-API-Version": NEWEST}
    epoch = world.dispatch(world.run(world.add_dag()), 1)
    asked = f"{api_url}{AIRFLOW_API}"
    for method, path in (
        ("PATCH", f"task-instances/{instance_id(epoch)}/run"),
        ("PATCH", f"task-instances/{instance_id(epoch)}/state"),
        ("PUT", f"task-instances/{instance_id(epoch)}/heartbeat"),
        ("GET", "xcoms/sales/r1/extract/return_value"),
        ("GET", "connections/x"),
        ("PUT", "variables/x"),
        ("POST", "dag-runs/sales/r2"),
    ):
        async with http.request(method, f"{asked}/{path}", json={"hostname": "h", "pid": 1}, headers=shown) as answer:
            told = (await answer.json())["detail"]
        assert (answer.status, told["reason"]) == (403, "forbidden"), path
    assert world.one("select count(*) from dispatch where worker_id is null") == 1
