"""DAGs, their versions, and the bundles that they come from."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from evenflow.contracts.rest.record import Record, Request, RunWord, ServiceWord
from evenflow.core.spec_diff import SettingChange


class DagSummary(Record):
    dag_id: str
    display_name: str = Field(description="The dag_id, unless the DAG has another name for people.")
    is_paused: bool
    paused_reason: str | None = Field(description="Why it is paused, when nobody paused it.")
    is_active: bool = Field(description="False: the file that defined it is gone, or defines it no more.")
    bundle: str
    file: str
    version_number: int
    schedule: str | None = Field(description="In words; null: it runs when somebody triggers it.")
    timezone: str | None
    next_run_at: datetime | None
    next_logical: datetime | None
    updated_at: datetime
    description: str
    owner: str
    tags: list[str]
    last_run_id: str | None
    last_run_state: RunWord | None
    last_run_at: datetime | None
    service_state: ServiceWord


class DagTask(Record):
    task_id: str
    display_name: str = Field(description="The task_id, unless the task has another name for people.")
    operator: str
    upstream: list[str]
    trigger_rule: str
    mapped: bool
    pool: str
    queue: str
    priority_weight: int
    retries: int


class DagParam(Record):
    model_config = ConfigDict(serialize_by_alias=True)

    name: str
    default: Any
    required: bool
    json_schema: dict[str, Any] = Field(alias="schema")
    description: str


class DagDetail(DagSummary):
    doc: str
    owner_links: dict[str, str] = Field(description="Where to find owners: https:// or mailto:.")
    max_active_runs: int | None
    max_active_tasks: int | None
    params: list[DagParam]
    tasks: list[DagTask]


class DagChange(Request):
    is_paused: bool


class DagRelease(Request):
    bundle: str = Field(min_length=1, max_length=100, description="The bundle that is to have the DAG.")


class DeletedDag(Record):
    dag_id: str
    runs: int = Field(description="How many runs of it were deleted, or would be.")


class ParseError(Record):
    bundle: str
    file: str
    error: str
    error_line: int | None
    parsed_at: datetime | None
    is_read: bool = Field(description="Whether a processor that lives reads the bundle still.")


class ParseWarning(Record):
    bundle: str
    file: str
    warnings: str = Field(description="One a line, each with its place.")
    parsed_at: datetime | None


class BundleSummary(Record):
    name: str
    processor: str | None = Field(description="Null: no processor that lives reads this bundle.")
    host: str | None
    kind: str | None = Field(description="`local` or `git`")
    location: str | None
    ref: str | None
    revision: str | None = Field(description="The commit whose files are read.")
    refreshed_at: datetime | None
    error: str | None = Field(description="Why the source cannot be refreshed or read.")
    files: int
    errors: int = Field(description="Files that cannot be loaded, or whose DAGs were refused.")
    warned: int
    waiting: int = Field(description="Files that have changed and are not parsed yet.")
    parsed_at: datetime | None


class DagVersion(Record):
    version_number: int
    created_at: datetime
    bundle: str | None = Field(description="Where it was found first.")
    file: str
    revision: str | None = Field(description="The commit that it was found in first, where the bundle has commits.")
    code_hash: str
    spec_hash: str
    tasks: int
    is_newest: bool
    runs: int
    live_runs: int = Field(description="Runs of this version that wait or run.")


class FileChange(Record):
    file: str
    kind: str = Field(description="`added`, `removed` or `changed`")
    text: str | None = Field(description="Unified diff; null where the file is too large or no text.")


class VersionDiff(Record):
    before: int
    after: int
    added: list[str] = Field(description="Tasks that only the later version has.")
    removed: list[str]
    changes: list[SettingChange]
    files: list[FileChange]
