"""What REST takes and answers about clearing, marking and history."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from evenflow.api import limits
from evenflow.api.rest.models import Name, Request
from evenflow.core.operations import Only
from evenflow.core.states import RunState, TaskState


class Scope(Request):
    """Which tasks of which runs."""

    tasks: list[Name] | None = Field(
        default=None, min_length=1, max_length=limits.OPERATED_TASKS, description="All of the run when absent."
    )
    map_indexes: list[Annotated[int, Field(ge=0)]] | None = Field(
        default=None, min_length=1, max_length=limits.OPERATED_TASKS, description="Of mapped tasks, only these instances."
    )
    upstream: bool = Field(default=False, description="Also all that these tasks depend on.")
    downstream: bool = Field(default=False, description="Also all that depends on these tasks.")
    past: bool = Field(default=False, description="Also in the runs of the DAG before this one.")
    future: bool = Field(default=False, description="Also in the runs of the DAG after this one.")
    dry_run: bool = Field(default=False, description="Only say what would be touched.")


class ClearRequest(Scope):
    only: Only | None = Field(default=None, description="Only what failed (or could not start because of that), or what runs.")


class MarkRequest(Scope):
    state: Literal["success", "failed", "skipped"]


class TouchedInstance(BaseModel):
    run_id: str
    task_id: str
    map_index: int
    state: TaskState = Field(description="As it was when this was asked.")


class Operated(BaseModel):
    dry_run: bool
    runs: list[str]
    instances: list[TouchedInstance]
    more: bool = Field(description="Whether there are more instances than are listed.")
    total: int = Field(description="How many instances there are; at least so many unless `counted`.")
    counted: bool
    already: bool = Field(description="Of a mark: whether all that is meant was so already when this was asked.")


class RunEvent(BaseModel):
    at: datetime
    event: str
    state: RunState
    actor: str
    detail: dict[str, Any] | None


class TaskEvent(BaseModel):
    at: datetime
    map_index: int
    try_number: int
    event: str
    state: TaskState
    actor: str | None = Field(description="Who did it, when it was a person.")
    detail: dict[str, Any] | None
