"""What history says: the marts that the history pipeline returns, summed up."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from evenflow.contracts.rest.record import Record


class InsightDay(Record):
    day: str = Field(description="YYYY-MM-DD, in UTC.")
    runs: int = Field(description="That began.")
    tries: int
    run_p99_s: float | None = Field(description="How late runs began, of the DAG that was latest: the 99th percentile.")
    wait_p99_s: float | None = Field(description="How long tries waited for limits and workers, likewise.")
    slot_hours: float = Field(description="Hours of running, times the slots of their pools.")
    wait_hours: float = Field(description="Hours waited, but for upstream tasks.")
    seconds: dict[str, float] = Field(description="By cause how long task instances waited, ran and were deferred.")


class LimitAdvice(Record):
    cause: str = Field(description="pool, run cap, task cap or executor.")
    limit_name: str | None
    more: int = Field(description="By how much: the fewest more that save most of what was waited for it.")
    saved_hours: float = Field(description="With so much more of it so many hours would not have been waited.")
    wait_hours: float


class DearDag(Record):
    dag_id: str
    owner: str | None
    tries: int
    slot_hours: float
    wait_hours: float


class DriftingTask(Record):
    dag_id: str
    task_id: str
    tries: int
    p50_s: float
    drift: float = Field(description="The median of its last day, as a multiple of that of the days before.")


class LongTry(Record):
    """A try that ran far longer than its task does."""

    dag_id: str
    task_id: str
    run_id: str | None
    map_index: int
    try_number: int
    began_at: datetime
    seconds: float
    usual_s: float = Field(description="The median of its task.")


class Insights(Record):
    made_at: datetime | None = Field(description="When the history pipeline has returned this; null where it never has.")
    violations: int = Field(description="What must never be, and was.")
    days: list[InsightDay] = Field(description="The oldest first.")
    advice: list[LimitAdvice]
    dearest: list[DearDag]
    drifting: list[DriftingTask]
    anomalies: list[LongTry]
