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
    from_date: Instant | None = Field(default=None, description="The first logical date, included; null only over keys.")
    to_date: Instant | None = Field(default=None, description="The last one, included; null only over keys.")
    partitions_of: str | None = Field(
        default=None,
        max_length=limits.MAX_ASSET_NAME,
        description="An asset with partitions: only runs that make one that is missing, or with `reprocess` completed any. If its "
        "partitions are keys, there is a run for each.",
    )
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
        if (self.from_date is None) != (self.to_date is None) or (self.from_date is None and self.partitions_of is None):
            raise ValueError("a backfill has a first and a last date, unless it is over the keys of an asset: say both")
        if self.dates is not None and self.dates[1] < self.dates[0]:
            raise ValueError("the last date is before the first: exchange them")
        return self

    @property
    def dates(self) -> tuple[datetime, datetime] | None:
        """The first and the last; None: it is over keys."""
        return None if self.from_date is None or self.to_date is None else (self.from_date, self.to_date)


class BackfillChange(Request):
    is_paused: bool


class BackfillDate(Record):
    logical_date: datetime | None = Field(title="logical date")
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    partition: str | None = Field(title="partition", description="That its run makes, of the asset of the backfill.")
    run_id: str | None = Field(title="run")
    state: RunWord | None = Field(title="state")
    passed_over: str | None = Field(title="passed over", description="Why it gets no run of this backfill.")


class BackfillPlan(Record):
    backfill_id: int | None = Field(description="Null: nothing was made.")
    runs: list[BackfillDate] = Field(description="In the order in which they are made.")


class Backfill(Record):
    backfill_id: int = Field(title="backfill")
    dag_id: str = Field(title="DAG")
    from_date: datetime | None = Field(title="from")
    to_date: datetime | None = Field(title="to")
    partitions_of: str | None = Field(title="partitions of")
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
