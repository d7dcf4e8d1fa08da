"""``evenflow dags versions | diff | sources``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from evenflow.cli.input.params import Limit
from evenflow.cli.output.replies import Cell, Reply, listed, replies
from evenflow.cli.output.terminal import local_time, say
from evenflow.cli.remote import read_pages, remote
from evenflow.contracts import rest
from evenflow.core.limits import PAGE

SHORT = 12  # characters of a hash that distinguish commits


@replies
async def versions(dag_id: str, /, *, limit: Limit = 20) -> Reply:
    """The versions of a DAG, the newest first, and the origin of each. A run keeps the version with which it began."""
    async with remote() as client:
        page = await read_pages(partial(client.list_versions, dag_id), limit)
    cells: dict[str, Cell[rest.dags.DagVersion]] = {
        "version_number": lambda v: Text(f"{v.version_number}", "bold") + Text("  newest" if v.is_newest else "", "green"),
        "live_runs": lambda v: v.live_runs or "",
        "file": lambda v: v.file if v.bundle is None else f"{v.file} in {v.bundle}",
        "code_hash": lambda v: (v.revision or v.code_hash)[:SHORT],
    }
    return listed("versions", page, rest.dags.DagVersion, cells=cells, limit=limit, empty="It has no versions.")


@replies
async def diff(
    dag_id: str,
    before: Annotated[int, Parameter(help="Version to compare from; else the one before the newest.")] = -1,
    after: Annotated[int, Parameter(help="Version to compare with; else the newest.")] = 0,
    /,
) -> Reply:
    """The differences between two versions of a DAG: its tasks, its settings, its code."""
    async with remote() as client:
        found = await client.diff_versions(dag_id, before=before, after=after)
    return Reply(found, lambda: _tell(dag_id, found))


@replies
async def sources() -> Reply:
    """Sources of DAG files: folders and git repositories, the commit that is read, and their errors."""
    async with remote() as client:
        page = await client.list_bundles(limit=PAGE)
        errors, warnings = await client.list_parse_errors(limit=PAGE), await client.list_parse_warnings(limit=PAGE)

    def tell_problems() -> None:
        for bundle in page.items:
            if bundle.error:
                say(f"\n{bundle.name} on {bundle.host}: {bundle.error}", "red")
        tell_plugins(page.items)
        for error in errors.items:
            if error.is_read:
                tell_error(error)
        for warned in warnings.items:
            tell_warnings(warned)

    empty = "No processor has told of any. Start one: evenflow up"
    return listed(
        "sources",
        page,
        rest.dags.BundleSummary,
        cells=_SOURCE,
        empty=empty,
        then=tell_problems,
        parse_errors=errors.items,
        warnings=warnings.items,
    )


def tell_plugins(bundles: Sequence[rest.dags.BundleSummary]) -> None:
    """Bundles of one environment have the same warnings."""
    told: dict[str, list[str]] = {}
    for bundle in bundles:
        for warning in bundle.warnings:
            told.setdefault(warning, []).append(bundle.name)
    for warning, names in told.items():
        say(f"\nIn the environment of {', '.join(sorted({*names}))}: {warning}", "yellow")


def tell_error(error: rest.dags.ParseError) -> None:
    place = f"{error.file}, line {error.error_line}" if error.error_line else error.file
    say(f"\n{place} (in {error.bundle}) cannot be read:", "red")
    say("  " + error.error.strip().removeprefix(f"{place}: ").replace("\n", "\n  "))


def tell_warnings(warned: rest.dags.ParseWarning) -> None:
    say(f"\n{warned.file} in {warned.bundle} is loaded with warnings:", "yellow")
    say("  " + warned.warnings.replace("\n", "\n  "))


_SOURCE: dict[str, Cell[rest.dags.BundleSummary]] = {
    "name": lambda b: Text(b.name, style="bold"),
    "revision": lambda b: (b.revision or "")[:SHORT],
    "refreshed_at": lambda b: local_time(b.refreshed_at or b.parsed_at),
    "errors": lambda b: Text(str(b.errors), style="red") if b.errors else "",
    "waiting": lambda b: b.waiting or "",
    "processor": lambda b: f"{b.processor} on {b.host}" if b.processor else Text("none", style="yellow"),
}


def _tell(dag_id: str, diff: rest.dags.VersionDiff) -> None:
    say(f"{dag_id}, version {diff.before} to {diff.after}", "bold")
    if not (diff.added or diff.removed or diff.changes or diff.files):
        say("They are the same.", "bright_black")
    for task_id in diff.added:
        say(f"+ task {task_id}", "green")
    for task_id in diff.removed:
        say(f"- task {task_id}", "red")
    for change in diff.changes:
        what = change.setting if change.task_id is None else f"task {change.task_id}: {change.setting}"
        say(f"~ {what}: {_value(change.before)} -> {_value(change.after)}", "yellow")
    for file in diff.files:
        say("")
        if file.text is None:
            say(f"{file.file} was {file.kind}; it is too large, or no text, to be shown", "bright_black")
        for line in (file.text or "").splitlines():
            say(line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], ""))


def _value(value: Any) -> str:
    import json

    return "(default)" if value is None else json.dumps(value, ensure_ascii=False)
