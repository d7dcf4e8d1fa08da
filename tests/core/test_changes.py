"""What an operation changes, decided without a database (R-CS8)."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.core.flow.changes import (
    Change,
    LaneRange,
    LiveTry,
    RunSettled,
    RunWish,
    TryFate,
    changes,
    consequences,
    expansion_anew,
    fate_of_try,
    moving,
    of_virtual,
    parted,
    refusal,
    removal,
    run_after,
    wish_of_run,
)
from evenflow.core.flow.recount import RunCounts
from evenflow.core.graph import Graph
from evenflow.core.model import UNMAPPED, DagSpec, TaskSpec
from evenflow.core.operations import FAILURES, INTERRUPTED, Only, Operation, Target, keys_of
from evenflow.core.states import Ender, RunState, TaskEvent, TaskState, sources

A, B, CLEANS = range(3)  # b follows a
GRAPH = Graph.of(
    DagSpec(
        dag_id="d",
        tasks=(
            TaskSpec(task_id="a", operator="python"),
            TaskSpec(task_id="b", operator="python", upstream=(0,)),
            TaskSpec(task_id="cleans", operator="python", cleans_up=True),
        ),
    )
)
ALONE = UNMAPPED


def operation(event: TaskEvent, *tasks: str, only: Only | None = None) -> Operation:
    return Operation(event=event, actor="ada", tasks=tasks or None, only=only)


def named(found: list[Change]) -> list[tuple[list[int], set[TaskState]]]:
    return [([target.task_index for target in change.targets], set(change.move.states)) for change in found]


def test_a_clear_of_failures_includes_what_a_cancel_has_left_of_the_named_tasks() -> None:
    """R-CS8."""
    found = list(changes(GRAPH, operation(TaskEvent.CLEAR, "a", only=Only.FAILED), [(A, ALONE), (B, ALONE)]))
    assert named(found) == [([A], set(FAILURES)), ([A], {TaskState.SKIPPED})]
    assert not any(change.as_whole for change in found), "instances that did not fail stay"


def test_a_clear_of_all_is_one_change_as_a_whole() -> None:
    (change,) = changes(GRAPH, operation(TaskEvent.CLEAR), [])
    assert change.as_whole
    assert change.move.cleared
    assert [target.task_index for target in change.targets] == [A, B, CLEANS]


def test_what_failed_behind_a_marked_task_is_tried_again() -> None:
    """R-CS8."""
    found = list(consequences(GRAPH, operation(TaskEvent.MARK_SUCCESS, "a"), [(B, ALONE), (CLEANS, ALONE)]))
    assert named(found) == [([B], set(FAILURES)), ([B], {TaskState.SKIPPED})]
    assert {change.move.event for change in found} == {TaskEvent.CLEAR}


def test_a_mark_says_who_ended_an_instance_and_a_clear_does_not() -> None:
    marked, cleared = (
        moving(TaskEvent.MARK_FAILED, "ada", sources(TaskEvent.MARK_FAILED)),
        moving(TaskEvent.CLEAR, "ada", sources(TaskEvent.CLEAR)),
    )
    assert (marked.state, marked.reason, marked.ended_by) == (TaskState.FAILED, "marked failed by ada", Ender.MARK)
    assert (cleared.state, cleared.reason, cleared.ended_by) == (TaskState.NONE, None, None)


@pytest.mark.parametrize(
    ("row", "fate"),
    [
        ({}, TryFate.END),
        ({"worker_id": 1}, TryFate.KILL),
        ({"worker_id": 1, "purpose": "clean_up"}, TryFate.AWAIT),
        ({"purpose": "clean_up", "resumes": True}, TryFate.AWAIT),
        ({"resumes": True}, TryFate.END),
        ({"resumes": True, "task_index": CLEANS}, TryFate.CLEAN_UP),
        ({"resumes": True, "task_index": CLEANS, "worker_id": 1}, TryFate.KILL),
        ({"task_index": CLEANS}, TryFate.END),
    ],
)
def test_the_fate_of_a_try(row: dict[str, Any], fate: TryFate) -> None:
    live = {"task_index": A, "map_index": ALONE, "epoch": 1, "worker_id": None, "holds": [], "pool_slots": 1}
    assert fate_of_try(GRAPH, LiveTry(**{**live, "resumes": False, "purpose": None, **row})) is fate


def test_virtual_instances_that_are_to_run_anyway_are_not_cleared() -> None:
    spared = {TaskState.SCHEDULED, TaskState.REMOVED}
    assert not of_virtual(moving(TaskEvent.CLEAR, "ada", sources(TaskEvent.CLEAR))).states & spared
    assert TaskState.SCHEDULED in of_virtual(moving(TaskEvent.MARK_SUCCESS, "ada", sources(TaskEvent.MARK_SUCCESS))).states


def test_a_task_that_expands_anew_stands_for_its_removed_instances() -> None:
    assert expansion_anew("ada").states == {removal("ada").state}
    assert expansion_anew("ada").state is TaskState.NONE


def test_a_range_that_loses_one_in_its_middle_is_parted() -> None:
    """R-ST4."""
    lanes = [LaneRange(7, A, 0, 10), LaneRange(8, B, 0, 3), LaneRange(9, B, 5, 6)]
    changed, parts = parted(lanes, [(A, 4), (A, 9), (B, 5)])
    assert changed == [LaneRange(7, A, 0, 4), LaneRange(9, B, 6, 6)], "a lane without instances is left empty"
    assert parts == [LaneRange(7, A, 5, 9)]


@pytest.mark.parametrize(
    ("state", "counts", "after"),
    [
        (RunState.RUNNING, RunCounts(0, 1, False), RunSettled(RunState.RUNNING)),
        (RunState.SUCCESS, RunCounts(2, 1, False), RunSettled(RunState.QUEUED, revived=True)),
        (RunState.FAILED, RunCounts(1, 0, True), RunSettled(RunState.QUEUED, revived=True)),
        (RunState.SUCCESS, RunCounts(0, 0, False), RunSettled(RunState.SUCCESS, ended=True)),
        (RunState.FAILED, RunCounts(0, 0, False), RunSettled(RunState.SUCCESS, ended=True)),
        (RunState.SUCCESS, RunCounts(0, 1, False), RunSettled(RunState.FAILED, ended=True)),
        (RunState.FAILED, RunCounts(0, 0, True), RunSettled(RunState.FAILED, ended=True, reason=INTERRUPTED)),
    ],
)
def test_what_becomes_of_a_changed_run(state: RunState, counts: RunCounts, after: RunSettled) -> None:
    assert run_after(state, counts) == after


@pytest.mark.parametrize(
    ("state", "wanted", "begun", "wish"),
    [
        (RunState.SUCCESS, operation(TaskEvent.MARK_FAILED), True, RunWish.FAIL),
        (RunState.RUNNING, operation(TaskEvent.MARK_FAILED), False, RunWish.CANCEL),
        (RunState.FAILED, operation(TaskEvent.MARK_FAILED), False, RunWish.CANCEL),
        (RunState.RUNNING, operation(TaskEvent.MARK_FAILED, "a"), False, None),
        (RunState.FAILED, operation(TaskEvent.MARK_SUCCESS), False, RunWish.TAKE_BACK),
        (RunState.RUNNING, operation(TaskEvent.MARK_SUCCESS), False, None),
        (RunState.FAILED, operation(TaskEvent.MARK_SUCCESS, "a"), False, None),
        (RunState.FAILED, operation(TaskEvent.CLEAR), False, RunWish.BEGIN_ANEW),
        (RunState.FAILED, operation(TaskEvent.CLEAR, "a"), False, RunWish.BEGIN_ANEW),
        (RunState.FAILED, operation(TaskEvent.CLEAR), True, None),
        (RunState.FAILED, operation(TaskEvent.CLEAR, only=Only.RUNNING), False, None),
        (RunState.SUCCESS, operation(TaskEvent.CLEAR), False, None),
    ],
)
def test_what_an_operation_wants_of_a_run_itself(state: RunState, wanted: Operation, begun: bool, wish: RunWish | None) -> None:
    """R-CS8. Nothing, where it is about its tasks only."""
    assert wish_of_run(state, wanted, begun=begun) is wish


@pytest.mark.parametrize(
    ("state", "begun", "cancelled", "refused"),
    [
        (RunState.QUEUED, False, False, True),
        (RunState.QUEUED, True, False, False),
        (RunState.RUNNING, True, True, True),
        (RunState.RUNNING, True, False, False),
        (RunState.FAILED, True, True, False),
    ],
)
def test_when_an_operation_changes_nothing(state: RunState, begun: bool, cancelled: bool, refused: bool) -> None:
    assert (refusal(state, begun=begun, cancelled=cancelled) is not None) is refused


def test_keys_of_named_instances_are_in_order_and_once_each() -> None:
    assert keys_of([Target(A, None), Target(B, (3, 1, 3))]) == [(A, None), (B, 1), (B, 3)]
