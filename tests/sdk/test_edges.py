"""Dependencies between tasks, groups, results and lists."""

from __future__ import annotations

import pytest

from evenflow import DAG, EmptyOperator, TaskGroup, XComArg, chain, cross_downstream, task, task_group
from evenflow.core.model import GroupSpec
from evenflow.errors import BadArgument, BadId, DagCycle, DagTooLarge, DuplicateId, WrongDag


def edges(dag: DAG) -> set[str]:
    spec = dag.to_spec()
    return {f"{spec.tasks[source].task_id} {task.task_id}" for task in spec.tasks for source in task.upstream}


def tasks(names: str) -> list[EmptyOperator]:
    return [EmptyOperator(task_id=name) for name in names]


def test_shift_right_and_left(dag: DAG) -> None:
    a, b, c = tasks("abc")
    a >> b >> c
    assert edges(dag) == {"a b", "b c"}


def test_shift_left(dag: DAG) -> None:
    a, b, c = tasks("abc")
    a << b << c
    assert edges(dag) == {"c b", "b a"}


def test_lists_on_either_side(dag: DAG) -> None:
    a, b, c, d = tasks("abcd")
    a >> [b, c] >> d
    assert edges(dag) == {"a b", "a c", "b d", "c d"}


def test_lists_on_the_left_of_a_shift_left(dag: DAG) -> None:
    a, b, c = tasks("abc")
    [a, b] << c
    assert edges(dag) == {"c a", "c b"}


def test_methods(dag: DAG) -> None:
    a, b, c = tasks("abc")
    a.set_downstream([b, c])
    c.set_upstream(b)
    assert edges(dag) == {"a b", "a c", "b c"}
    assert (a.downstream_task_ids, c.upstream_task_ids) == ({"b", "c"}, {"a", "b"})


def test_chain_connects_lists_pairwise(dag: DAG) -> None:
    a, b, c, d, e, f = tasks("abcdef")
    chain(a, [b, c], [d, e], f)
    assert edges(dag) == {"a b", "a c", "b d", "c e", "d f", "e f"}


def test_chain_refuses_lists_of_different_lengths(dag: DAG) -> None:
    a, b, c = tasks("abc")
    with pytest.raises(BadArgument, match="a list of 2 next to a list of 1: lists are connected pairwise"):
        chain([a, b], [c])


def test_cross_downstream_connects_each_with_each(dag: DAG) -> None:
    a, b, c, d = tasks("abcd")
    cross_downstream([a, b], [c, d])
    assert edges(dag) == {"a c", "a d", "b c", "b d"}


def test_results_are_edges(dag: DAG) -> None:
    @task
    def make() -> dict[str, int]:
        return {"n": 1}

    @task
    def use(*values: object, **named: object) -> None: ...

    first = make()
    deep = {"a": [(first["n"], 1)]}
    use(deep) >> EmptyOperator(task_id="end")
    use(named=[make()])
    assert edges(dag) == {"make use", "use end", "make__1 use__1"}


def test_an_edge_may_be_said_twice(dag: DAG) -> None:
    a, b = tasks("ab")
    a >> b
    b << a
    assert [spec.upstream for spec in dag.to_spec().tasks] == [(), (0,)]


def test_a_cycle_is_named(dag: DAG) -> None:
    a, b, c, d = tasks("abcd")
    a >> b >> c >> d >> b
    with pytest.raises(DagCycle) as raised:
        dag.to_spec()
    path = raised.value.cycle
    assert set(path) == {"b", "c", "d"}
    assert all(f"{x} {y}" in {"b c", "c d", "d b"} for x, y in zip(path, (*path[1:], path[0]), strict=True))
    assert str(raised.value).startswith("DAG 'd' has a cycle: ")


def test_a_task_cannot_wait_for_itself(dag: DAG) -> None:
    (a,) = tasks("a")
    with pytest.raises(BadArgument, match="makes a task wait for itself"):
        a >> a


def test_no_edge_crosses_dags(dag: DAG) -> None:
    (a,) = tasks("a")
    with DAG("other"):
        b = EmptyOperator(task_id="b")
    with pytest.raises(
        WrongDag, match=r"<task 'a'> belongs to DAG 'd' and <task 'b'> to DAG 'other': a dependency cannot cross DAGs."
    ):
        a >> b


def test_what_cannot_be_connected_is_shown(dag: DAG) -> None:
    (a,) = tasks("a")
    with pytest.raises(BadArgument, match="'b' cannot be part of a dependency: only tasks,"):
        a >> "b"  # type: ignore[type-var]


