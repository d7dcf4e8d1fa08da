"""Versions of DAGs, their code, and what differs between them, as unified diffs; and the bundles that they come from."""

from __future__ import annotations

import asyncio
import difflib
from typing import Annotated

from fastapi import Query, Request

from evenflow.api import limits
from evenflow.api.rest.context import Connection, InScope, InSlice
from evenflow.api.rest.dags import current_version
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.dags import BundleSummary, CodeFile, DagCode, DagVersion, FileChange, ParseWarning, VersionDiff
from evenflow.contracts.rest.queries import CodeQuery, DiffQuery
from evenflow.contracts.rest.record import Page
from evenflow.core.limits import LEASE_S
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.core.spec.diff import diff_specs
from evenflow.errors import DagNotFound
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.serving import dags, views
from evenflow.wire.code import read_archive

routes = Routes("DAGs")


@routes.get("/dags/{dag_id}/versions", Role.VIEWER)
async def list_versions(http: Request, conn: Connection, dag_id: str, query: InSlice) -> Page[DagVersion]:
    """The versions of a DAG, the newest first. A run keeps the one that it began with."""
    await current_version(conn, dag_id)
    part = part_of(http, query, int)
    rows = await views.list_versions(conn, dag_id, limit=part.limit, after=part.after)
    return part.page(Page[DagVersion], rows)


@routes.get("/dags/{dag_id}/diff", Role.VIEWER)
async def diff_versions(conn: Connection, dag_id: str, query: Annotated[DiffQuery, Query()]) -> VersionDiff:
    """What differs between two versions: tasks, settings and code. 0 is the newest one, -1 the one before that."""
    await current_version(conn, dag_id)
    old, new = await _version(conn, dag_id, query.before), await _version(conn, dag_id, query.after)
    spec = diff_specs(old.spec, new.spec)
    return VersionDiff.model_validate(
        {
            "before": old.version_number,
            "after": new.version_number,
            "added": spec.added,
            "removed": spec.removed,
            "changes": spec.changes,
            "files": await _diff_files(conn, old, new),
        }
    )


@routes.get("/dags/{dag_id}/code", Role.VIEWER)
async def read_code(conn: Connection, dag_id: str, query: Annotated[CodeQuery, Query()]) -> DagCode:
    """The files that a version was read from."""
    await current_version(conn, dag_id)
    version = await _version(conn, dag_id, query.version)
    archive = await dags.read_code(conn, version.code_hash)
    assert archive is not None  # a version refers to its code
    files = await asyncio.to_thread(show_code, archive, version.file)
    return DagCode(version_number=version.version_number, file=version.file, files=files)


@routes.get("/bundles", Role.VIEWER, ScopedBy.ANSWER)
async def list_bundles(http: Request, conn: Connection, scope: InScope, query: InSlice) -> Page[BundleSummary]:
    """The sources of DAG files, as each processor that lives sees them."""
    part = part_of(http, query, str, str, int)
    rows = await views.list_bundles(conn, lease_s=LEASE_S, scope=scope, limit=part.limit, after=part.after)
    return part.page(Page[BundleSummary], rows, _bundle)


@routes.get("/parse-warnings", Role.VIEWER, ScopedBy.ANSWER)
async def list_parse_warnings(http: Request, conn: Connection, scope: InScope, query: InSlice) -> Page[ParseWarning]:
    """DAG files that Python warned of while they were loaded."""
    part = part_of(http, query, str, str)
    rows = await views.list_parse_warnings(conn, scope=scope, limit=part.limit, after=part.after)
    return part.page(Page[ParseWarning], rows)


def _bundle(row: Row) -> Row:
    keys = ("kind", "location", "ref", "revision", "refreshed_at", "error")
    state = row["state"] or {}
    return {**row, **{key: state.get(key) for key in keys}, "warnings": state.get("warnings", [])}


async def _version(conn: AsyncConn, dag_id: str, number: int) -> views.VersionSource:
    version = await views.read_version(conn, dag_id, number)
    if version is None:
        which = f"no version {number}" if number > 0 else f"no version before the newest by {-number}"
        raise DagNotFound(f"DAG {dag_id!r} has {which}.", hint=f"To see all, type: evenflow dags versions {dag_id}")
    return version


async def _diff_files(conn: AsyncConn, old: views.VersionSource, new: views.VersionSource) -> list[FileChange]:
    if old.code_hash == new.code_hash:
        return []
    before, after = await dags.read_code(conn, old.code_hash), await dags.read_code(conn, new.code_hash)
    assert before is not None  # a version refers to its code
    assert after is not None
    return await asyncio.to_thread(diff_code, before, after)


def diff_code(before: bytes, after: bytes) -> list[FileChange]:
    """Both are archives."""
    old, new = read_archive(before), read_archive(after)
    return [
        FileChange(file=file, kind=_kind(old, new, file), text=_unified(file, old.get(file, b""), new.get(file, b"")))
        for file in sorted(old.keys() | new.keys())
        if old.get(file) != new.get(file)
    ]


def show_code(archive: bytes, first: str) -> list[CodeFile]:
    """The file ``first``, then the others by name."""
    files = read_archive(archive)
    return [CodeFile(file=file, text=_text(files[file])) for file in sorted(files, key=lambda file: (file != first, file))]


def _text(data: bytes) -> str | None:
    if len(data) > limits.DIFFED_FILE:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _kind(old: dict[str, bytes], new: dict[str, bytes], file: str) -> str:
    if file not in old:
        return "added"
    return "changed" if file in new else "removed"


def _unified(file: str, before: bytes, after: bytes) -> str | None:
    old, new = _text(before), _text(after)
    if old is None or new is None:
        return None
    return "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), f"a/{file}", f"b/{file}", lineterm=""))
