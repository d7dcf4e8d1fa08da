from __future__ import annotations

from typing import Any

import pytest

from evenflow.core.model import TaskSpec
from evenflow.core.retry import MAX_DELAY_S, next_delay


def spec(**settings: Any) -> TaskSpec:
    return TaskSpec(task_id="t", operator="python", **settings)


def test_a_constant_delay_stays() -> None:
    assert [next_delay(spec(retry_delay=5.0), n) for n in (1, 2, 9)] == [5.0, 5.0, 5.0]


def test_the_delay_grows_by_the_factor_up_to_its_limit() -> None:
    task = spec(retry_delay=10.0, retry_exponential_backoff=2.0, max_retry_delay=60.0)
    assert [next_delay(task, n) for n in (1, 2, 3, 4, 5)] == [10.0, 20.0, 40.0, 60.0, 60.0]


@pytest.mark.parametrize("try_number", [20, 1000, 32_000])
def test_no_delay_is_above_a_day(try_number: int) -> None:
    assert next_delay(spec(retry_delay=300.0, retry_exponential_backoff=2.0), try_number) == MAX_DELAY_S


def test_no_delay_at_all() -> None:
    assert next_delay(spec(retry_delay=0.0, retry_exponential_backoff=3.0), 5) == 0.0
