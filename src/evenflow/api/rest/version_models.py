"""What REST answers about versions and bundles. Times are UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field


class DagVersion(BaseModel):
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


class SettingChange(BaseModel):
    task_id: str | None = Field(description="Null: of the DAG itself.")
    setting: str
    before: Any = Field(description="Null: at its default.")
    after: Any


class FileChange(BaseModel):
    file: str
    kind: str = Field(description="`added`, `removed` or `changed`")
    text: str | None = Field(description="Unified diff; null where the file is too large or no text.")


class VersionDiff(BaseModel):
    before: int
    after: int
    added: list[str] = Field(description="Tasks that only the later version has.")
    removed: list[str]
    changes: list[SettingChange]
    files: list[FileChange]


class BundleSummary(BaseModel):
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


class ParseWarning(BaseModel):
    bundle: str
    file: str
    warnings: str = Field(description="One a line, each with its place.")
    parsed_at: datetime | None
