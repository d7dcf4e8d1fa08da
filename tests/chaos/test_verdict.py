"""The judge of what ran beside what finds each overlap, and none where there is none."""

from __future__ import annotations

import pytest

from tests.chaos.verdict import Execution, outlived, side_by_side

KEY = ("dag", "run", "task", -1)


def ran(epoch: int, pid: int, first: float, last: float) -> Execution:
    return Execution(KEY, epoch, pid, [{"what": "begin", "at": first}, {"what": "step", "at": last}])


in_turn = pytest.mark.parametrize("epochs", [(7, 1001), (1001, 7)], ids=["one-scheduler", "the-second-has-lower-epochs"])


@in_turn
def test_a_try_begins_when_all_of_the_one_before_is_over(epochs: tuple[int, int]) -> None:
    """R-CS9. Two schedulers dispatch a task in turn, each with epochs of its own block."""
    first, then = epochs
    tasks = [ran(first, 10, 1.0, 2.5), ran(then, 20, 2.6, 3.0)]
    strays = [ran(first, 11, 0.9, 2.5), ran(then, 21, 2.59, 4.0)]
    assert list(outlived(strays, tasks, set())) == []
    assert list(side_by_side(tasks, set())) == []


@in_turn
@pytest.mark.parametrize("is_task", [True, False], ids=["beside-the-task", "beside-what-that-has-started"])
def test_what_outlives_its_try_is_found(epochs: tuple[int, int], is_task: bool) -> None:
    """R-CS9."""
    first, then = epochs
    tasks, strays = [ran(first, 10, 1.0, 2.5)], [ran(first, 11, 1.0, 2.7)]
    (tasks if is_task else strays).append(ran(then, 20, 2.6, 3.0))
    assert f"{KEY} epoch {first}: its stray process went on for 0.100 s beside epoch {then}" in [*outlived(strays, tasks, set())]
    assert list(outlived(strays, tasks, {11})) == [], "its host was frozen"


def test_what_outlives_its_try_by_far_is_found_beside_each_that_follows() -> None:
    """R-CS9."""
    tasks = [ran(30, 10, 1.0, 2.0), ran(10, 20, 3.0, 4.0), ran(20, 30, 5.0, 6.0)]
    beside = [wrong.split()[-1] for wrong in outlived([ran(30, 11, 1.0, 5.5)], tasks, set())]
    assert beside == ["10", "20"]
