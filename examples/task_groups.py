"""Groups of tasks: made once, used for each region, and joined as if each were one task."""

from __future__ import annotations

from evenflow import EmptyOperator, XComArg, dag, task, task_group


@task
def count_orders(region: str) -> int:
    return 10 * len(region)


@task
def count_returns(region: str) -> int:
    return len(region)


@task
def net(orders: int, returns: int) -> int:
    return orders - returns


@task
def total(counts: list[int]) -> int:
    print(f"{sum(counts)} in all")
    return sum(counts)


@task_group
def region_numbers(region: str) -> XComArg:
    """The ids inside are region_numbers.count_orders, region_numbers__1.count_orders, ..."""
    return net(count_orders(region), count_returns(region))


@dag(tags=["example"])
def task_groups() -> None:
    opened = EmptyOperator(task_id="books_opened")
    numbers = [region_numbers(region) for region in ("north", "south", "east")]
    opened >> numbers
    total(numbers)


task_groups()