def test_there_are_at_most_so_many_edges(dag: DAG, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenflow.sdk.nodes.MAX_SPEC_EDGES", 3)
    with pytest.raises(DagTooLarge, match=r"more than 3 dependencies.*put one in between"):
        cross_downstream(tasks("abcd"), tasks("efgh"))
    with DAG("groups") as other:
        with TaskGroup("g") as g:
            tasks("ab")
        with TaskGroup("h") as h:
            tasks("cd")
        g >> h
    with pytest.raises(DagTooLarge):
        other.to_spec()


def test_results_say_what_they_cannot(dag: DAG) -> None:
    @task
    def make() -> list[int]:
        return [1]

    result = make()
    assert isinstance(result, XComArg)
    for wrong in (lambda: list(result), lambda: bool(result), lambda: len(result), lambda: result[1.5]):
        with pytest.raises(BadArgument, match="<result of task 'make'>"):
            wrong()


def test_groups_prefix_ids_and_join_edges(dag: DAG) -> None:
    a, z = tasks("az")
    with TaskGroup("g", tooltip="a group") as g:
        b, c, d = tasks("bcd")
        b >> [c, d]
        with TaskGroup("inner", prefix_group_id=False) as inner:
            tasks("e")
        d >> inner
    a >> g >> z
    assert edges(dag) == {"a g.b", "g.b g.c", "g.b g.d", "g.d g.e", "g.c z", "g.e z"}
    assert dag.to_spec().groups == (GroupSpec(group_id="g", tooltip="a group"), GroupSpec(group_id="g.inner", parent=0))
    assert [spec.group for spec in dag.to_spec().tasks] == [None, None, 0, 0, 0, 1]


def test_a_group_can_grow_after_its_edges_are_said(dag: DAG) -> None:
    """Airflow connects the tasks that are there at that moment, and loses the others silently."""
    (a,) = tasks("a")
    with TaskGroup("g") as g:
        a >> g
        tasks("bc")
    assert edges(dag) == {"a g.b", "a g.c"}


def test_edges_between_groups_inside_a_group_decide_its_roots(dag: DAG) -> None:
    a, z = tasks("az")
    with TaskGroup("outer") as outer:
        with TaskGroup("first") as first:
            tasks("bc")
        with TaskGroup("second") as second:
            tasks("de")
    a >> outer >> z
    first >> second
    assert edges(dag) == {
        "a outer.first.b",
        "a outer.first.c",
        *(f"outer.first.{x} outer.second.{y}" for x in "bc" for y in "de"),
        "outer.second.d z",
        "outer.second.e z",
    }


def test_an_empty_group_would_lose_an_edge(dag: DAG) -> None:
    a, z = tasks("az")
    with TaskGroup("g") as g:
        pass
    a >> g >> z
    with pytest.raises(BadArgument, match="task group 'g' is part of a dependency but has no tasks"):
        dag.to_spec()


def test_a_group_cannot_wait_for_its_own_task(dag: DAG) -> None:
    with TaskGroup("g") as g:
        (a,) = tasks("a")
    with pytest.raises(BadArgument, match="makes a task wait for itself"):
        a >> g


def test_decorated_groups(dag: DAG) -> None:
    @task
    def make(n: int) -> int:
        return n

    @task_group(default_args={"retries": 4})
    def pair(n: int) -> XComArg:
        """Two of them."""
        first = make(n)
        return make(first)

    @task_group
    def nothing() -> None:
        EmptyOperator(task_id="t")

    last = pair(1)
    pair(last) >> nothing() >> EmptyOperator(task_id="end")
    pair.override(group_id="other")(3)
    spec = dag.to_spec()
    assert edges(dag) == {
        "pair.make pair.make__1",
        "pair.make__1 pair__1.make",
        "pair__1.make pair__1.make__1",
        "pair__1.make__1 nothing.t",
        "nothing.t end",
        "other.make other.make__1",
    }
    assert [group.group_id for group in spec.groups] == ["pair", "pair__1", "nothing", "other"]
    assert spec.groups[0].tooltip == "Two of them."
    assert (spec.tasks[0].retries, spec.tasks[-3].retries) == (4, 0)


def test_ids_of_groups(dag: DAG) -> None:
    with pytest.raises(BadId, match=r"the group id 'a.b' may have letters, digits, '_' and '-' only"):
        TaskGroup("a.b")
    TaskGroup("g")
    with pytest.raises(DuplicateId, match="already has a task group 'g'"):
        EmptyOperator(task_id="g")


def test_an_id_is_short_enough_with_its_prefix(dag: DAG) -> None:
    with TaskGroup("g" * 200), pytest.raises(BadId, match="has 261 characters"):
        EmptyOperator(task_id="t" * 60)


def test_groups_need_a_dag() -> None:
    with pytest.raises(WrongDag, match="Task group 'g' belongs to no DAG"):
        TaskGroup("g")


def test_a_task_cannot_be_in_the_group_of_another_dag(dag: DAG) -> None:
    with DAG("other"):
        group = TaskGroup("g")
    with pytest.raises(WrongDag, match="Task 't' is to be in DAG 'd', but its group 'g' is in 'other'"):
        EmptyOperator(task_id="t", dag=dag, task_group=group)


def test_an_open_group_of_another_dag_is_not_meant(dag: DAG) -> None:
    with TaskGroup("g"), DAG("other") as other:
        EmptyOperator(task_id="t")
    assert other.task_ids == ["t"]
    EmptyOperator(task_id="after")
    assert dag.task_ids == ["after"]
