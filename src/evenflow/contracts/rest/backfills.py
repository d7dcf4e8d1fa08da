"""Backfills: runs of past dates."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from pydantic import Field, model_validator

from evenflow.contracts.rest.record import Instant, Record, Request, RunWord, Word
from evenflow.core import limits
from evenflow.core.limits import INT32_MAX


class Reprocess(StrEnum):
    NONE = "none"
    FAILED = "failed"
    COMPLETED = "completed"


class BackfillRequest(Request):
    from_date: Instant = Field(description="The first logical date, included.")
    to_date: Instant = Field(description="The last one, included.")
    reverse: bool = Field(default=False, description="The newest date first.")
    reprocess: Reprocess = Field(
        default=Reprocess.NONE,
        description="Which dates that have a run already run again: none, those that failed, or all that ended.",
    )
    max_active_runs: int = Field(default=10, ge=1, le=limits.BACKFILL_RUNS, description="Of its runs, how many at once.")
    params: dict[str, Any] = Field(default_factory=dict)
    priority: int = Field(default=-1, ge=-INT32_MAX, le=INT32_MAX, description="Of its runs; scheduled ones have 0.")
    dry_run: bool = Field(default=False, description="Make nothing, only say what would be made.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.to_date < self.from_date:
            raise ValueError("the last date is before the first: exchange them")
        return self


class BackfillChange(Request):
    is_paused: bool


class BackfillDate(Record):
    logical_date: datetime = Field(title="logical date")
    data_interval_start: datetime
    data_interval_end: datetime
    run_id: str | None = Field(title="run")
    state: RunWord | None = Field(title="state")
    passed_over: str | None = Field(title="passed over", description="Why it gets no run of this backfill.")


class BackfillPlan(Record):
    backfill_id: int | None = Field(description="Null: nothing was made.")
    runs: list[BackfillDate] = Field(description="In the order in which they are made.")


class Backfill(Record):
    backfill_id: int = Field(title="backfill")
    dag_id: str = Field(title="DAG")
    from_date: datetime = Field(title="from")
    to_date: datetime = Field(title="to")
    is_reversed: bool
    reprocess: Reprocess | Word = Field(union_mode="left_to_right")
    max_active_runs: int
    params: dict[str, Any]
    priority: int
    is_paused: bool = Field(title="state")
    created_at: datetime
    created_by: str
    ended_at: datetime | None
    cancelled_by: str | None
    total: int = Field(title="runs")
    waiting: int = Field(title="waiting", description="Dates whose run is not made yet.")
    active: int = Field(title="active")
    success: int = Field(title="success")
    failed: int = Field(title="failed")
    passed_over: int = Field(title="passed over")
