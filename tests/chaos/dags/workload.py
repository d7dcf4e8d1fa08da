"""The work of the fault suite: every shape of a run whose right end is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ledger import Entry

from evenflow import TaskFailedForGood, dag, get_current_context, task

# Infrastructure that is lost again and again becomes a failure of the task, so each has tries to spare.
SPARE: dict[str, Any] = {"retries": 4, "retry_delay": 0.05}


def work(seconds: float) -> Entry:
    entry = Entry(get_current_context()["ti"])
    entry.begin()
    entry.work(seconds)
    return entry


@dag(default_args=SPARE)
def chain() -> None:
    @task
    def link(before: int, seconds: float) -> int:
        work(seconds).end()
        return before + 1

    link.override(task_id="e")(
        link.override(task_id="d")(
            link.override(task_id="c")(link.override(task_id="b")(link.override(task_id="a")(0, 0.05), 0.2), 0.0), 0.4
        ),
        0.1,
    )


@dag(default_args=SPARE)
def fan() -> None:
    """Six in a pool for two."""

    @task
    def open_() -> int:
        work(0.0).end()
        return 1

    @task(pool="narrow")
    def side(one: int, number: int) -> int:
        work(0.1 + 0.05 * number).end()
        return one * number

    @task
    def close(sides: list[int]) -> int:
        work(0.0).end()
        return sum(sides)

    one = open_()
    close([side.override(task_id=f"side_{number}")(one, number) for number in range(6)])


@dag(default_args=SPARE, max_active_tasks=3)
def mapped() -> None:
    @task
    def parts() -> list[int]:
        work(0.05).end()
        return list(range(5))

    @task
    def part(number: int) -> int:
        work(0.15).end()
        return number * number

    @task
    def total(squares: list[int]) -> int:
        work(0.0).end()
        if sum(squares) != 30:
            raise TaskFailedForGood(f"the squares are {squares}")
        return sum(squares)

    total(part.expand(number=parts()))


@dag(default_args=SPARE)
def branching() -> None:
    @task.branch
    def choose() -> str:
        work(0.05).end()
        return "left"

    @task
    def left() -> None:
        work(0.2).end()

    @task
    def right() -> None:
        work(0.2).end()

    @task(trigger_rule="none_failed_min_one_success")
    def joined() -> None:
        work(0.0).end()

    choose() >> [left(), right()] >> joined()


@dag(default_args=SPARE)
def flaky() -> None:
    """Fails on its first try, and succeeds on the second."""

    @task
    def again() -> None:
        entry = work(0.1)
        if get_current_context()["ti"].try_number == 1:
            entry.end("raised")
            raise RuntimeError("the first try fails")
        entry.end()

    @task
    def after() -> None:
        work(0.0).end()

    again() >> after()


@dag(default_args={"retry_delay": 0.05})
def doomed() -> None:
    @task
    def before() -> None:
        work(0.0).end()

    @task
    def fails() -> None:
        work(0.1).end("raised")
        raise TaskFailedForGood("it always does")

    @task
    def never() -> None:
        work(0.0).end()

    before.override(retries=4)() >> fails() >> never()


@dag(default_args=SPARE)
def long() -> None:
    @task
    def lasts() -> int:
        work(3.0).end()
        return 3

    @task
    def heavy(three: int) -> str:
        """A result that goes to object storage."""
        work(0.05).end()
        return "x" * 400_000 * three

    @task
    def weigh(text: str) -> int:
        work(0.0).end()
        return len(text)

    weigh(heavy(lasts()))


@dag(
    default_args=SPARE,
    schedule=timedelta(days=1),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    end_date=datetime(2026, 1, 6, tzinfo=UTC),
    catchup=True,
    max_active_runs=2,
)
def nightly() -> None:
    """Its runs are due at once, each of them once."""

    @task
    def night() -> None:
        work(0.1).end()

    night()


chain(), fan(), mapped(), branching(), flaky(), doomed(), long(), nightly()
