"""What history says of tries: each with its waits, its segments and its end (R-ST10)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from evenflow.core.history.tries import TaskMove, TaskTry, tries_of
from evenflow.core.states import TaskState

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
STATES = {
    "ready": "scheduled",
    "grant": "queued",
    "resume": "queued",
    "requeue": "queued",
    "start": "running",
    "defer": "deferred",
    "reschedule": "up_for_reschedule",
    "retry": "up_for_retry",
    "succeed": "success",
    "fail": "failed",
    "clear": "none",
}


def told(*moves: tuple[float, str, int] | tuple[float, str, int, dict[str, Any]]) -> list[TaskTry]:
    """Each of these moves is (second, event, number of the try, detail), and a transaction of its own."""
    numbers = count(1)
    return tries_of(
        [
            TaskMove(
                0,
                -1,
                BEGIN + timedelta(seconds=at),
                next(numbers),
                1,
                number,
                event,
                STATES[event],
                {**(detail[0] if detail else {}), "worker": "w1"},
                "t",
                "python",
            )
            for at, event, number, *detail in moves
        ],
        BEGIN + timedelta(seconds=1_000),
    )


def segments(one: TaskTry) -> list[tuple[str, float, float | None, str | None]]:
    """(state, seconds from the beginning, until, how it ended)."""
    return [
        (
            str(part.state),
            (part.began_at - BEGIN).total_seconds(),
            None if part.ended_at is None else (part.ended_at - BEGIN).total_seconds(),
            part.ended_by,
        )
        for part in one.segments
    ]


def test_a_try_waits_for_limits_and_a_worker_then_it_runs() -> None:
    (one,) = told((0, "ready", 0), (2, "grant", 1), (3, "start", 1), (9, "succeed", 1))
    assert segments(one) == [("scheduled", 0, 2, "grant"), ("queued", 2, 3, "start"), ("running", 3, 9, "succeed")]
    assert (one.try_number, one.state, one.ended_by) == (1, "success", "succeed")
    assert one.ended_at == BEGIN + timedelta(seconds=9)
    assert (one.ran_s, one.waited_s) == (6.0, 3.0)


def test_the_wait_for_the_next_try_is_of_that_one() -> None:
    first, second = told(
        (0, "grant", 1), (1, "start", 1), (2, "retry", 1, {"reason": "boom"}), (12, "ready", 1), (13, "grant", 2), (14, "start", 2)
    )
    assert (first.state, first.reason) == ("up_for_retry", "boom")
    assert segments(first) == [("queued", 0, 1, "start"), ("running", 1, 2, "retry")]
    assert segments(second) == [
        ("up_for_retry", 2, 12, "ready"),
        ("scheduled", 12, 13, "grant"),
        ("queued", 13, 14, "start"),
        ("running", 14, None, None),
    ]
    assert (second.state, second.ended_at) == ("running", None)


def test_what_goes_on_after_a_trigger_is_the_same_try() -> None:
    waits = {"trigger": "evenflow.triggers.Moment"}
    (one,) = told((0, "grant", 1), (1, "start", 1), (2, "defer", 1, waits), (50, "resume", 1), (51, "start", 1), (53, "succeed", 1))
    assert segments(one) == [
        ("queued", 0, 1, "start"),
        ("running", 1, 2, "defer"),
        ("deferred", 2, 50, "resume"),
        ("queued", 50, 51, "start"),
        ("running", 51, 53, "succeed"),
    ]
    assert [part.begun_by for part in one.segments if part.state == TaskState.RUNNING] == ["grant", "resume"]
    assert one.segments[2].trigger == "evenflow.triggers.Moment"


def test_a_try_that_was_lost_is_sent_again_and_says_why() -> None:
    (one,) = told(
        (0, "grant", 1), (1, "start", 1), (5, "requeue", 1, {"reason": "its worker w1 is lost"}), (6, "start", 1), (7, "succeed", 1)
    )
    assert segments(one) == [
        ("queued", 0, 1, "start"),
        ("running", 1, 5, "requeue"),
        ("queued", 5, 6, "start"),
        ("running", 6, 7, "succeed"),
    ]
    assert [part.reason for part in one.segments] == [None, "its worker w1 is lost", None, None]


def test_a_try_whose_start_was_not_told_has_its_running_time() -> None:
    (one,) = told((0, "grant", 1), (10, "succeed", 1, {"ran_s": 4.0}))
    assert segments(one) == [("queued", 0, 6, "start"), ("running", 6, 10, "succeed")]
    assert [part.worker for part in one.segments] == [None, "w1"]


def test_a_sensor_that_looks_again_is_one_try() -> None:
    looks = (0, "grant", 1), (1, "start", 1), (2, "reschedule", 1)
    (one,) = told(*looks, (62, "ready", 0), (62.5, "grant", 1), (63, "start", 1), (64, "succeed", 1))
    assert [part[0] for part in segments(one)] == [
        "queued", "running", "up_for_reschedule", "scheduled", "queued", "running",
    ]  # fmt: skip
    assert one.try_number == 1


def test_what_was_cleared_waits_for_its_upstreams_and_begins_a_new_try() -> None:
    first, second = told((0, "grant", 1), (1, "start", 1), (2, "fail", 1), (500, "clear", 1), (501, "grant", 2), (502, "start", 2))
    assert (first.try_number, first.state, second.try_number) == (1, "failed", 2)
    assert segments(second) == [("queued", 501, 502, "start"), ("running", 502, None, None)]


def test_a_try_that_is_yet_to_come_is_told_while_it_waits() -> None:
    (first,) = told((0, "ready", 0))
    assert (first.try_number, first.state, segments(first)) == (1, "scheduled", [("scheduled", 0, None, None)])
    *_, second = told((0, "grant", 1), (1, "start", 1), (2, "retry", 1))
    assert (second.try_number, second.state, segments(second)) == (2, "up_for_retry", [("up_for_retry", 2, None, None)])


def test_history_that_is_cut_begins_in_the_middle_of_a_try() -> None:
    (one,) = told((5, "start", 3), (6, "defer", 3, {"trigger": "x.Waits"}))
    assert (one.try_number, segments(one)) == (3, [("running", 5, 6, "defer"), ("deferred", 6, None, None)])
    assert told() == []
