"""Waiting for runs and tasks of other DAGs, by asking the control plane."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.errors import ApiRefused, ApiUnavailable, BadArgument
from evenflow.triggers.external import ExternalTaskTrigger
from tests.triggers.firing import ControlPlane, event_of

DAY = "2026-03-01T00:00:00+00:00"


def stands(state: str, **tasks: dict[str, int]) -> dict[str, Any]:
    return {"runs": [{"run_id": "r", "logical_date": DAY, "state": state, "counts": tasks}], "missing": []}


NONE: dict[str, Any] = {"runs": [], "missing": []}


async def fired(*answers: Any, **arguments: Any) -> tuple[dict[str, Any], ControlPlane]:
    plane = ControlPlane(states=list(answers))
    where = {} if "run_ids" in arguments else {"logical_dates": [DAY]}
    return await event_of(ExternalTaskTrigger(**{"dag_id": "other", "poll_interval": 0.1, **where, **arguments}), plane), plane


async def test_a_run() -> None:
    event, plane = await fired(NONE, stands("running"), stands("success"))
    assert event == {"status": "success", "message": "The run of DAG 'other' is success."}
    question = {"dag_id": "other", "logical_dates": [DAY], "run_ids": [], "task_ids": [], "group_id": None}
    assert plane.asked == [("states", question)] * 3
    event, _ = await fired(stands("running"), stands("failed"))
    assert event == {"status": "failed", "message": "The run of DAG 'other' is failed."}
    event, _ = await fired(stands("failed"), failed_states=[], skipped_states=["failed"])
    assert event["status"] == "skipped"


async def test_a_run_by_its_name() -> None:
    event, plane = await fired(stands("queued"), stands("success"), run_ids=["manual__1"])
    assert event == {"status": "success", "message": "The run 'manual__1' of DAG 'other' is success."}
    assert plane.asked[0][1]["run_ids"] == ["manual__1"]


async def test_tasks() -> None:
    half, done = stands("running", a={"success": 1, "running": 1}), stands("running", a={"success": 2})
    event, plane = await fired(half, done, task_ids=["a"])
    assert (event["status"], len(plane.asked)) == ("success", 2)


async def test_an_api_that_is_away(capsys: pytest.CaptureFixture[str]) -> None:
    event, _ = await fired(ApiUnavailable("The API is away."), stands("success"))
    assert event["status"] == "success"
    assert "The API is away. Looking again for 600 s." in capsys.readouterr().out
    event, _ = await fired(ApiRefused(413, "Too many dates."))
    assert event == {"status": "failed", "message": "Too many dates."}


def test_arguments_are_checked() -> None:
    for wrong in ({}, {"logical_dates": [DAY], "run_ids": ["r"]}):
        with pytest.raises(BadArgument, match="logical_dates= or run_ids="):
            ExternalTaskTrigger(dag_id="other", **wrong)
