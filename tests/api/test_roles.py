"""Every route of REST with every role: what each needs stands here a second time, so that no change of it goes unseen."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import aiohttp
import pytest

from evenflow.api.rest.app import described_rest
from evenflow.core.people.roles import Role
from tests.api.world import World
from tests.tokens import operator_token

NEEDED: dict[Role | None, str] = {
    None: """
        POST /api/v1/session
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
        GET /api/v1/dags/{dag_id}/runs/{run_id}/events
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/events
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/lineage
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/logs
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/rendered
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/spark-ui
        GET /api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/spark-ui/{map_index}/{path}
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
        GET /api/v1/live
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
        GET /api/v1/variables
    """,
    Role.OPERATOR: """
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
        POST /api/v1/secrets/rotate
        GET /api/v1/users
        POST /api/v1/users
        PATCH /api/v1/users/{name}
        PUT /api/v1/users/{name}/password
    """,
}

OPEN = {"POST /api/v1/session", "GET /health", "GET /health/live", "GET /health/ready", "GET /metrics", "GET /metrics/targets"}
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
    unasserted = set(found) ^ set(STATED)
    assert unasserted == set()
    assert found == {route: None if role is None else str(role) for route, role in STATED.items()}


def test_roles_are_a_ladder() -> None:
    assert [[one.allows(other) for other in Role] for one in Role] == [[at >= below for below in range(4)] for at in range(4)]


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


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
