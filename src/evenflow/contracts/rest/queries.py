"""Requests that stand in the query of a URL: which part of a list is wanted, and of what.

They are beside the subjects, because only the API reads them; callers know them by their names.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenflow.contracts.rest.record import Instant, ObjectName, Record, Request
from evenflow.core import limits
from evenflow.core.model import UNMAPPED
from evenflow.core.service import TokenKind, TokenState
from evenflow.core.states import RunState, TaskState


class PageQuery(Request):
    """A part of a list: its first page, or with a cursor the one after the page that had it as its `next`."""

    limit: int = Field(default=limits.PAGE_DEFAULT, ge=1, le=limits.PAGE)
    cursor: str | None = Field(
        default=None,
        min_length=1,
        max_length=limits.MAX_CURSOR_CHARS,
        description="The `next` of the page before, with the same filters. The first page when absent.",
    )


class DagQuery(PageQuery):
    retired: bool = Field(default=False, description="Also DAGs whose file is gone.")
    search: str | None = Field(
        default=None,
        min_length=1,
        max_length=limits.MAX_NAME_CHARS,
        description="Only those with this in their names, tags or owner.",
    )
    recent: int = Field(default=0, ge=0, le=limits.RECENT_RUNS, description="So many of the newest runs of each.")


class GridQuery(Request):
    limit: int = Field(default=25, ge=1, le=limits.GRID_RUNS)
    offset: int = Field(default=0, ge=0, le=limits.GRID_TOTAL, description="Of the newest runs so many are passed over.")


class CodeQuery(Request):
    version: int = Field(default=0, ge=0, description="The newest when absent.")


class DeletionQuery(Request):
    dry_run: bool = Field(default=False, description="Only say how many runs that would be.")


class DiffQuery(Request):
    before: int = -1
    after: int = 0


class RunQuery(PageQuery):
    dag_id: str | None = None
    state: RunState | None = None


class RunNameQuery(Request):
    dag_id: ObjectName | None = None


class TaskQuery(PageQuery):
    task_id: str | None = None
    state: TaskState | None = None


class TaskEventQuery(PageQuery):
    map_index: int | None = Field(default=None, ge=UNMAPPED, description="Only of this instance of a mapped task.")


class InstanceQuery(Request):
    map_index: int = Field(default=UNMAPPED, ge=UNMAPPED, description="-1 of a task that is not mapped.")


class TryQuery(InstanceQuery):
    try_number: int | None = Field(default=None, ge=1, description="The newest when absent.")


class LogStreamQuery(TryQuery):
    offset: int = Field(default=0, ge=0, description="Bytes that are known already.")


class LogQuery(LogStreamQuery):
    wait_s: float = Field(default=0.0, ge=0, description="Wait for so long until there is more.")


class XComQuery(PageQuery):
    task_id: str | None = None


class WaitingQuery(PageQuery):
    dag_id: ObjectName | None = Field(default=None, description="Only those of tasks of this DAG.")
    run_id: ObjectName | None = Field(default=None, description="Only those of runs with this name.")


class ApprovalQuery(WaitingQuery):
    limit: int = Field(default=limits.PAGE_DEFAULT, ge=1, le=limits.QUESTIONS)


class BackfillQuery(PageQuery):
    dag_id: str | None = None


class AssetQuery(PageQuery):
    name: str | None = Field(default=None, description="Only the asset with this name.")


class AssetEventQuery(PageQuery):
    asset: str | None = None


class PartitionQuery(PageQuery):
    asset: str
    from_date: Instant | None = Field(default=None, description="By default that of the first partition that there is.")
    to_date: Instant | None = Field(default=None, description="By default that of the newest partition whose time is over.")
    is_done: bool | None = Field(default=None, description="Only those that there are, or that are missing.")


class ChangeQuery(PageQuery):
    actor: str | None = None
    action: str | None = Field(default=None, description="An action, or a kind of them: `pool`.")
    object: str | None = Field(default=None, description="A name. That of a DAG stands for its runs, too.")


class EventExportQuery(Request):
    after: str | None = Field(
        default=None,
        pattern=r"^\d{1,19}\.\d{1,19}$",
        description="Of the last line that was read: its XACT.EVENT_ID.",
    )
    since: Instant | None = Field(default=None, description="Only what happened from then on.")
    until: Instant | None = Field(default=None, description="Only what happened before.")


class PlanQuery(Request):
    limit: int = Field(default=20, ge=1, le=limits.LANES_SHOWN)
    pool: ObjectName | None = Field(default=None, description="With slots: what would follow if this pool had these.")
    slots: int | None = Field(default=None, ge=0, le=limits.INT32_MAX, description="Of the pool.")


class LiveQuery(Request):
    dag_id: ObjectName | None = Field(default=None, description="Only what moves in runs of this DAG, and which of their tasks.")
    run_id: ObjectName | None = Field(default=None, description="With dag_id: only what moves in this run.")


class ServiceStatesQuery(Request):
    paused_dags: bool = Field(default=True, description="Also DAGs that are paused and no more.")


class IdentityLoginQuery(Request):
    then: str = Field(
        default="/",
        max_length=limits.MAX_LINK_CHARS,
        pattern=r"^/([!-.0-\[\]-~][!-~]*)?$",
        description="The page to which the login leads.",
    )


class IdentityAnswerQuery(Record):
    """As the provider leads back; what else it says is for others."""

    code: str | None = Field(default=None, max_length=limits.MAX_TOKEN_CHARS)
    state: str | None = Field(default=None, max_length=limits.MAX_PROVIDER_WORD_CHARS)
    error: str | None = Field(default=None, max_length=limits.MAX_PROVIDER_WORD_CHARS)
    error_description: str | None = Field(default=None, max_length=limits.MAX_PROVIDER_REASON_CHARS)


class TokenQuery(PageQuery):
    kind: TokenKind | Literal["session"] | None = None
    state: TokenState | None = None


class RevealQuery(Request):
    reveal: bool = Field(default=False, description="Show what is secret, too.")
