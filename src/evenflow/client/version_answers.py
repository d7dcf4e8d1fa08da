"""What REST answers about versions and bundles, as its clients read it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from evenflow.client.answers import Answer


class DagVersion(Answer):
    version_number: int
    created_at: datetime
    bundle: str | None
    file: str
    revision: str | None
    code_hash: str
    spec_hash: str
    tasks: int
    is_newest: bool
    runs: int
    live_runs: int


class SettingChange(Answer):
    task_id: str | None
    setting: str
    before: Any
    after: Any


class FileChange(Answer):
    file: str
    kind: str
    text: str | None


class VersionDiff(Answer):
    before: int
    after: int
    added: list[str]
    removed: list[str]
    changes: list[SettingChange]
    files: list[FileChange]


class BundleSummary(Answer):
    name: str
    processor: str | None
    host: str | None
    kind: str | None
    location: str | None
    ref: str | None
    revision: str | None
    refreshed_at: datetime | None
    error: str | None
    files: int
    errors: int
    warned: int
    waiting: int
    parsed_at: datetime | None


class ParseWarning(Answer):
    bundle: str
    file: str
    warnings: str
    parsed_at: datetime | None
