"""Sensors, as they run in a process: what they find, when they give up, and what a failure inside them means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from evenflow import (
    DAG,
    BashSensor,
    DateTimeSensor,
    DayOfWeekSensor,
    FileSensor,
    PokeReturnValue,
    PythonSensor,
    SensorTimeout,
    TaskFailedForGood,
    TaskRescheduled,
    TimeDeltaSensor,
    TimeSensor,
    task,
)
from evenflow.core.states import TaskState
from evenflow.errors import BadSetting


def answers(*values: Any) -> Callable[[], Any]:
    """A function that gives these, one after the other; an exception is raised."""
    left: Iterator[Any] = iter(values)

    def give() -> Any:
        value = next(left)
        if isinstance(value, Exception):
            raise value
        return value

    return give


def end_of(function: Callable[[], Any], **options: Any) -> Any:
    with DAG("d") as dag:
        PythonSensor(task_id="s", python_callable=function, **{"poke_interval": 0, **options})
    return dag.test(print_logs=False).tasks[0]


@pytest.mark.parametrize("mode", ["poke", "reschedule"])
def test_looks_until_it_is_there(mode: str) -> None:
    end = end_of(answers(False, None, True), mode=mode)
    assert (end.state, end.tries) == (TaskState.SUCCESS, 1)


def test_result_of_a_sensor() -> None:
    with DAG("d") as dag:

        @task.sensor(poke_interval=0, mode="reschedule")
        def found() -> PokeReturnValue:
            return PokeReturnValue(is_done=True, xcom_value=["a.csv"])

        found()
    assert dag.test(print_logs=False).result("found") == ["a.csv"]


@pytest.mark.parametrize("mode", ["poke", "reschedule"])
def test_timeout_fails_for_good(mode: str) -> None:
    end = end_of(lambda: False, mode=mode, timeout=0, retries=3)
    assert (end.state, end.tries) == (TaskState.FAILED, 1)
    assert "its timeout is 0 s" in end.reason


@pytest.mark.parametrize(
    ("raised", "options", "state"),
    [
        (None, {"timeout": 0, "soft_fail": True}, TaskState.SKIPPED),
        (None, {"timeout": 0, "never_fail": True}, TaskState.FAILED),
        (TaskFailedForGood("no"), {}, TaskState.FAILED),
        (TaskFailedForGood("no"), {"soft_fail": True}, TaskState.SKIPPED),
        (ValueError("no"), {}, TaskState.FAILED),
        (ValueError("no"), {"soft_fail": True}, TaskState.FAILED),
        (ValueError("no"), {"never_fail": True}, TaskState.SKIPPED),
        (ValueError("no"), {"silent_fail": True}, TaskState.SUCCESS),
    ],
)
def test_failures(raised: Exception | None, options: dict[str, Any], state: TaskState) -> None:
    """As in Airflow: soft_fail is for timeouts and failures for good, never_fail for what poke raises, silent_fail goes on."""
    assert end_of(answers(raised or False, True), **options).state is state


def test_exception_in_poke_uses_up_a_try() -> None:
    end = end_of(answers(ValueError("no"), True), retries=1)
    assert (end.state, end.tries) == (TaskState.SUCCESS, 2)


def test_pause() -> None:
    with DAG("d"):
        sensor = PythonSensor(
            task_id="s", python_callable=bool, poke_interval=10, timeout=100, exponential_backoff=True, max_wait=60
        )
    pauses = []
    for sensor.waited_s in (0.0, 10.0, 30.0, 70.0, 95.0):
        pauses.append(sensor._pause())
    assert pauses == [10, 20, 40, 30, 5]


def test_settings_are_checked() -> None:
    with DAG("d"):
        for wrong in ({"mode": "deferred"}, {"poke_interval": -1}, {"timeout": "1h"}, {"soft_fail": True, "never_fail": True}):
            with pytest.raises(BadSetting):
                PythonSensor(task_id="s", python_callable=bool, **wrong)


def test_of_time() -> None:
    past, future = datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC) + timedelta(hours=1)
    with DAG("d") as dag:
        DateTimeSensor(task_id="past", target_time=past, timeout=0)
        DateTimeSensor(task_id="future", target_time=future.isoformat(), timeout=0)
        TimeDeltaSensor(task_id="after", delta=timedelta(0), timeout=0)
        TimeDeltaSensor(task_id="later", delta=timedelta(hours=1), timeout=0)
        TimeSensor(task_id="midnight", target_time=time(0, 0), timeout=0)
        DayOfWeekSensor(task_id="any", week_day=["Monday", 2, 3, 4, 5, 6, "sunday"], timeout=0)
    states = dag.test(print_logs=False).states
    assert {name for name, state in states.items() if state is TaskState.SUCCESS} == {"past", "after", "midnight", "any"}
    with DAG("e"), pytest.raises(BadSetting, match="no day of the week"):
        DayOfWeekSensor(task_id="never", week_day=8)


def test_of_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "in" / "a.csv").touch()
    with DAG("d") as dag:
        for name, path in {"file": "in/a.csv", "pattern": "in/*.csv", "folder": "in", "none": "in/*.txt", "empty": "empty"}.items():
            FileSensor(task_id=name, filepath=tmp_path / path, timeout=0, soft_fail=True)
    states = dag.test(print_logs=False).states
    assert {name for name, state in states.items() if state is TaskState.SUCCESS} == {"file", "pattern", "folder"}


def test_of_commands() -> None:
    with DAG("d") as dag:
        BashSensor(task_id="there", bash_command="true", timeout=0)
        BashSensor(task_id="not_yet", bash_command="exit 3", timeout=0, soft_fail=True)
        BashSensor(task_id="wrong", bash_command="exit 3", retry_exit_code=4)
        BashSensor(task_id="soon", bash_command="exit 4", retry_exit_code=4, timeout=0, soft_fail=True)
    states = dag.test(print_logs=False).states
    assert {name: str(state) for name, state in states.items()} == {
        "there": "success",
        "not_yet": "skipped",
        "wrong": "failed",
        "soon": "skipped",
    }


def test_delay_of_a_reschedule() -> None:
    assert TaskRescheduled(timedelta(minutes=1)).delay_s == 60
    assert TaskRescheduled(2).delay_s == 2
    assert TaskRescheduled(datetime.now(UTC) - timedelta(days=1)).delay_s == 0
    assert issubclass(SensorTimeout, TaskFailedForGood)
