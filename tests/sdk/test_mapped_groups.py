"""Mapped task groups, as authors write them, and what their tasks see of each other."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow import DAG, EmptyOperator, TaskGroup, task, task_group
from evenflow.core.model import MapInput, Mapping
from evenflow.core.states import TaskState
from evenflow.errors import BadArgument, BadMapping


@task
def show(**given: Any) -> Any:
    return {name: given[name] for name in ("a", "b", "c", "z") if name in given}


@task
def show_one(a: Any) -> Any:
    return a


@task
def make(value: Any) -> Any:
    return value


@task
def total(values: list[int]) -> int:
    return sum(values)


@task_group
def pair(a: int, b: int = 10) -> Any:
    first = make.override(task_id="first")(a)
    return add.override(task_id="second")(first, b)


@task
def add(x: int, y: int) -> int:
    if x == 2:
        raise ValueError("two")
    return x + y


def run(dag: DAG) -> Any:
    return dag.test(print_logs=False)


def test_a_task_of_a_group_sees_the_same_index_and_others_see_the_list(dag: DAG) -> None:
    total(pair.expand(a=[1, 3]))
    spec = dag.to_spec()
    assert spec.groups[0].mapping == Mapping(inputs=(MapInput(name="a", length=2),))
    assert spec.tasks[2].upstream == (1,)
    outcome = run(dag)
    assert outcome.result("pair.first") == [1, 3]
    assert outcome.result("pair.second") == [11, 13]
    assert outcome.result("total") == 24


def test_a_group_over_a_result_with_what_all_share(dag: DAG) -> None:
    numbers = make([1, 2, 3])
    pair.partial(b=make.override(task_id="shared")(5)).expand(a=numbers)
    spec = dag.to_spec()
    assert spec.groups[0].mapping == Mapping(inputs=(MapInput(name="a", task=0),))
    assert spec.tasks[2].upstream == (0,)  # the root of the group waits for what it maps over
    assert spec.tasks[3].upstream == (1, 2)
    assert run(dag).states == {
        "make": TaskState.SUCCESS,
        "shared": TaskState.SUCCESS,
        "pair.first": [TaskState.SUCCESS] * 3,
        "pair.second": [TaskState.SUCCESS, TaskState.FAILED, TaskState.SUCCESS],
    }


def test_a_cross_product_of_groups(dag: DAG) -> None:
    pair.expand(a=[1, 5], b=[10, 20])
    assert run(dag).result("pair.second") == [11, 21, 15, 25]


@pytest.mark.parametrize("as_result", [False, True])
def test_dicts_of_arguments(dag: DAG, as_result: bool) -> None:
    given: Any = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    pair.expand_kwargs(make(given) if as_result else given)
    assert run(dag).result("pair.second") == [3, 7]


def test_an_argument_that_is_in_no_dict_of_its_index(dag: DAG) -> None:
    pair.expand_kwargs([{"a": 1, "b": 2}, {"a": 3}])
    outcome = run(dag)
    assert outcome.states["pair.second"] == [TaskState.SUCCESS, TaskState.FAILED]


def test_groups_inside_a_mapped_group_belong_to_it(dag: DAG) -> None:
    @task_group
    def outer(a: int) -> None:
        first = make(a)
        with TaskGroup("inner"):
            show_one(first) >> EmptyOperator(task_id="end")

    outer.expand(a=[4, 5])
    outcome = run(dag)
    assert outcome.result("outer.inner.show_one") == [4, 5]
    assert outcome.states["outer.inner.end"] == [TaskState.SUCCESS] * 2


def test_an_empty_group_is_skipped_and_so_is_what_follows(dag: DAG) -> None:
    total(pair.expand(a=make([])))
    assert set(map(str, run(dag).states.values())) == {"success", "skipped", "[<TaskState.SKIPPED: 'skipped'>]"}


def test_pulling_inside_a_group(dag: DAG) -> None:
    @task
    def pull(ti: Any, x: Any) -> Any:
        return ti.xcom_pull("g.make"), ti.xcom_pull("g.make", map_indexes=0)

    @task_group(group_id="g")
    def group(a: int) -> None:
        pull(x=make(a))

    group.expand(a=[4, 5])
    assert run(dag).result("g.pull") == [(4, 4), (5, 4)]


def test_a_mapped_group_cannot_hold_another_nor_a_mapped_task(dag: DAG) -> None:
    @task_group
    def outer(a: int) -> None:
        pair.expand(a=[1, 2])

    with pytest.raises(BadMapping, match=r"Mapped group 'outer.pair' is inside the mapped group 'outer'"):
        outer.expand(a=[1])

    @task_group
    def mapping(a: int) -> None:
        show_one.expand(a=[1, 2])

    with pytest.raises(BadMapping, match=r"is inside the mapped group 'mapping' and cannot be mapped itself"):
        mapping.expand(a=[1])


def test_arguments_that_do_not_fit(dag: DAG) -> None:
    with pytest.raises(BadMapping, match="'a' is given to both"):
        pair.partial(a=1).expand(a=[1])
    with pytest.raises(BadArgument, match="'c'"):
        pair.expand(c=[1])
    with pytest.raises(BadMapping, match="Task group 'pair': expand\\(\\) needs a list"):
        pair.expand(a=7)


# -- what can be mapped over -------------------------------------------------------------------------------------------


def test_a_function_over_each_element_may_skip_some(dag: DAG) -> None:
    from evenflow import TaskSkipped

    def double(x: int) -> int:
        if x == 2:
            raise TaskSkipped("not two")
        return 2 * x

    show_one.expand(a=make([1, 2, 3]).map(double).map(str))
    outcome = run(dag)
    assert outcome.states["show_one"] == [TaskState.SUCCESS, TaskState.SKIPPED, TaskState.SUCCESS]
    assert outcome.result("show_one") == ["2", "6"]


def test_zip_and_concat(dag: DAG) -> None:
    one, two = make([1, 2, 3]), make(["a", "b"])
    show_one.expand(a=one.zip(two))
    show_one.expand(a=one.zip(two, fillvalue="-"))
    show_one.expand(a=one.concat(two, [9]).map(str))
    tasks = dag.to_spec().tasks
    parts = (MapInput(task=0), MapInput(task=1))
    assert tasks[2].mapping == Mapping(inputs=(MapInput(name="a", combine="zip", parts=parts),))
    assert tasks[2].upstream == (0, 1)
    assert tasks[4].mapping == Mapping(inputs=(MapInput(name="a", combine="concat", parts=(*parts, MapInput(length=1))),))
    outcome = run(dag)
    assert outcome.result("show_one") == [(1, "a"), (2, "b")]
    assert outcome.result("show_one__1") == [(1, "a"), (2, "b"), (3, "-")]
    assert outcome.result("show_one__2") == ["1", "2", "3", "a", "b", "9"]


def test_combinations_over_mapped_tasks_and_as_plain_arguments(dag: DAG) -> None:
    squares = make.expand(value=[1, None, 9])
    show_one(squares.map(lambda x: x + 1).zip(["x", "y"]))
    show_one.expand(a=squares.concat(squares))
    outcome = run(dag)
    assert outcome.result("show_one") == [(2, "x"), (10, "y")]
    assert outcome.result("show_one__1") == [1, 9, 1, 9]


def test_dicts_of_arguments_for_tasks_and_operators(dag: DAG) -> None:
    from evenflow import BashOperator

    show.partial(c=0).expand_kwargs([{"a": 1}, {"a": 2, "b": make(3)}])
    show.expand_kwargs(make([{"a": 1}, {"b": 2}]).map(lambda given: {**given, "z": 0}))
    BashOperator.partial(task_id="bash").expand_kwargs([{"bash_command": "echo $X", "env": {"X": "1"}}, {"bash_command": "echo 2"}])
    outcome = run(dag)
    assert outcome.result("show") == [{"a": 1, "c": 0}, {"a": 2, "b": 3, "c": 0}]
    assert outcome.result("show__1") == [{"a": 1, "z": 0}, {"b": 2, "z": 0}]
    assert outcome.result("bash") == ["1", "2"]


def test_kwargs_that_do_not_fit(dag: DAG) -> None:
    with pytest.raises(BadMapping, match="needs a list of dicts or the result of a task, not 5"):
        show.expand_kwargs(5)
    with pytest.raises(BadMapping, match="needs a dict of arguments for each instance"):
        show.expand_kwargs([{"a": 1}, 5])
    with pytest.raises(BadMapping, match="'a' is given to both partial\\(\\) and expand_kwargs\\(\\)"):
        show.partial(a=1).expand_kwargs([{"a": 2}])
    with pytest.raises(BadArgument, match="'b'"):
        show_one.expand_kwargs([{"b": 2}])


def test_a_limit_on_the_length() -> None:
    with DAG("d", max_map_length=2) as dag:
        show_one.expand(a=make([1, 2, 3]))
    outcome = run(dag)
    assert outcome.states["show_one"] == [TaskState.FAILED]
    assert "above the limit of 2 (max_map_length of the DAG)" in outcome.tasks[-1].reason
