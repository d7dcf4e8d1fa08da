"""A DAG as authors write it, for the type checker: `test_typing` reads what it says of the lines marked with an error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

from evenflow import (
    DAG,
    Asset,
    AssetOrTimeSchedule,
    BaseOperator,
    BaseTrigger,
    BashOperator,
    Context,
    EmptyOperator,
    Param,
    TaskGroup,
    TaskInstance,
    TimeDeltaTrigger,
    TriggerEvent,
    chain,
    dag,
    get_current_context,
    task,
    task_group,
    wait_for,
)


@task
def extract(day: str, limit: int = 10) -> list[int]:
    return list(range(limit))


@task(retries=3, retry_delay=timedelta(seconds=5), pool="db", trigger_rule="all_done")
def load(rows: list[int], *, table: str, ti: TaskInstance | None = None, **context: Any) -> dict[str, int]:
    return {"n": len(rows)}


@task.bash(env={"A": "a"}, retries=1)
def shout(text: str) -> str:
    return f"echo {text}"


@task.spark(conn_id="spark_default", conf={"spark.sql.shuffle.partitions": "4"})
def count(spark: Any, path: str) -> int:
    return int(spark.read.parquet(path).count())


@task(while_deferred={"pool": "release"}, execution_timeout_counts_waiting=False)
async def waits(day: str, *, ti: TaskInstance | None = None) -> int:
    assert ti is not None
    job: int = ti.once("submit", lambda: 3)
    payload: str = await wait_for(TimeDeltaTrigger(timedelta(hours=1)), timeout=60)
    ti.once("submit", 3)  # error: arg-type
    await wait_for("an hour")  # error: arg-type
    return job + len(payload)


class Job(BaseOperator):
    def execute(self, context: Context) -> None:
        job: str = context.once("submit", lambda: "job 1")
        self.defer(trigger=Done(job), method_name="done", kwargs={"job": job}, timeout=timedelta(hours=1))

    def done(self, context: Context, event: str, job: str) -> str:
        return job

    def on_kill(self) -> None:
        self.defer(trigger="now", method_name="done")  # error: arg-type


class Done(BaseTrigger):
    def __init__(self, job: str) -> None:
        self.job = job

    async def run(self) -> AsyncIterator[TriggerEvent]:
        yield TriggerEvent(self.job)


@task_group(group_id="both")
def both(day: str) -> Any:
    return load(extract(day), table="t")


@task_group
def silent(day: str) -> None:
    extract(day)


@dag(
    "typed",
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    params={"n": Param(3, type="integer")},
    default_args={"retries": 1},
)
def typed(day: str = "today") -> None:
    rows = extract(day)
    loaded = load(rows, table="t")
    loaded["n"] >> EmptyOperator(task_id="end")
    chain(rows, [shout("a"), count("path")], EmptyOperator(task_id="joined"))
    load.partial(table="t").expand(rows=rows)
    load.override(task_id="again", retries=2)(rows, table="t") >> silent(day) >> both(day)
    waits(day) >> Job(task_id="job")
    waits.expand(day=["a"])
    waits(5)  # error: arg-type
    extract(5)  # error: arg-type
    extract()  # error: call-arg
    extract("x", limits=3)  # error: call-arg
    load(rows)  # error: call-arg
    count()  # error: call-arg
    shout(text=1)  # error: arg-type
    extract.function("x").append("y")  # error: arg-type


@task(retrys=3)  # error: call-overload
def misspelt() -> None: ...


def classic() -> DAG:
    with DAG("classic", schedule=None, tags=["x"]) as made, TaskGroup("g"):
        first = BashOperator(task_id="a", bash_command="true", retries=2)
        [first] >> BashOperator.partial(task_id="b").expand(bash_command=["true"])
        first >> [EmptyOperator(task_id="c"), EmptyOperator(task_id="d")]
    orders, customers = Asset("orders"), Asset("customers")
    for schedule in (orders, orders | customers, AssetOrTimeSchedule(timetable="@daily", assets=orders)):
        DAG("on_assets", schedule=schedule)
    DAG("on_all", schedule=[orders, customers])
    EmptyOperator(task_id="e", pol="x")  # error: call-arg
    DAG("x", shedule="@daily")  # error: call-arg
    return made


def inside() -> str:
    context: Context = get_current_context()
    return str(context["ds"])


typed()
typed("yesterday").test(params={"n": 1}).raise_on_failure()
typed(5)  # error: arg-type
