"""``evenflow dags versions | diff | sources``."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from evenflow.cli.output.terminal import Json, local_time, print_json, print_table, say
from evenflow.cli.remote import PAGE, remote
from evenflow.contracts import rest

SHORT = 12  # characters of a hash that tell commits apart


async def versions(dag_id: str, /, *, limit: Annotated[int, Parameter(help="How many at most.")] = 20, json: Json = False) -> None:
    """The versions of a DAG, the newest first, and where each came from. A run keeps the version that it began with."""
    async with remote() as client:
        page = await client.list_versions(dag_id, limit=limit)
    if json:
        print_json({"versions": page.items, "more": page.more})
        return
    rows = (
        (
            Text(f"{v.version_number}", style="bold") + Text("  newest" if v.is_newest else "", style="green"),
            local_time(v.created_at),
            v.tasks,
            v.runs,
            v.live_runs or "",
            v.file if v.bundle is None else f"{v.file} in {v.bundle}",
            (v.revision or v.code_hash)[:SHORT],
        )
        for v in page.items
    )
    print_table(("version", "since", "#tasks", "#runs", "#running", "file", "code"), rows, empty="It has no versions.")
    if page.more:
        say(f"... and more; see them with --limit {min(5 * limit, PAGE)}", "bright_black")


async def diff(
    dag_id: str,
    before: Annotated[int, Parameter(help="Version to compare from; else the one before the newest.")] = -1,
    after: Annotated[int, Parameter(help="Version to compare with; else the newest.")] = 0,
    /,
    *,
    json: Json = False,
) -> None:
    """What differs between two versions of a DAG: its tasks, its settings, its code."""
    async with remote() as client:
        found = await client.diff_versions(dag_id, before=before, after=after)
    if json:
        print_json(found)
    else:
        _tell(dag_id, found)


async def sources(*, json: Json = False) -> None:
    """Where DAG files come from: folders and git repositories, which commit is read, and what is wrong with them."""
    async with remote() as client:
        page = await client.list_bundles(limit=PAGE)
        warnings = await client.list_parse_warnings(limit=PAGE)
    if json:
        print_json({"sources": page.items, "warnings": warnings.items})
        return
    columns = ("source", "location", "ref", "commit", "refreshed", "#files", "#errors", "#waiting", "processor")
    print_table(columns, (_source(bundle) for bundle in page.items), empty="No processor has told of any. Start one: evenflow up")
    for bundle in page.items:
        if bundle.error:
            say(f"\n{bundle.name} on {bundle.host}: {bundle.error}", "red")
    for warned in warnings.items:
        tell_warnings(warned)


def tell_warnings(warned: rest.dags.ParseWarning) -> None:
    say(f"\n{warned.file} in {warned.bundle} is loaded with warnings:", "yellow")
    say("  " + warned.warnings.replace("\n", "\n  "))


def _source(bundle: rest.dags.BundleSummary) -> tuple[object, ...]:
    reader: object = f"{bundle.processor} on {bundle.host}" if bundle.processor else Text("none", style="yellow")
    commit = (bundle.revision or "")[:SHORT]
    errors = Text(str(bundle.errors), style="red") if bundle.errors else ""
    at = local_time(bundle.refreshed_at or bundle.parsed_at)
    return (
        Text(bundle.name, style="bold"),
        bundle.location,
        bundle.ref,
        commit,
        at,
        bundle.files,
        errors,
        bundle.waiting or "",
        reader,
    )


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
