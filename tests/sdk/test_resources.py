"""What authors say of the memory and the processors that a task may take."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow import DAG, resources, task
from evenflow.core.model import DagSpec, Resources
from evenflow.core.quantities import bytes_of, memory
from evenflow.errors import BadSetting


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ("2GiB", 2 * 2**30),
        ("1.5 GiB", 3 * 2**29),
        ("512Mi", 2**29),
        ("500MB", 500_000_000),
        ("64kB", 64_000),
        ("1048576", 2**20),
        ("1TiB", 2**40),
        ("2 gigabytes", None),
        ("-1GiB", None),
        ("", None),
        ("9" * 400 + "GiB", None),
    ],
)
def test_amounts_of_memory_are_read_as_people_write_them(said: str, size: int | None) -> None:
    assert bytes_of(said) == size


def test_amounts_of_memory_are_shown_in_the_unit_of_the_whole() -> None:
    assert (memory(2 * 2**30), memory(3 * 2**29), memory(100)) == ("2 GiB", "1.5 GiB", "100 B")
    assert memory(2**29, of=2**31) == "0.5 of 2 GiB"


def test_resources_of_a_task_travel_in_the_spec_and_come_from_default_args() -> None:
    with DAG("d", default_args={"resources": resources(memory="1GiB")}) as dag:

        @task
        def usual() -> None: ...

        @task(resources=resources(memory="2GiB", cpu=1.5))
        def large() -> None: ...

        @task(resources=None)
        def free() -> None: ...

        usual() >> large() >> free()
    read = DagSpec.from_json(dag.to_spec().to_json())
    assert {each.task_id: each.resources for each in read.tasks} == {
        "usual": Resources(memory=2**30),
        "large": Resources(memory=2**31, cpu=1.5),
        "free": None,
    }
    assert str(Resources(memory=2**31, cpu=1.5)) == 'resources(memory="2 GiB", cpu=1.5)'


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "limits nothing"),
        ({"memory": "2 elephants"}, 'bytes or a text such as "2GiB" or "500MB", from 16 MiB to 64 TiB'),
        ({"memory": 1024}, "from 16 MiB to 64 TiB, not 1024"),
        ({"memory": True}, "not True"),
        ({"cpu": 0}, "a number of processors above 0 and at most"),
        ({"cpu": "2"}, "not '2'"),
        ({"cpu": float("nan")}, "not nan"),
    ],
)
def test_what_no_host_has_is_refused_with_what_to_write(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(BadSetting, match=r"resources") as refused:
        resources(**asked)
    assert said in str(refused.value)


def test_an_amount_without_resources_is_refused() -> None:
    """As Airflow once took it."""

    @task(resources={"ram": 512})
    def t() -> None: ...

    with DAG("d"), pytest.raises(BadSetting, match=r'resources must be resources\(memory="2GiB", cpu=1\.5\), not'):
        t()
