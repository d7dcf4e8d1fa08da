"""What is imported under Airflow's names works, or says what to write instead (R-CS10)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import evenflow
from evenflow import DAG, DayOfWeekSensor, EmptyOperator, Label, Param, State, TaskInstanceState, WeekDay, chain, task, timezone
from evenflow.sdk.airflow_names import CURES, MISSING_DECORATORS

REFUSED = (
    *(
        "AssetAccessControl",
        "PartitionMapper",
        "DirectoryFileDeleteTrigger",
        "FileDeleteTrigger",
        "conf",
        "AirflowPlugin",
        "hookimpl",
    ),
    *("HITLOperator", "NEVER_EXPIRE", "XCom", "DagRun", "DagBag", "trigger_dag", "DagNotFound", "KubernetesPodOperator"),
    *("PostgresHook", "S3Hook", "HttpOperator", "SQLExecuteQueryOperator", "SlackWebhookHook", "SSHOperator", "DockerOperator"),
    *("SparkSubmitOperator", "Metadata", "ObjectStoragePath", "ExternalTaskMarker", "AssetWatcher"),
)


@pytest.mark.parametrize("name", REFUSED)
def test_a_missing_name_says_what_to_write(name: str) -> None:
    with pytest.raises(ImportError, match=f"^Evenflow has no {name} as Airflow has. [A-Z].*\\.$"):
        exec(f"from evenflow import {name}")


def test_every_cure_is_a_sentence() -> None:
    for name, cure in {**CURES, **MISSING_DECORATORS}.items():
        assert cure[0].isupper(), name
        assert cure.endswith("."), name


def test_any_other_name_is_missing_as_usual() -> None:
    assert not hasattr(evenflow, "Lable")
    with pytest.raises(ImportError, match="cannot import name 'Lable'"):
        from evenflow import Lable  # type: ignore[attr-defined]  # noqa: F401


def test_what_is_there_is_not_called_missing() -> None:
    assert not CURES.keys() & set(evenflow.__all__)


@pytest.mark.parametrize("name", ["docker", "kubernetes", "pyspark", "sql"])
def test_a_missing_decorator_says_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"^There is no @task.{name}\. [A-Z].*\.$"):
        getattr(task, name)


def test_an_unknown_decorator_names_those_that_there_are() -> None:
    with pytest.raises(AttributeError, match=r"Did you mean @task.short_circuit\?"):
        task.shortcircuit  # type: ignore[attr-defined]  # noqa: B018


def test_task_python_is_task(dag: DAG) -> None:
    @task.python
    def one() -> int:
        return 1

    @task.python(task_id="two", retries=2)
    def other(x: int) -> int:
        return x + 1

    other(one())
    assert dag.get_task("two").retries == 2  # type: ignore[attr-defined]
    assert dag.test(print_logs=False).result("two") == 2


def test_labels_connect_what_they_stand_between(dag: DAG) -> None:
    a, b, c, d, e, f = (EmptyOperator(task_id=each) for each in "abcdef")
    a >> Label("one") >> [b, c]
    [b, c] >> Label("two") >> d
    e << Label("three") << d
    chain(e, Label("four"), f)
    a.set_downstream(f, Label("five"))
    upstream = {each.task_id: sorted(dag.task_ids[index] for index in each.upstream) for each in dag.to_spec().tasks}
    assert upstream == {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["d"], "f": ["a", "e"]}


def test_a_description_of_a_param_may_be_positional() -> None:
    assert Param(1, "how many", type="integer").to_spec("d") == Param(1, description="how many", type="integer").to_spec("d")


def test_days_of_the_week(dag: DAG) -> None:
    days: Any = {WeekDay.MONDAY, "Sunday"}
    assert DayOfWeekSensor(task_id="s", week_day=days).week_days == {1, 7}
    assert DayOfWeekSensor(task_id="t", week_day=WeekDay.TUESDAY).week_days == {2}


def test_states_and_times() -> None:
    assert State.SUCCESS == TaskInstanceState.SUCCESS == "success"
    assert State.UPSTREAM_FAILED in State.finished
    assert State.RUNNING in State.unfinished
    assert timezone.datetime(2026, 1, 2) == datetime(2026, 1, 2, tzinfo=UTC)
    assert timezone.parse("2026-01-02T03:04:05+01:00") == datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)
    assert timezone.utcnow() - timezone.make_aware(timezone.make_naive(timezone.utcnow())) < timedelta(minutes=1)
    assert timezone.is_naive(datetime(2026, 1, 1))
