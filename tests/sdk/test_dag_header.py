"""What a DAG says about itself: options, schedule, params, ids."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from evenflow import (
    DAG,
    CronDataIntervalTimetable,
    CronTriggerTimetable,
    DeltaDataIntervalTimetable,
    EmptyOperator,
    EventsTimetable,
    MultipleCronTriggerTimetable,
    Param,
    dag,
)
from evenflow.core.model import DagSpec, Schedule
from evenflow.core.model import RunParamSpec as ParamSpec
from evenflow.errors import BadId, BadSchedule, BadSetting

BERLIN = ZoneInfo("Europe/Berlin")


def test_everything_that_is_said_is_in_the_spec() -> None:
    spec = DAG(
        "sales.daily",
        schedule="0 6 * * MON-FRI",
        start_date=datetime(2026, 1, 1, tzinfo=BERLIN),
        end_date=datetime(2026, 12, 31),
        catchup=True,
        params={"n": Param(3, type="integer", description="how many"), "plain": [1]},
        tags=["b", "a", "b"],
        max_active_runs=2,
        max_active_tasks=None,
        description="Sales",
        doc_md="# Sales",
        owner="us",
        is_paused_upon_creation=True,
    ).to_spec()
    assert spec == DagSpec(
        dag_id="sales.daily",
        tasks=(),
        params={
            "n": ParamSpec(default=3, schema={"type": "integer"}, description="how many"),
            "plain": ParamSpec(default=[1]),
        },
        schedule=Schedule(kind="cron", cron="0 6 * * MON-FRI", timezone="Europe/Berlin", trigger=True),
        start_date="2026-01-01T00:00:00+01:00",
        end_date="2026-12-31T00:00:00+01:00",
        catchup=True,
        max_active_runs=2,
        max_active_tasks=None,
        tags=("a", "b"),
        owner="us",
        description="Sales",
        doc="# Sales",
        is_paused_upon_creation=True,
    )
    assert DagSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize("said", [True, False, None])
def test_how_a_dag_begins_is_kept_as_said(said: bool | None) -> None:
    """Unlike nothing, false outweighs the setting dags_are_paused_at_creation."""
    spec = DAG("d", is_paused_upon_creation=said).to_spec()
    assert DagSpec.from_json(spec.to_json()).is_paused_upon_creation is said


def test_nothing_said_is_a_manual_dag_with_airflows_defaults() -> None:
    spec = DAG("d").to_spec()
    assert spec == DagSpec(dag_id="d", tasks=())
    assert (spec.max_active_runs, spec.max_active_tasks, spec.catchup, spec.schedule.kind) == (16, 16, False, "manual")


def test_the_owner_may_stand_in_default_args() -> None:
    assert DAG("d", default_args={"owner": "us", "retries": 2}).to_spec().owner == "us"


@pytest.mark.parametrize(
    ("start", "timezone_name"), [(None, "UTC"), (datetime(2026, 1, 1), "UTC"), (datetime(2026, 1, 1, tzinfo=UTC), "UTC")]
)
def test_without_a_named_zone_schedules_are_in_utc(start: datetime | None, timezone_name: str) -> None:
    assert DAG("d", schedule="@daily", start_date=start).to_spec().schedule.timezone == timezone_name


@pytest.mark.parametrize(
    ("options", "error", "part"),
    [
        ({"shedule": "@daily"}, BadSetting, "DAG 'd': there is no option 'shedule'. Did you mean 'schedule'?"),
        ({"schedule": "61 * * * *"}, BadSchedule, "DAG 'd': '61 * * * *' is not a schedule: the minute 61"),
        (
            {"schedule": 3600},
            BadSetting,
            "DAG 'd': schedule must be a cron expression, a preset such as '@daily', a timedelta, a timetable, assets, or None",
        ),
        (
            {"schedule": "@daily", "start_date": datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2)))},
            BadSetting,
            "ZoneInfo('Europe/Berlin')",
        ),
        ({"start_date": "2026-01-01"}, BadSetting, "DAG 'd': start_date must be a datetime"),
        ({"start_date": datetime(2026, 1, 2), "end_date": datetime(2026, 1, 1)}, BadSetting, "is before start_date"),
        ({"schedule": "@daily", "catchup": True}, BadSetting, "catchup=True needs a start_date"),
        ({"max_active_runs": 0}, BadSetting, "max_active_runs must be an integer of at least 1, or None, not 0."),
        ({"max_active_tasks": True}, BadSetting, "max_active_tasks must be an integer"),
        ({"tags": "a"}, BadSetting, "tags must be a list of at most 1,000 items, each a string of 1 to 250 characters, not 'a'."),
        ({"tags": [1]}, BadSetting, "each a string of 1 to 250 characters, not [1]."),
        ({"catchup": "yes"}, BadSetting, "catchup must be True or False"),
        (
            {"default_args": {"retrys": 1}},
            BadSetting,
            "DAG 'd', default_args: there is no setting 'retrys'. Did you mean 'retries'?",
        ),
        ({"params": {"n": Param(0, minimum=1)}}, BadSetting, "DAG 'd', parameter 'n': the default must be at least 1, not 0."),
        (
            {"params": {"n": Param("x", format="date")}},
            BadSetting,
            "parameter 'n': the default must be a date, which \"x\" is not.",
        ),
        ({"params": {"n": datetime(2026, 1, 1)}}, BadSetting, "is no JSON value"),
        ({"params": {"n": float("nan")}}, BadSetting, "is no JSON value"),
    ],
)
def test_a_wrong_option_is_named_with_what_it_must_be(options: dict[str, Any], error: type[Exception], part: str) -> None:
    with pytest.raises(error) as raised:
        DAG("d", **options)
    assert part in str(raised.value)
    assert str(raised.value).startswith("DAG 'd'")


@pytest.mark.parametrize(
    ("dag_id", "part"),
    [
        ("", "at least one"),
        ("a b", "Try 'a_b'."),
        ("a/b", "letters, digits, '_', '-' and '.'"),
        ("x" * 251, "has 251 characters; at most 250 are allowed"),
        (7, "must be a string, not 7"),
    ],
)
def test_ids_are_as_in_airflow(dag_id: Any, part: str) -> None:
    with pytest.raises(BadId) as raised:
        DAG(dag_id)
    assert part in str(raised.value)


def test_letters_of_every_language_are_letters() -> None:
    assert DAG("größe.λ-1").dag_id == "größe.λ-1"


def test_the_decorated_function_names_the_dag_and_its_arguments_are_params() -> None:
    @dag(tags=["x"])
    def sales(country: str, limit: int = 10) -> None:
        """Sales of a country."""
        EmptyOperator(task_id="t")

    made = sales()
    spec = made.to_spec()
    assert (spec.dag_id, spec.doc, spec.tags) == ("sales", "Sales of a country.", ("x",))
    assert spec.params == {"country": ParamSpec(required=True), "limit": ParamSpec(default=10)}
    assert sales("de").to_spec().params["country"] == ParamSpec(default="de")
    assert [task.task_id for task in spec.tasks] == ["t"]


def test_the_decorator_takes_an_id_or_nothing() -> None:
    @dag
    def plain() -> None: ...

    @dag("named")
    def one() -> None: ...

    @dag(dag_id="named_too")
    def two() -> None: ...

    assert [made.dag_id for made in (plain(), one(), two())] == ["plain", "named", "named_too"]


def kind(schedule: Any, **options: Any) -> Schedule:
    return DAG("d", schedule=schedule, **options).to_spec().schedule


def test_every_kind_of_schedule_is_data() -> None:
    start = datetime(2026, 1, 1, tzinfo=BERLIN)
    assert kind(timedelta(hours=2)) == Schedule(kind="delta", every_s=7200.0, trigger=True)
    assert kind(DeltaDataIntervalTimetable(timedelta(hours=2))) == Schedule(kind="delta", every_s=7200.0)
    assert kind(CronDataIntervalTimetable("@daily", "Europe/Berlin")) == Schedule(
        kind="cron", cron="@daily", timezone="Europe/Berlin"
    )
    assert kind(CronTriggerTimetable("@daily", interval=timedelta(days=1))) == Schedule(
        kind="cron", cron="@daily", trigger=True, window_s=86400.0
    )
    assert kind(MultipleCronTriggerTimetable("@daily", "@weekly", timezone=BERLIN)) == Schedule(
        kind="cron", cron="@daily", also=("@weekly",), timezone="Europe/Berlin", trigger=True
    )
    dates = [datetime(2026, 2, 1), datetime(2026, 1, 1), datetime(2026, 1, 1)]
    assert kind(EventsTimetable(dates), start_date=start).dates == ("2025-12-31T23:00:00+00:00", "2026-01-31T23:00:00+00:00")
    assert kind("@once") == Schedule(kind="once")
    spec = DAG("d", schedule=MultipleCronTriggerTimetable("@daily", "@weekly")).to_spec()
    assert DagSpec.from_json(spec.to_json()) == spec


def test_continuous_runs_come_one_at_a_time() -> None:
    assert DAG("d", schedule="@continuous").to_spec().max_active_runs == 1
    with pytest.raises(BadSetting, match="one run follows another"):
        DAG("d", schedule="@continuous", max_active_runs=2)


def test_a_scheduled_run_has_nobody_to_ask() -> None:
    with pytest.raises(BadSetting, match="it has a schedule, and its parameter 'day' no default"):
        DAG("d", schedule="@daily", params={"day": Param(type="string")})


def test_the_past_and_timeouts_are_data() -> None:
    with DAG("d", dagrun_timeout=timedelta(hours=2), max_consecutive_failed_dag_runs=3) as dag:
        EmptyOperator(task_id="a", wait_for_downstream=True)
        EmptyOperator(task_id="b", depends_on_past=True)
    spec = dag.to_spec()
    assert (spec.dagrun_timeout, spec.max_consecutive_failed_dag_runs) == (7200.0, 3)
    assert [(t.depends_on_past, t.wait_for_downstream) for t in spec.tasks] == [(True, True), (True, False)]
    with pytest.raises(BadSetting, match="dagrun_timeout must be a timedelta or a number of seconds above 0"):
        DAG("d", dagrun_timeout=timedelta(0))


def test_default_args_of_airflow_are_taken_over() -> None:
    """What starts nearly every file of Airflow: nothing of it is refused, and the dates count for the DAG."""
    defaults = {
        "owner": "airflow",
        "depends_on_past": False,
        "start_date": datetime(2026, 1, 1, tzinfo=UTC),
        "email": ["ops@example.com"],
        "email_on_failure": False,
        "email_on_retry": False,
        "retries": 1,
        "retry_delay": timedelta(minutes=5),
    }
    with DAG("d", default_args=defaults, auto_register=True) as dag:  # type: ignore[call-arg]
        EmptyOperator(task_id="a", do_xcom_push=True, multiple_outputs=False)  # type: ignore[call-arg]
    spec = dag.to_spec()
    assert (spec.owner, spec.start_date, spec.tasks[0].retries) == ("airflow", "2026-01-01T00:00:00+00:00", 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"default_args": {"email_on_failure": True}}, r"default_args: Evenflow has no email_on_failure .*EmailNotifier"),
        ({"default_args": {"start_date": "2026-01-01"}}, "start_date must be a datetime"),
        ({"schedule_interval": "@daily"}, "DAG 'd': Evenflow has no schedule_interval as Airflow has. Say schedule=."),
        ({"fail_stop": True}, "Say fail_fast="),
        ({"auto_register": False}, "Evenflow has no auto_register"),
        ({"dag_display_name": " "}, "dag_display_name must be a string of 1 to 250 printable characters"),
        ({"owner_links": {"ops": "javascript:alert(1)"}}, "owner_links must be a dict from owners to links"),
    ],
)
def test_what_is_missed_of_airflow_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSetting, match=message):
        DAG("d", **options)


def test_names_for_people() -> None:
    with DAG("d", dag_display_name="Daily news", owner_links={"ops": "mailto:ops@example.com"}) as dag:
        EmptyOperator(task_id="a", task_display_name="Lies das Blatt")
    spec = DagSpec.from_json(dag.to_spec().to_json())
    assert (spec.display_name, spec.tasks[0].display_name) == ("Daily news", "Lies das Blatt")
    assert spec.owner_links == {"ops": "mailto:ops@example.com"}
