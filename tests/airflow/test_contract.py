"""R-AF1: Airflow's Task Execution API, asked by the SDK's own client. What it answers the client's own models read, which refuse a
field that they do not know.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.conftest import run_inside

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("airflow")]


@pytest.fixture(scope="module")
def told(airflow_python: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run_inside(airflow_python, "contract.py").splitlines()[-1])
    return found


def test_a_try_begins_with_what_the_sdk_has_to_know(told: dict[str, Any]) -> None:
    assert told["run"]["should_retry"] is True
    assert told["run"]["max_tries"] == 2
    assert told["run"]["dag_run"]["conf"] == {"p": 1}
    assert told["run"]["dag_run"]["run_type"] == "manual"


def test_xcoms_of_one_task_and_of_all_its_instances(told: dict[str, Any]) -> None:
    assert (told["one"], told["none"]) == (7, None)
    assert (told["count"], told["item"], told["slice"]) == (3, 2, [1, 3])
    assert told["beyond"] == "ErrorType.XCOM_NOT_FOUND"
    assert told["unmapped slice"] == [7]
    assert told["pushed"] == {"k": {"a": 1}}
    assert told["other dag"] == 403


def test_what_is_mapped_over_is_a_list_to_the_scheduler(told: dict[str, Any]) -> None:
    assert told["result"] == [1], "the SDK's tuple"
    assert told["lengths"] == [None, 3], "a backend of XComs may put a list elsewhere"


def test_connections_and_variables_are_those_of_the_vault(told: dict[str, Any]) -> None:
    connection = told["connection"]
    assert (connection["conn_type"], connection["login"], connection["schema"]) == ("postgres", "me", "db")
    assert json.loads(connection["extra"]) == {"sslmode": "require"}
    assert (told["no connection"], told["no variable"]) == ("ErrorType.CONNECTION_NOT_FOUND", "ErrorType.VARIABLE_NOT_FOUND")
    assert told["forbidden"] == "ErrorType.PERMISSION_DENIED", "no other place is to be looked in"
    assert told["variable"] == "42"


def test_runs_of_other_dags(told: dict[str, Any]) -> None:
    assert (told["tasks"], told["runs"], told["run state"]) == (1, 1, "failed")
    assert told["states"] == {"r1": {"a": "success"}, "r2": {"a_0": "failed", "a_1": "failed"}}
    assert (told["triggered"], told["exists"]) == (True, "ErrorType.DAGRUN_ALREADY_EXISTS")


def test_what_becomes_of_a_try(told: dict[str, Any]) -> None:
    assert told["success"] == ["success", [3]], "with what its branch decided against"
    assert told["retry"] == ["failed", 7.0], "tries are left, and Evenflow counts them"
    assert told["fail"] == "failed_for_good", "tries are left, and it wants none"
    assert told["reschedule"] is True
    assert told["defer"] == [{"classpath": "a.B", "arguments": {"x": 1}}, "go", {"y": 2}, 9.0]


def test_a_try_goes_on_with_its_event_or_hears_that_there_is_none(told: dict[str, Any]) -> None:
    assert told["resumed"] == ["go", {"y": 2, "event": {"z": 3}}, True]
    assert told["late"] == ["__fail__", {"error": "Trigger timeout"}]


def test_what_has_no_counterpart_is_refused_and_not_asked_again(told: dict[str, Any]) -> None:
    """The client repeats what fails with 500 and above, for minutes."""
    assert (told["keys"], told["all runs"], told["other date"]) == (422, 422, 400)
    assert (told["other try"], told["no request"]) == (403, 422)


def test_each_date_gets_its_own_fields(told: dict[str, Any]) -> None:
    """SDK 1.3 and 1.2: what came after its date a client refuses. Airflow's own models of that date have read each answer."""
    assert "partition_key" in told["event of 2026-06-30"]
    assert told["event of 2026-04-06"] == [name for name in told["event of 2026-06-30"] if name != "partition_key"]


def test_what_a_task_keeps_for_its_next_try(told: dict[str, Any]) -> None:
    assert (told["nothing kept"], told["kept"]) == ("ErrorType.TASK_STORE_NOT_FOUND", {"job": 7})
    assert told["over"] == "ErrorType.TASK_STORE_NOT_FOUND", "written over, and for a time that has passed"
    assert told["cleared"] == "ErrorType.TASK_STORE_NOT_FOUND"


def test_what_is_asked_is_a_question_of_evenflows(told: dict[str, Any]) -> None:
    assert (told["waits for nothing"], told["too many"]) == (422, 422)
    assert told["posted"] == [["a", "b"], ["b"], True]
    assert told["question"] == [["a", "b"], ["b"], True, ["grace"]]
    assert told["waits"] == ["go", {}, 9.0, "evenflow_people"]


def test_answers_come_back_as_the_operator_reads_them(told: dict[str, Any]) -> None:
    assert told["answered"] == [["a"], {"n": 8}, {"id": "grace", "name": "grace"}, False]
    assert told["answered at"] == "2026-03-01 00:00:00+00:00"
    assert (told["unanswered"], told["unanswered at"]) == ([["b"], {"n": 7}, None, True], True)
    assert told["no answer"] == "timeout"


def test_what_tasks_keep_with_an_asset(told: dict[str, Any]) -> None:
    nothing = "ErrorType.ASSET_STORE_NOT_FOUND"
    assert (told["of no asset"], told["of assets"]) == (nothing, [{"n": 2}, None])
    assert (told["deleted"], told["cleared asset"]) == ([nothing, 1], [nothing, None]), "of one asset alone"


def test_events_of_inlets_and_the_assets_that_they_name(told: dict[str, Any]) -> None:
    assert (told["asset"], told["assets of an alias"], told["no asset"]) == ("s3://o", ["orders"], "ErrorType.ASSET_NOT_FOUND")
    assert told["events"] == [["s3://o", {"n": 1}, "t"]]
