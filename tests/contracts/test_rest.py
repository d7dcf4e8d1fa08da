"""What a client makes of answers, also of those of an API that is newer than itself."""

from __future__ import annotations

import json
import subprocess
import sys
import typing
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from types import NoneType
from typing import Any

import pytest
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError

from evenflow.api.rest.app import described_rest
from evenflow.cli.commands.why import print_why
from evenflow.cli.output.terminal import in_order, print_json
from evenflow.client.rest import RestClient, Route
from evenflow.contracts.rest import PREFIX, why
from evenflow.contracts.rest.executors import ExecutorChange
from evenflow.contracts.rest.fleets import FleetChange
from evenflow.contracts.rest.live import LogText
from evenflow.contracts.rest.record import Nothing, Page
from evenflow.contracts.rest.runs import RunDetail, RunName
from evenflow.contracts.rest.sealed import StoredConnection
from evenflow.contracts.rest.service_states import ObjectServiceState
from evenflow.core.states import RunState, TaskState
from evenflow.core.why import NextRound, WhyNot

NOW = "2026-01-01T00:00:00Z"
RUN: dict[str, Any] = {
    **dict.fromkeys(name for name, each in RunDetail.model_fields.items() if NoneType in typing.get_args(each.annotation)),
    "dag_id": "d", "run_id": "r", "state": "running", "run_type": "manual", "version_number": 1, "params": {}, "priority": 0,
    "run_after": NOW, "created_at": NOW, "is_being_changed": False, "tasks_by_state": {"running": 1}, "progress": [],
    "callbacks": [], "deadlines": [],
}  # fmt: skip
WHY = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1, "state": "none", "run_state": "running"}

REASONS = [kind for kind in typing.get_args(WhyNot) if hasattr(kind, "__dataclass_fields__")]
VALUES = {"str": "x", "int": 1, "float": 1.5, "bool": True, "datetime": NOW, "datetime | None": None, "str | None": None}


def read(answer: Any, told: dict[str, Any]) -> Any:
    return TypeAdapter(answer).validate_json(json.dumps(told))


def test_a_known_state_is_itself() -> None:
    run = read(RunDetail, RUN)
    assert run.state is RunState.RUNNING
    assert run.tasks_by_state == {TaskState.RUNNING: 1}


@pytest.mark.parametrize("change", [FleetChange, ExecutorChange])
def test_a_queue_has_no_comma(change: type[FleetChange | ExecutorChange]) -> None:
    """R-EX1: workers are told their queues in one setting, so nobody could serve it, and each pod for it would end at once."""
    assert change(queues=["etl gpu+1"]).queues == ["etl gpu+1"]
    with pytest.raises(ValidationError, match="should match pattern"):
        change(queues=["etl,gpu"])


def test_what_is_new_to_a_client_stops_nothing() -> None:
    """Fields that it does not know are left out, words are kept as they are, and told after those that it knows."""
    newer = {**RUN, "state": "on_hold", "tasks_by_state": {"on_hold": 2, "running": 1}, "invented_later": {"a": 1}}
    run = read(RunDetail, newer)
    assert (run.state, run.tasks_by_state) == ("on_hold", {"on_hold": 2, "running": 1})
    assert in_order(run.tasks_by_state) == ["running", "on_hold"]
    names = read(Page[RunName], {"items": [{"dag_id": "d", "run_id": "r", "state": "on_hold"}], "limit": 1, "more": False})
    assert names.items[0].state == "on_hold"
    told = {"kind": "region", "name": "eu", "state": "melting", "since": None, "actor": None, "deadline": None, "reason": None}
    assert read(ObjectServiceState, told).model_dump() == told


@pytest.mark.parametrize("kind", REASONS, ids=lambda kind: kind.__name__)
def test_every_reason_is_read_as_what_it_is(kind: type[Any]) -> None:
    told: dict[str, Any] = {}
    for field in fields(kind):
        told[field.name] = VALUES.get(str(field.type), []) if field.default is MISSING else field.default
    (reason,) = read(why.Why, {**WHY, "reasons": [told]}).reasons
    assert type(reason) is kind
    (newer,) = read(why.Why, {**WHY, "reasons": [{**told, "invented_later": 1}]}).reasons
    assert newer == reason


