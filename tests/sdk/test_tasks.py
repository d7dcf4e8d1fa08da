"""Tasks: settings, ids, limits, and what an author can get wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from evenflow import (
    DAG,
    BaseOperator,
    BashOperator,
    Context,
    EmptyOperator,
    PythonOperator,
    TriggerDagRunOperator,
    TriggerRule,
    WeightRule,
    chain,
    task,
)
from evenflow.core import limits
from evenflow.core.model import TaskSpec
from evenflow.errors import BadArgument, BadId, BadMapping, BadSetting, DagError, DagTooLarge, DuplicateId, WrongDag


def test_every_setting_is_in_the_spec(dag: DAG) -> None:
    EmptyOperator(
        task_id="t",
        retries=3,
        retry_delay=timedelta(minutes=2),
        retry_exponential_backoff=True,
        max_retry_delay=600,
        execution_timeout=timedelta(hours=1),
        pool="p",
        pool_slots=2,
        priority_weight=7,
        weight_rule="absolute",
        queue="q",
        executor="e",
        trigger_rule="all_done",
        max_active_tis_per_dag=4,
        max_active_tis_per_dagrun=5,
        doc_md="what",
    )
    assert dag.to_spec().tasks == (
        TaskSpec(
            task_id="t",
            operator="empty",
            trigger_rule=TriggerRule.ALL_DONE,
            pool="p",
            pool_slots=2,
            priority_weight=7,
            queue="q",
            executor="e",
            max_active_tis_per_dag=4,
            max_active_tis_per_dagrun=5,
            retries=3,
            retry_delay=120.0,
            retry_exponential_backoff=2.0,
            max_retry_delay=600.0,
            execution_timeout=3600.0,
            empty=True,
            doc="what",
        ),
    )


def test_default_args_are_for_tasks_that_do_not_say() -> None:
    with DAG("d", default_args={"retries": 2, "pool": "p"}) as dag:
        EmptyOperator(task_id="a")
        EmptyOperator(task_id="b", retries=0)
    assert [(spec.retries, spec.pool) for spec in dag.to_spec().tasks] == [(2, "p"), (0, "p")]


@pytest.mark.parametrize(
    ("option", "value", "part"),
    [
        ("retries", -1, "retries must be an integer from 0 to 1,000, not -1."),
        ("retries", True, "retries must be an integer"),
        ("retries", "3", "retries must be an integer from 0 to 1,000, not '3'."),
        ("retry_delay", "5m", "retry_delay must be a timedelta or a number of seconds from 0 to 86,400, not '5m'."),
        ("retry_delay", timedelta(days=2), "from 0 to 86,400"),
        ("max_retry_delay", float("nan"), "max_retry_delay must be"),
        (
            "execution_timeout",
            0,
            "execution_timeout must be a timedelta or a number of seconds above 0 and at most 31,622,400, or None, not 0.",
        ),
        ("retry_exponential_backoff", 0.5, "True, False or a factor from 1 to 100, not 0.5."),
        ("pool", "", "pool must be a string of 1 to 250 characters"),
        ("pool_slots", 0, "pool_slots must be an integer of at least 1, not 0."),
        ("priority_weight", 2**31, "priority_weight must be an integer"),
        ("weight_rule", "heavy", "weight_rule must be one of downstream, upstream, absolute, not 'heavy'."),
        ("trigger_rule", "all_sucess", "trigger_rule must be one of all_success, all_failed,"),
        ("max_active_tis_per_dag", 0, "max_active_tis_per_dag must be an integer of at least 1"),
        ("doc", 1, "doc must be a string of at most 262,144 characters, or None, not 1."),
        ("pol", "p", "there is no setting 'pol'. Did you mean 'pool'?"),
        ("email_on_call", True, "there is no setting 'email_on_call'. There are: retries,"),
    ],
)
def test_a_wrong_setting_is_named_with_what_it_must_be(dag: DAG, option: str, value: Any, part: str) -> None:
    with pytest.raises(BadSetting) as raised:
        EmptyOperator(task_id="t", **{option: value})
    assert str(raised.value).startswith("DAG 'd', task 't': ")
    assert part in str(raised.value)
    assert dag.task_ids == []


def test_ids_are_taken_once(dag: DAG) -> None:
    EmptyOperator(task_id="t")
    with pytest.raises(DuplicateId, match=r"DAG 'd' already has a task 't'. Give one of them another task_id."):
        EmptyOperator(task_id="t")


def test_ids_have_airflows_characters(dag: DAG) -> None:
    with pytest.raises(BadId, match=r"DAG 'd': the task id 'a b' may have .* only, at least one. Try 'a_b'."):
        EmptyOperator(task_id="a b")


def test_a_function_called_twice_is_two_tasks(dag: DAG) -> None:
    @task
    def load() -> None: ...

    load()
    load()
    load.override(task_id="late")()
    load()
    assert dag.task_ids == ["load", "load__1", "late", "load__2"]


def test_a_task_outside_a_dag_says_how_to_put_it_into_one() -> None:
    @task
    def load() -> int:
        return 1

    with pytest.raises(WrongDag, match=r"Call it inside a function with @dag or inside `with DAG\(...\):`"):
        load()
    with pytest.raises(WrongDag, match="belongs to no DAG"):
        EmptyOperator(task_id="t")
    assert load.function() == 1


def test_a_task_can_be_given_its_dag() -> None:
    dag = DAG("d")
    EmptyOperator(task_id="t", dag=dag)
    assert dag.task_ids == ["t"]


def test_there_is_a_largest_dag(dag: DAG, monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.MAX_TASKS == 10_000
    monkeypatch.setattr("evenflow.sdk.nodes.MAX_TASKS", 2)
    EmptyOperator(task_id="a")
    EmptyOperator(task_id="b")
    with pytest.raises(DagTooLarge, match=r"more than 2 tasks. Map one task over a list with .expand\(\), or split the DAG."):
        EmptyOperator(task_id="c")


def add(a: int, b: int = 2, *, c: int = 3) -> int:
    return a + b + c


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "DAG 'd', task 'add': add() needs the argument 'a'. It takes: a, b, c."),
        ((1,), {"d": 1}, "DAG 'd', task 'add': add() has no argument 'd'. It takes: a, b, c."),
        ((1,), {"bb": 1}, "DAG 'd', task 'add': add() has no argument 'bb'. Did you mean 'b'?"),
        ((1, 2, 3), {}, "DAG 'd', task 'add': add() cannot be called like this: too many positional arguments. It takes: a, b, c."),
        (
            (1,),
            {"a": 1},
            "DAG 'd', task 'add': add() cannot be called like this: multiple values for argument 'a'. It takes: a, b, c.",
        ),
    ],
)
def test_a_wrong_call_shows_when_the_dag_is_defined(dag: DAG, args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(BadArgument) as raised:
        task(add)(*args, **kwargs)
    assert str(raised.value) == message
    assert dag.task_ids == []


def test_entries_of_the_context_need_not_be_given(dag: DAG) -> None:
    @task
    def load(table: str, ti: Any, ds: str) -> None: ...

    load("a")
    assert dag.task_ids == ["load"]


def test_a_spark_function_must_take_the_session(dag: DAG) -> None:
    @task.spark
    def count(path: str) -> None: ...

    with pytest.raises(BadArgument, match=r"count\(\) must take an argument 'spark', .*: def count\(spark, ...\)"):
        count("x")


def test_decorators_refuse_what_is_no_plain_function() -> None:
    with pytest.raises(BadArgument, match=r"type: @task\(task_id='load'\)"):
        task("load")  # type: ignore[call-overload]
    with pytest.raises(BadArgument, match=r"@task cannot decorate numbers\(\), an async generator. Return a list"):

        @task
        async def numbers() -> Any:
            yield 1

    with pytest.raises(BadArgument, match=r"async function load\(\), which runs in a Python of its own. Make it a plain one"):

        @task.virtualenv
        async def load() -> None: ...


def test_python_operator_needs_a_function(dag: DAG) -> None:
    with pytest.raises(BadArgument, match="python_callable must be a function, not 'add'"):
        PythonOperator(task_id="t", python_callable="add")  # type: ignore[arg-type]


def test_operators_of_ones_own(dag: DAG) -> None:
    class Greet(BaseOperator):
        template_fields = ("name",)

        def __init__(self, name: Any, **options: Any) -> None:
            super().__init__(**options)
            self.name = name

        def execute(self, context: Context) -> str:
            return f"hello {self.name} from {context['ti'].task_id}"

    @task
    def who() -> str:
        return "you"

    Greet(name=who(), task_id="greet", retries=1)
    spec = dag.to_spec().tasks[1]
    assert (spec.operator, spec.upstream, spec.retries) == ("Greet", (0,), 1)
    assert dag.test(print_logs=False).result("greet") == "hello you from greet"


def test_an_operator_whose_init_fails_leaves_no_trace(dag: DAG) -> None:
    class Broken(BaseOperator):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Broken(task_id="t")
    assert dag.task_ids == []


def test_the_docstring_is_the_doc(dag: DAG) -> None:
    @task
    def load() -> None:
        """Loads it."""

    load()
    load.override(doc="Otherwise.")()
    assert [spec.doc for spec in dag.to_spec().tasks] == ["Loads it.", "Otherwise."]


@pytest.mark.parametrize(
    ("rule", "weights"),
    [(WeightRule.DOWNSTREAM, [4, 2, 2, 1]), (WeightRule.UPSTREAM, [1, 2, 2, 4]), (WeightRule.ABSOLUTE, [1, 1, 1, 1])],
)
def test_weight_rules(dag: DAG, rule: WeightRule, weights: list[int]) -> None:
    a, b, c, d = (BashOperator(task_id=name, bash_command="true", weight_rule=rule) for name in "abcd")
    a >> [b, c] >> d
    assert [spec.priority_weight for spec in dag.to_spec().tasks] == weights


def test_a_misspelt_argument_of_an_operator_is_named(dag: DAG) -> None:
    """R-CS10: not only the one that is missing because of it."""
    for given, said in [
        ({"bash_comand": "true"}, "Task 't': BashOperator() has no argument 'bash_comand'. Did you mean 'bash_command'?"),
        ({"bash_command": "true", "apend_env": True}, "there is no setting 'apend_env'. Did you mean 'append_env'?"),
        ({}, "Task 't': BashOperator() needs the argument 'bash_command'."),
        ({"bash_command": "true", "trigger_rule": "all_sucess"}, "not 'all_sucess'. Did you mean 'all_success'?"),
        ({"bash_command": "true", "trigger_rule": "none_failed_or_skipped"}, "or_skipped'. Write none_failed_min_one_success."),
        ({"bash_command": "true", "weight_rule": "upstrean"}, "not 'upstrean'. Did you mean 'upstream'?"),
    ]:
        with pytest.raises(DagError) as raised:
            BashOperator(task_id="t", **given)  # type: ignore[arg-type]
        assert said in str(raised.value)

    class Own(BashOperator):
        def __init__(self, **kwargs: Any) -> None:
            self.extra = kwargs.pop("extra")
            super().__init__(**kwargs)
            len(3)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="len"):
        Own(task_id="o", bash_command="true", extra=1)


def test_functions_that_are_not_called_are_no_tasks(dag: DAG) -> None:
    """R-CS10: whichever side they stand on."""

    @task
    def extract() -> None: ...

    end: Any = BashOperator(task_id="end", bash_command="true")
    function: Any = extract
    ways: list[Callable[[], object]] = [
        lambda: function >> function,
        lambda: function >> end,
        lambda: end >> function,
        lambda: [end, end] >> function,
        lambda: function << [end],
        lambda: chain(function, function),
    ]
    for way in ways:
        with pytest.raises(BadArgument, match=r"extract is a function with @task, .* Call it: extract\(\.\.\.\)"):
            way()


@pytest.mark.parametrize(
    "put",
    [
        lambda value: f"rows of {value}",
        lambda value: f"rows of {value:>10}",
        lambda value: "rows of %s" % value,  # noqa: UP031
        lambda value: "rows of {}".format(value),  # noqa: UP032
        lambda value: str(value),
    ],
)
def test_a_value_of_the_run_is_no_part_of_a_text(dag: DAG, put: Callable[[Any], str]) -> None:
    @task
    def rows() -> int:
        return 1

    with pytest.raises(BadArgument, match=r"<result of task 'rows'> cannot be part of a text here.*ti.xcom_pull"):
        put(rows())
    with pytest.raises(BadArgument, match=r"<param 'n'> cannot be part of a text here"):
        put(DAG("other", params={"n": 1}).param("n"))


@pytest.mark.parametrize("compute", [lambda value: value > 3, lambda value: value + 1, lambda value: 2 * value])
def test_nothing_is_computed_with_a_value_of_the_run(dag: DAG, compute: Callable[[Any], Any]) -> None:
    @task
    def rows() -> int:
        return 1

    with pytest.raises(BadArgument, match=r"cannot be computed with here.*in the task that uses it"):
        compute(rows())


def test_a_function_that_is_not_called_is_no_argument(dag: DAG) -> None:
    @task
    def rows() -> int:
        return 1

    @task
    def show(values: Any) -> None:
        print(values)

    with pytest.raises(BadArgument, match=r"task 'show': rows is a function with @task.*Call it: rows\(\.\.\.\)"):
        show([rows])
    with pytest.raises(BadArgument, match=r"Call it: rows\(\.\.\.\)"):
        show.expand(values=[{"of": rows}])
    assert dag.task_ids == []


def test_a_partial_that_is_not_expanded_is_refused(dag: DAG) -> None:
    @task
    def load(table: str, day: str) -> None: ...

    begun = load.partial(day="monday")
    with pytest.raises(BadArgument, match=r"load\.partial\(\.\.\.\) makes no task.*\.expand"):
        dag.to_spec()
    begun.expand(table=["a"])
    assert len(dag.to_spec().tasks) == 1
    BashOperator.partial(task_id="list")
    with pytest.raises(BadArgument, match=r"'list'.*makes no task.*\.expand"):
        dag.to_spec()


def test_expand_takes_names(dag: DAG) -> None:
    @task
    def load(table: str) -> None: ...

    with pytest.raises(BadMapping, match=r"Task 'load': expand\(\) takes .* by the name"):
        load.expand(["a", "b"])
    with pytest.raises(BadMapping, match=r"by the name of its argument"):
        BashOperator.partial(task_id="list").expand(["ls"])


def test_an_operator_that_cannot_work_is_told_when_it_is_made(dag: DAG) -> None:
    class Forgets(BaseOperator):
        def __init__(self, table: str, **options: Any) -> None:
            self.table = table

        def execute(self, context: Context) -> None: ...

    class Misnames(BaseOperator):
        template_fields = ("tabel",)

        def __init__(self, table: str, **options: Any) -> None:
            super().__init__(**options)
            self.table = table

        def execute(self, context: Context) -> None: ...

    class Misspells(BaseOperator):
        def exceute(self, context: Context) -> None: ...

    with pytest.raises(BadArgument, match=r"Forgets\.__init__\(\) does not call super\(\)\.__init__\(\*\*options\)"):
        Forgets(task_id="a", table="x")
    with pytest.raises(BadArgument, match=r"template_fields of Misnames has 'tabel', .* Did you mean 'table'"):
        Misnames(task_id="a", table="x")
    with pytest.raises(BadArgument, match=r"Misspells has no execute\(self, context\)"):
        Misspells(task_id="a")
    with pytest.raises(BadArgument, match="bash_command must be a string that is not empty"):
        BashOperator(task_id="a", bash_command=["ls", "-l"])  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match="Task 'b': bash_command must be a string that is not empty, not '  '"):
        BashOperator(task_id="b", bash_command="  ")
    with pytest.raises(BadArgument, match="conf must be a dict"):
        TriggerDagRunOperator(task_id="a", trigger_dag_id="b", conf="x")  # type: ignore[arg-type]
    assert dag.task_ids == []
