"""What is assigned after construction counts, or is refused with what to write instead (R-CS10)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from evenflow import DAG, BaseOperator, BashOperator, Context, EmptyOperator, TaskGroup, TriggerRule, dag, task
from evenflow.errors import BadArgument, BadSetting
from evenflow.sdk.options import DAG_OPTION_NAMES, OWN_OPTIONS


class Probe(BaseOperator):
    template_fields = ("what",)

    def __init__(self, *, what: Any = "", **options: Any) -> None:
        super().__init__(**options)
        self.what = what

    def execute(self, context: Context) -> str:
        self.seen = self.what  # a try keeps what it likes
        return f"{self.seen} {self.retries}"


def spec_of(made: DAG, task_id: str) -> Any:
    return next(each for each in made.to_spec().tasks if each.task_id == task_id)


def test_a_setting_of_a_task_counts(dag: DAG) -> None:
    """R-CS10"""
    x = Probe(task_id="x")
    x.trigger_rule, x.retries, x.pool, x.doc_md = "none_failed", 3, "p", "*why*"  # type: ignore[attr-defined]
    x.execution_timeout = timedelta(minutes=2)  # type: ignore[attr-defined]
    told = spec_of(dag, "x")
    assert (told.trigger_rule, told.retries, told.pool, told.doc, told.execution_timeout) == (
        TriggerRule.NONE_FAILED,
        3,
        "p",
        "*why*",
        120.0,
    )
    assert (x.retries, x.doc_md) == (3, "*why*")  # type: ignore[attr-defined]


def test_every_option_can_be_read_and_assigned_back(dag: DAG) -> None:
    x = Probe(task_id="x")
    before = x.task_settings
    for name in OWN_OPTIONS - {"retry_policy", "task_display_name"}:  # kept as rules; there is none
        setattr(x, name, getattr(x, name))
    assert x.task_settings == before


def test_a_value_that_is_not_allowed_is_refused_at_the_assignment(dag: DAG) -> None:
    with pytest.raises(BadSetting, match=r"^DAG 'd', task 'x': retries must be an integer from 0 to .*, not 'often'\.$"):
        Probe(task_id="x").retries = "often"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "trigger_rul",
            "all_done",
            "DAG 'd', task 'x': nothing is known by the name 'trigger_rul', .* Did you mean 'trigger_rule'?",
        ),
        ("blah", 3, "DAG 'd', task 'x': nothing is known by the name 'blah', so assigning it would change nothing. Leave it out."),
        ("sla", timedelta(1), "DAG 'd', task 'x': Evenflow has no sla as Airflow has. Say deadline="),
        ("task_id", "y", "DAG 'd', task 'x': task_id cannot be changed to 'y' any more. Say it where it is made."),
    ],
)
def test_what_would_change_nothing_is_refused(dag: DAG, name: str, value: Any, message: str) -> None:
    """R-CS10"""
    with pytest.raises(BadSetting, match=message):
        setattr(Probe(task_id="x"), name, value)


def test_what_airflow_draws_may_stay(dag: DAG) -> None:
    Probe(task_id="x").ui_color = "#fff"


def test_a_field_that_is_assigned_makes_the_task_wait(dag: DAG) -> None:
    first, then = Probe(task_id="first"), Probe(task_id="then")
    then.what = first.output
    assert then.upstream_task_ids == {"first"}
    outcome = dag.test(print_logs=False)
    outcome.raise_on_failure()
    assert outcome.result("then") == " 0 0"


def test_a_class_may_set_options_in_its_constructor(dag: DAG) -> None:
    class Patient(BaseOperator):
        def __init__(self, **options: Any) -> None:
            self.pool = "early"
            super().__init__(**options)
            self.retries = 7

        def execute(self, context: Context) -> None:
            self.whatever = 1

    Patient(task_id="x")
    assert (spec_of(dag, "x").pool, spec_of(dag, "x").retries) == ("early", 7)
    dag.test(print_logs=False).raise_on_failure()


def test_a_method_of_the_operator_may_keep_something_new(dag: DAG) -> None:
    class Steps(BaseOperator):
        def add(self, step: str) -> None:
            self.steps = [*getattr(self, "steps", []), step]

        def execute(self, context: Context) -> list[str]:
            return self.steps

    steps = Steps(task_id="x")
    steps.add("a")
    assert dag.test(print_logs=False).result("x") == ["a"]


def test_a_mapped_task(dag: DAG) -> None:
    mapped = BashOperator.partial(task_id="m").expand(bash_command=["true"])
    mapped.retries = 2  # type: ignore[attr-defined]
    assert spec_of(dag, "m").retries == 2
    with pytest.raises(BadSetting, match="'m': nothing is known by the name 'cwd'"):
        mapped.cwd = "/"  # type: ignore[attr-defined]


def test_the_result_of_a_task_and_its_function_say_where_it_belongs(dag: DAG) -> None:
    @task
    def f() -> None: ...

    with pytest.raises(BadSetting, match=r"f\(\) with @task: .* Say @task\(retries=...\), or f.override\(retries=...\)"):
        f.retries = 3  # type: ignore[attr-defined]
    result = f()
    with pytest.raises(BadSetting, match=r"<result of task 'f'>: .* say .operator.retries = ..., or @task"):
        result.retries = 3
    result.operator.retries = 3  # type: ignore[attr-defined]
    assert spec_of(dag, "f").retries == 3


def test_an_option_of_a_dag_counts(dag: DAG) -> None:
    """R-CS10"""
    dag.max_active_runs, dag.doc_md, dag.tags = 1, "what", ["b", "a"]  # type: ignore[attr-defined]
    dag.start_date = datetime(2026, 1, 1)  # type: ignore[attr-defined]
    spec = dag.to_spec()
    assert (spec.max_active_runs, spec.doc, spec.tags, spec.start_date) == (1, "what", ("a", "b"), "2026-01-01T00:00:00+00:00")
    assert (dag.doc_md, dag.max_active_runs) == ("what", 1)  # type: ignore[attr-defined]


def test_every_option_of_a_dag_can_be_read_and_assigned_back() -> None:
    made = DAG("d", schedule="@daily", params={"n": 1}, owner_links={"me": "https://me"}, template_searchpath="/a")
    before = made.to_spec()
    for name in DAG_OPTION_NAMES - {"dag_display_name"}:  # there is none
        setattr(made, name, getattr(made, name))
    assert made.to_spec() == before


def test_what_is_read_of_a_dag_cannot_be_changed_in_silence() -> None:
    made = DAG("d", params={"n": 1}, tags=["a"])
    with pytest.raises(TypeError):
        made.params["m"] = 2  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        made.tags.append("b")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("max_activ_runs", 1, "DAG 'd': nothing is known by the name 'max_activ_runs', .* Did you mean 'max_active_runs'?"),
        ("max_active_runs", "one", "DAG 'd': max_active_runs must be an integer of at least 1"),
        ("concurrency", 3, "DAG 'd': Evenflow has no concurrency as Airflow has. Say max_active_tasks="),
        ("dag_id", "e", "DAG 'd': dag_id cannot be changed to 'e' any more."),
    ],
)
def test_what_would_change_nothing_of_a_dag_is_refused(dag: DAG, name: str, value: Any, message: str) -> None:
    with pytest.raises(BadSetting, match=message):
        setattr(dag, name, value)
    assert dag.to_spec() == DAG("d").to_spec()


def test_default_args_come_before_the_tasks(dag: DAG) -> None:
    dag.default_args = {"retries": 2}
    EmptyOperator(task_id="a")
    assert spec_of(dag, "a").retries == 2
    with pytest.raises(BadSetting, match="It counts for tasks that are made after it"):
        dag.default_args = {"retries": 3}


def test_a_function_with_dag_is_none() -> None:
    @dag
    def etl() -> None: ...

    with pytest.raises(BadSetting, match=r"made = etl\(\); made.doc_md = ..."):
        etl.doc_md = "what"  # type: ignore[attr-defined]


def test_a_task_group(dag: DAG) -> None:
    with TaskGroup("g") as group:
        group.default_args = {"retries": 4}
        a = EmptyOperator(task_id="a")
        with TaskGroup("inner") as inner:
            b = EmptyOperator(task_id="b")
    group.tooltip = "what"
    assert (dag.to_spec().groups[0].tooltip, spec_of(dag, "g.a").retries) == ("what", 4)
    assert list(group) == [a, b]
    assert group.children == {"g.a": a, "g.inner": inner}
    for name, value in (("default_args", {}), ("group_id", "h")):
        with pytest.raises(BadSetting, match=f"DAG 'd', task group 'g': {name} cannot be changed"):
            setattr(group, name, value)
    with pytest.raises(BadSetting, match="Did you mean 'tooltip'"):
        group.tooltipp = "x"  # type: ignore[attr-defined]


def test_tasks_of_a_dag_as_airflow_names_them(dag: DAG) -> None:
    a = EmptyOperator(task_id="a")
    assert (dag.task_dict, dag.tasks, dag.task_ids) == ({"a": a}, [a], ["a"])
    with pytest.raises(BadArgument):
        dag.get_task("b")
