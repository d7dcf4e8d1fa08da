"""DAGs, their versions, and the bundles that they come from."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from evenflow.contracts.rest.record import Instant, Record, Request, RunWord, ServiceWord
from evenflow.core import limits
from evenflow.core.spec.diff import SettingChange


class RecentRun(Record):
    run_id: str
    state: RunWord
    created_at: datetime
    elapsed_s: float | None


class DagSummary(Record):
    dag_id: str = Field(title="DAG")
    display_name: str = Field(description="The dag_id, unless the DAG has another name for people.")
    service_state: ServiceWord = Field(title="state")
    is_paused: bool
    paused_reason: str | None = Field(description="Why it is paused, when nobody paused it.")
    is_active: bool = Field(description="False: the file that defined it is gone, or defines it no more.")
    schedule: str | None = Field(title="schedule", description="In words; null: it runs when somebody triggers it.")
    timezone: str | None
    last_run_id: str | None
    last_run_state: RunWord | None = Field(title="last run")
    last_run_at: datetime | None = Field(title="at")
    next_run_at: datetime | None = Field(title="next")
    next_logical: datetime | None
    bundle: str
    file: str = Field(title="file")
    version_number: int
    updated_at: datetime
    description: str
    owner: str
    tags: list[str]
    recent_runs: list[RecentRun] = Field(description="The newest first, as many as were asked for.")


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
    group: str | None = Field(description="The innermost group that it is in.")


class DagGroup(Record):
    """Tasks that are shown, and may be mapped, together."""

    group_id: str
    group: str | None = Field(description="The group that it is in.")
    tooltip: str
    mapped: bool


class DagParam(Record):
    model_config = ConfigDict(serialize_by_alias=True)

    name: str
    default: Any
    required: bool
    json_schema: dict[str, Any] = Field(alias="schema")
    description: str


class DagDeadline(Record):
    name: str = Field(title="deadline")
    when: str = Field(title="due", description="In words.")
    callbacks: int = Field(description="Functions that are called when it is missed.")
    next_due_at: datetime | None = Field(title="next", description="Null: no run waits or runs, and the schedule makes none.")
    next_run_id: str | None = Field(title="of", description="Null: of the next date of the schedule.")
    missed: int = Field(title="missed", description=f"How many of the newest {limits.DEADLINE_RUNS} runs have missed it.")
    last_missed_run_id: str | None = Field(title="last by")
    last_missed_due_at: datetime | None


class DagDetail(DagSummary):
    doc: str
    owner_links: dict[str, str] = Field(description="Where to find owners: https:// or mailto:.")
    max_active_runs: int | None
    max_active_tasks: int | None
    deadlines: list[DagDeadline]
    params: list[DagParam]
    tasks: list[DagTask]
    groups: list[DagGroup] = Field(description="A group comes after the one that it is in.")


class DagChange(Request):
    is_paused: bool


class DateSkip(Request):
    until: Instant | None = Field(
        default=None, description="The last logical date, included, that counts as done; now when absent."
    )


class DagRelease(Request):
    bundle: str = Field(min_length=1, max_length=limits.MAX_FOLDER_CHARS, description="The bundle that is to have the DAG.")


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
    name: str = Field(title="source")
    kind: str | None = Field(description="`local` or `git`")
    location: str | None = Field(title="location")
    ref: str | None = Field(title="ref")
    revision: str | None = Field(title="commit", description="The commit whose files are read.")
    refreshed_at: datetime | None = Field(title="refreshed")
    error: str | None = Field(description="Why the source cannot be refreshed or read.")
    warnings: list[str] = Field(description="What plugins of its environment have that Evenflow does not serve.")
    files: int = Field(title="files")
    errors: int = Field(title="errors", description="Files that cannot be loaded, or whose DAGs were refused.")
    warned: int
    waiting: int = Field(title="waiting", description="Files that have changed and are not parsed yet.")
    parsed_at: datetime | None
    processor: str | None = Field(title="processor", description="Null: no processor that lives reads this bundle.")
    host: str | None


class DagVersion(Record):
    version_number: int = Field(title="version")
    created_at: datetime = Field(title="since")
    tasks: int = Field(title="tasks")
    is_newest: bool
    runs: int = Field(title="runs")
    live_runs: int = Field(title="running", description="Runs of this version that wait or run.")
    bundle: str | None = Field(description="Where it was found first.")
    file: str = Field(title="file")
    revision: str | None = Field(description="The commit that it was found in first, where the bundle has commits.")
    code_hash: str = Field(title="code")
    spec_hash: str


class CodeFile(Record):
    file: str
    text: str | None = Field(description="Null where the file is too large or no text.")


class DagCode(Record):
    version_number: int
    file: str = Field(description="That defines the DAG.")
    files: list[CodeFile] = Field(description="That file first, then those that it imports.")


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
