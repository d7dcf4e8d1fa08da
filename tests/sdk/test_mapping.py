"""Mapped tasks: what they may map over, in which order, and what reads their results."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow import DAG, BashOperator, EmptyOperator, PythonOperator, task
from evenflow.core.model import MapInput, Mapping
from evenflow.core.states import TaskState
from evenflow.errors import BadArgument, BadMapping, BadSetting


@task
def show(**given: Any) -> Any:
    return {name: given[name] for name in ("a", "b", "c") if name in given}


@task
def make(value: Any) -> Any:
    return value


def results(dag: DAG, task_id: str = "show") -> Any:
    run = dag.test(print_logs=False)
    run.raise_on_failure()
    return run.result(task_id)


def test_a_list(dag: DAG) -> None:
    show.expand(a=[1, 2, 3])
    assert dag.to_spec().tasks[0].mapping == Mapping(inputs=(MapInput(name="a", length=3),))
    assert results(dag) == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_a_range_and_a_tuple(dag: DAG) -> None:
    show.expand(a=range(2), b=(7,))
    assert results(dag) == [{"a": 0, "b": 7}, {"a": 1, "b": 7}]


def test_a_dict_is_its_items(dag: DAG) -> None:
    show.expand(a={"y": 1, "x": 2})
    assert results(dag) == [{"a": ("y", 1)}, {"a": ("x", 2)}]


def test_the_last_of_several_inputs_varies_fastest(dag: DAG) -> None:
    show.expand(a=[1, 2], b=["x", "y", "z"])
    assert [(each["a"], each["b"]) for each in results(dag)] == [(1, "x"), (1, "y"), (1, "z"), (2, "x"), (2, "y"), (2, "z")]


def test_a_result_and_what_all_share(dag: DAG) -> None:
    show.partial(b=make("shared")).expand(a=make([1, 2]))
    spec = dag.to_spec()
    assert spec.tasks[2].mapping == Mapping(inputs=(MapInput(name="a", task=1),))
    assert spec.tasks[2].upstream == (0, 1)
    assert results(dag) == [{"a": 1, "b": "shared"}, {"a": 2, "b": "shared"}]


def test_results_that_are_tuples_and_dicts(dag: DAG) -> None:
    show.expand(a=make((1, 2)), b=make({"y": 1, "x": 2}), c=make({2: "two"}))
    assert [(each["a"], each["b"], each["c"]) for each in results(dag)] == [
        (1, ("x", 2), (2, "two")),
        (1, ("y", 1), (2, "two")),
        (2, ("x", 2), (2, "two")),
        (2, ("y", 1), (2, "two")),
    ]


def test_an_item_of_a_result_is_pushed_so_that_its_length_is_known(dag: DAG) -> None:
    made = make({"files": ["f", "g"], "n": 2})
    show.partial(b=made["n"]).expand(a=made["files"])
    assert dag.to_spec().tasks[1].mapping == Mapping(inputs=(MapInput(name="a", task=0, key="return_value.files"),))
    run = dag.test(print_logs=False)
    assert run.result("show") == [{"a": "f", "b": 2}, {"a": "g", "b": 2}]
    assert run.result("make", key="return_value.files") == ["f", "g"]


def test_an_item_that_is_not_there_fails_the_task_that_should_have_made_it(dag: DAG) -> None:
    show.expand(a=make({"n": 2})["files"])
    run = dag.test(print_logs=False)
    assert run.states == {"make": TaskState.FAILED, "show": [TaskState.UPSTREAM_FAILED]}
    assert "Return a dict with the key 'files'." in (run.tasks[0].reason or "")


def test_a_task_follows_a_mapped_task_when_it_maps_over_nothing_else(dag: DAG) -> None:
    show.expand(a=make.expand(value=[1, None, 3]))
    assert dag.to_spec().tasks[1].mapping == Mapping(inputs=(MapInput(name="a", task=0),), kind="each")
    assert results(dag) == [{"a": 1}, {"a": None}, {"a": 3}]


def test_else_mapping_over_a_mapped_task_is_one_instance_for_each_result(dag: DAG) -> None:
    firsts = make.expand(value=[1, None, 3])
    show.expand(a=firsts, b=[7])
    assert results(dag) == [{"a": 1, "b": 7}, {"a": 3, "b": 7}]


def test_an_item_of_a_mapped_task_is_that_of_each_result(dag: DAG) -> None:
    firsts = make.expand(value=[{"n": 3}, {"n": 1}])
    show.expand(a=firsts["n"])
    assert dag.to_spec().tasks[1].mapping == Mapping(inputs=(MapInput(name="a", task=0),))
    assert results(dag) == [{"a": 3}, {"a": 1}]


def test_a_plain_argument_gets_all_results_in_map_order(dag: DAG) -> None:
    firsts = make.expand(value=[{"n": 3}, {"n": 1}, {"n": 2}])
    show(a=firsts, b=firsts["n"])
    assert results(dag) == {"a": [{"n": 3}, {"n": 1}, {"n": 2}], "b": [3, 1, 2]}


def test_elements_may_hold_results(dag: DAG) -> None:
    show.expand(a=[make(1), [make(2)], 3])
    assert results(dag) == [{"a": 1}, {"a": [2]}, {"a": 3}]


def test_nothing_to_map_over_is_skipped(dag: DAG) -> None:
    show.expand(a=make([])) >> EmptyOperator(task_id="end")
    run = dag.test(print_logs=False)
    assert run.states == {"make": TaskState.SUCCESS, "show": [TaskState.SKIPPED], "end": TaskState.SKIPPED}


@pytest.mark.parametrize("value", [None, 5, "text", {1, 2}])
def test_a_result_without_elements_fails_the_mapping(dag: DAG, value: Any) -> None:
    show.expand(a=make(value))
    run = dag.test(print_logs=False)
    assert run.states["show"] == [TaskState.FAILED]
    assert run.tasks[-1].reason == (
        "It cannot be mapped: make returned no list or dict. Return one, an empty one for nothing to do."
    )


def test_operators_are_mapped_too(dag: DAG) -> None:
    BashOperator.partial(task_id="b", env={"N": "n"}, retries=2).expand(bash_command=["echo $N", make("echo 2")])
    PythonOperator.partial(task_id="p", python_callable=max).expand(op_args=[[1, 2], [4, 3]])
    spec = dag.to_spec()
    assert [(each.task_id, each.operator, each.retries) for each in spec.tasks[1:]] == [("b", "bash", 2), ("p", "python", 0)]
    run = dag.test(print_logs=False)
    assert (run.result("b"), run.result("p")) == (["n", "2"], [2, 4])


def test_settings_and_decorators_with_arguments(dag: DAG) -> None:
    @task.bash(env={"GREETING": "hi"}, retries=3, pool="p")
    def greet(name: str) -> str:
        return f"echo $GREETING {name}"

    greet.override(task_id="g").expand(name=["a", "b"])
    spec = dag.to_spec().tasks[0]
    assert (spec.task_id, spec.retries, spec.pool, spec.operator) == ("g", 3, "p", "bash")
    assert results(dag, "g") == ["hi a", "hi b"]


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("abc", "not 'abc' of type str. Type: .partial(a=...)"),
        (5, "not 5 of type int. Type: .partial(a=...)"),
        ({1}, "of type set. Type: .expand(a=list(...))"),
        ((n for n in [1]), "of type generator. Type: .expand(a=list(...))"),
    ],
)
def test_what_cannot_be_mapped_over(dag: DAG, value: Any, part: str) -> None:
    with pytest.raises(BadMapping) as raised:
        show.expand(a=value)
    assert str(raised.value).startswith("DAG 'd', task 'show': expand() needs a list, a dict or the result of a task for 'a'")
    assert part in str(raised.value)


def test_expand_needs_arguments(dag: DAG) -> None:
    with pytest.raises(BadMapping, match=r"expand\(\) needs at least one argument to map over"):
        show.expand()


def test_an_expansion_has_a_largest_size(dag: DAG) -> None:
    make.expand(value=range(100_000))
    with pytest.raises(BadMapping, match=r"expand\(\) makes 100,100 instances, at most 100,000 are allowed. Map over batches"):
        show.expand(a=range(100), b=range(1001))


def test_only_one_named_item_can_be_mapped_over(dag: DAG) -> None:
    made = make({})
    for wrong in (made["a"]["b"], made[0]):
        with pytest.raises(BadMapping, match="Make a task that returns just that list"):
            show.expand(a=wrong)


def add(a: int, b: int) -> int:
    return a + b


def test_wrong_arguments_show_when_the_dag_is_defined(dag: DAG) -> None:
    adder = task(add)
    with pytest.raises(BadArgument, match=r"Task 'add': add\(\) needs the argument 'b'"):
        adder.expand(a=[1])
    with pytest.raises(BadArgument, match=r"Task 'add': add\(\) has no argument 'c'"):
        adder.partial(a=1, b=2).expand(c=[1])
    with pytest.raises(BadMapping, match=r"'a' is given to both partial\(\) and expand\(\)"):
        adder.partial(a=1).expand(a=[1], b=[2])
    with pytest.raises(BadArgument, match=r"'retries' is the same for all instances of a task. Give it to partial\(\)"):
        BashOperator.partial(task_id="b").expand(bash_command=["true"], retries=[1])
    with pytest.raises(BadSetting, match=r"there is no setting 'comand'. There are: retries"):
        BashOperator.partial(task_id="b", comand="x").expand(bash_command=["true"])
    with pytest.raises(BadSetting, match="there is no setting 'retrys'"):
        adder.override(retrys=1).expand(a=[1], b=[2])
    assert dag.task_ids == []


def test_a_list_that_changed_since_the_dag_was_read_is_noticed(dag: DAG) -> None:
    from evenflow.sdk.trying.runner import run_try

    from .recording import Recorder, context

    show.expand(a=[1, 2])
    result = run_try(dag, context("show", map_index=0, map_length=3), Recorder())
    assert result.outcome == "failed"
    assert "was expanded to 3 instances, but what it maps over now makes 2" in (result.reason or "")
