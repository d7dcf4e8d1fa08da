"""A task that fails now and then, and one that knows when trying again is useless."""

from __future__ import annotations

from evenflow import TaskFailedForGood, TaskInstance, dag, task


@task(retries=3, retry_delay=1, retry_exponential_backoff=True, max_retry_delay=10)
def fetch(ti: TaskInstance) -> int:
    """Tries again after 1 s, 2 s, 4 s; here the third try succeeds."""
    if ti.try_number < 3:
        raise ConnectionError(f"try {ti.try_number} of {ti.max_tries + 1}: the other side hung up")
    return 42


@task(retries=3, retry_delay=1)
def check(value: int) -> None:
    """A wrong value stays wrong, so its remaining tries are not used."""
    if value < 0:
        raise TaskFailedForGood(f"{value} is negative")
    print(f"{value} is fine")


@dag(tags=["example"])
def retries() -> None:
    check(fetch())


retries()