def test_a_reason_that_is_new_to_a_client_is_told_as_that(capsys: pytest.CaptureFixture[str]) -> None:
    found = read(why.Why, {**WHY, "reasons": [{"kind": "awaits_licence", "seats": 3}, {"kind": "next_round"}]})
    assert found.reasons == [{"kind": "awaits_licence", "seats": 3}, NextRound()]
    print_why(found)
    assert "a reason that this command line does not know: awaits_licence" in capsys.readouterr().out.lower()
    told = {"sentence": "No seat is free: 3 of 3 are taken.", "facts": [], "cure": "buy one", "aim": "to change it"}
    print_why(read(why.Why, {**WHY, "reasons": [{"kind": "awaits_licence", "seats": 3, "told": told}]}))
    shown = capsys.readouterr().out
    assert "No seat is free: 3 of 3 are taken." in shown
    assert "buy one" in shown


def test_the_description_lists_the_words_of_this_version_and_no_others() -> None:
    schemas = described_rest().openapi()["components"]["schemas"]
    assert schemas["RunState"]["enum"] == [state.value for state in RunState]
    assert schemas["RunDetail"]["properties"]["state"]["$ref"] == "#/components/schemas/RunState"
    told = schemas["Why"]["properties"]["reasons"]["items"]["anyOf"]
    assert [each["$ref"].rpartition("/")[2] for each in told] == [kind.__name__ for kind in REASONS]


def test_json_has_the_names_of_the_api(capsys: pytest.CaptureFixture[str]) -> None:
    told = {
        "name": "c", "description": "", "dags": [], "changed_at": NOW, "changed_by": "me", "problem": None,
        "source": "database", "conn_type": "http", "uri": "http://h", "login": None, "host": "h", "port": None, "schema": "s",
    }  # fmt: skip
    print_json({"connections": [read(StoredConnection, told)], "at": datetime(2026, 1, 1, tzinfo=UTC)})
    assert json.loads(capsys.readouterr().out) == {"connections": [told], "at": NOW}


def test_the_client_is_imported_without_the_records() -> None:
    """A command pays for the records that it names, not for all that the client knows."""
    code = "import sys, evenflow.client.rest; print(*sorted(m for m in sys.modules if m.startswith('evenflow.contracts.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == ["evenflow.contracts.rest"]


ROUTES = {name: route for name, route in vars(RestClient).items() if isinstance(route, Route)}
SERVED = {
    (method, each.path.removeprefix(PREFIX).replace(":path}", "}")): each
    for each in described_rest().routes
    if isinstance(each, APIRoute) and each.path.startswith(PREFIX)
    for method in each.methods
}


@pytest.mark.parametrize("name", ROUTES)
def test_the_client_asks_what_the_api_takes(name: str) -> None:
    """The same records on both sides: the fields of a request are the arguments of the client's method and of OpenAPI."""
    route = ROUTES[name]
    served = SERVED[route.method, route.path]
    taken = [*served.dependant.body_params, *served.dependant.query_params]
    request = route.request()
    assert [each.field_info.annotation for each in taken] == ([] if request is Nothing else [request])
    if route.answer() is not LogText:
        assert served.response_model == route.answer()
    for field in request.model_fields:  # a name of the path would stand in its way
        assert f"{{{field}}}" not in route.path


def test_the_client_knows_every_route_of_operators() -> None:
    of_browsers = {
        ("POST", "/session"),
        ("GET", "/session"),
        ("PUT", "/session/password"),
        ("GET", "/live"),
        ("GET", "/capacity/live"),
        *(("GET", f"/identity{way}") for way in ("", "/login", "/callback", "/logout")),
        ("GET", "/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/logs/file"),
        ("GET", "/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/spark-ui/{map_index}/{path}"),
    }
    of_collectors = {("GET", "/events/export")}  # lines without end
    of_readers = {("GET", "/problems/{code}")}  # who follow the type of a refusal
    of_followers = {("GET", "/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/logs/live")}  # follow_log
    others = of_browsers | of_collectors | of_readers | of_followers
    assert SERVED.keys() - {(route.method, route.path) for route in ROUTES.values()} == others
