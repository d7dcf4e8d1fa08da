"""How much a spec may hold. Said when a DAG is made, where its author sees it, and asked again where a spec arrives."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from evenflow.core import limits
from evenflow.core.assets import leaves
from evenflow.core.callbacks import OWN_DAGS
from evenflow.core.json_values import flaw_of
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.errors import BadId, BadSchedule, BadSetting, DagError, DagTooLarge

LINKS = ("https://", "http://", "mailto:")  # what an owner's link may begin with: it is shown to be clicked


class Size(NamedTuple):
    what: str
    size: int
    most: int


def check_size(spec: DagSpec) -> None:
    """Raises :class:`DagError` for the first thing of a DAG that is more than Evenflow keeps."""
    where = f"DAG {spec.dag_id!r:.300}"
    check_own(spec.dag_id)
    _check(where, _of_dag(spec))
    for task in spec.tasks:
        _check(f"{where}, task {task.task_id!r:.300}", _of_task(task))
    for group in spec.groups:
        _check(f"{where}, group {group.group_id!r:.300}", _of_texts(limits.MAX_NAME_CHARS, group_id=group.group_id))
        _check(f"{where}, group {group.group_id!r}", _of_texts(limits.MAX_DOC_CHARS, tooltip=group.tooltip))
    for name, param in spec.params.items():
        _check_json(f"{where}, parameter {name!r:.300}: its schema", param.schema, limits.MAX_SCHEMA_BYTES)
        _check_json(f"{where}, parameter {name!r:.300}: its default", param.default, limits.MAX_DEFAULT_BYTES)
        _check(f"{where}, parameter {name!r:.300}", _of_texts(limits.MAX_DOC_CHARS, description=param.description))
    for asset in spec.assets:
        _check(f"{where}, asset {asset.name!r:.300}", _of_texts(limits.MAX_URI_CHARS, uri=asset.uri, group=asset.group))
        _check_json(f"{where}, asset {asset.name!r:.300}: its extra", asset.extra, limits.MAX_SCHEMA_BYTES)
    for owner, link in spec.owner_links.items():
        if not link.lower().startswith(LINKS) or not link.isprintable():
            raise BadSetting(f"{where}: the link {link!r:.300} of owner {owner!r:.300} must begin with one of: {', '.join(LINKS)}.")
    _check_schedule(where, spec)


def check_own(dag_id: str) -> None:
    """Raises :class:`BadId` for the id of a DAG that is Evenflow's own."""
    if dag_id.startswith(OWN_DAGS):
        raise BadId(f"The DAG id {dag_id!r:.300} begins with {OWN_DAGS!r}, as those of Evenflow's own DAGs do. Choose another one.")


def _of_dag(spec: DagSpec) -> Iterator[Size]:
    yield Size("tasks", len(spec.tasks), limits.MAX_SPEC_TASKS)
    yield Size("edges between tasks", sum(len(task.upstream) for task in spec.tasks), limits.MAX_SPEC_EDGES)
    yield Size("groups", len(spec.groups), limits.MAX_SPEC_GROUPS)
    yield Size("parameters", len(spec.params), limits.MAX_PARAMS)
    yield Size("assets", len(spec.assets), limits.MAX_SPEC_ASSETS)
    yield Size("cron expressions", len(spec.schedule.also) + 1, limits.MAX_CRONS)
    yield Size("dates in its schedule", len(spec.schedule.dates), limits.MAX_DATES)
    yield from _of_names(spec.tags, "tags")
    yield from _of_names(spec.reset_by, "patterns in reset_by")
    yield from _of_names(spec.owner_links, "owner_links")
    yield from _of_names(spec.params, "parameters")
    yield from _of_texts(limits.MAX_NAME_CHARS, dag_id=spec.dag_id, dag_display_name=spec.display_name, owner=spec.owner)
    yield from _of_texts(limits.MAX_NAME_CHARS, timezone=spec.schedule.timezone, default_timezone=spec.default_timezone)
    yield from _of_texts(limits.MAX_NAME_CHARS, start_date=spec.start_date or "", end_date=spec.end_date or "")
    yield from _of_texts(limits.MAX_DOC_CHARS, description=spec.description, doc_md=spec.doc)
    for link in spec.owner_links.values():
        yield from _of_texts(limits.MAX_LINK_CHARS, owner_links=link)
    for text in (spec.schedule.cron or "", *spec.schedule.also):
        yield from _of_texts(limits.MAX_CRON_CHARS, schedule=text)


def _of_task(task: TaskSpec) -> Iterator[Size]:
    yield from _of_texts(
        limits.MAX_NAME_CHARS,
        task_id=task.task_id,
        display_name=task.display_name,
        queue=task.queue,
        pool=task.pool,
        executor=task.executor,
    )
    yield from _of_texts(limits.MAX_URI_CHARS, operator=task.operator)
    yield from _of_texts(limits.MAX_DOC_CHARS, doc_md=task.doc)
    yield Size("outlets", len(task.outlets) + len(task.outlet_aliases), limits.MAX_NAMES)
    yield Size("inlets", len(task.inlets), limits.MAX_NAMES)
    yield Size("retry rules", len(task.retry_rules), limits.MAX_NAMES)
    for rule in task.retry_rules:
        yield Size("exceptions of a retry rule", len(rule.exceptions), limits.MAX_NAMES)
        yield Size("characters in the reason of a retry rule", len(rule.reason), limits.MAX_REASON)
        yield from _of_texts(limits.MAX_URI_CHARS, **{f"exception {n}": name for n, name in enumerate(rule.exceptions, 1)})


def _of_names(names: Collection[str], what: str) -> Iterator[Size]:
    yield Size(what, len(names), limits.MAX_NAMES)
    yield Size(f"characters in one of its {what}", max(map(len, names), default=0), limits.MAX_NAME_CHARS)


def _of_texts(most: int, **texts: str) -> Iterator[Size]:
    for name, text in texts.items():
        yield Size(f"characters in {name}", len(text), most)


def _check(where: str, sizes: Iterator[Size]) -> None:
    for what, size, most in sizes:
        if size > most:
            raise DagTooLarge(f"{where} has {size:,} {what} (limit {most:,}).")


def _check_json(where: str, value: Any, most: int) -> None:
    if (flaw := flaw_of(value)) is not None:
        raise DagTooLarge(f"{where} {flaw}.")
    if (size := len(json.dumps(value, default=str))) > most:
        raise DagTooLarge(f"{where} has {size:,} bytes (limit {most:,}).")


def _check_schedule(where: str, spec: DagSpec) -> None:
    schedule = spec.schedule
    for name, seconds in (("the time between two runs", schedule.every_s), ("the interval of a run", schedule.window_s)):
        if seconds is not None and not 0 <= seconds <= limits.MAX_INTERVAL_S:
            raise BadSchedule(f"{where}: {name} is {seconds:,} s, not from 0 to {limits.MAX_INTERVAL_S:,.0f}.")
    moments = [("start_date", spec.start_date), ("end_date", spec.end_date), *(("its schedule", text) for text in schedule.dates)]
    for name, text in moments:
        if text is not None:
            checked_moment(where, name, text)
    if list(schedule.dates) != sorted(schedule.dates, key=datetime.fromisoformat):
        raise BadSchedule(f"{where}: the dates of its schedule are not in ascending order.")
    if schedule.assets is not None:
        named = list(leaves(schedule.assets))
        _check(where, iter([Size("assets that it waits for", len(named), limits.MAX_SPEC_ASSETS)]))
        for leaf in named:
            _check(where, _of_texts(limits.MAX_URI_CHARS, schedule=leaf.name))


def checked_moment(where: str, name: str, text: str) -> datetime:
    """The instant that ``text`` names, far enough from both ends of time that intervals beside it can be computed."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise DagError(f"{where}: {name} {text!r:.300} is no ISO 8601 time.") from None
    if moment.tzinfo is None:
        raise DagError(f"{where}: {name} {text!r} has no UTC offset.")
    if not limits.FIRST_YEAR <= moment.year <= limits.LAST_YEAR:
        raise DagError(
            f"{where}: {name} {text!r} is not of the years {limits.FIRST_YEAR} to {limits.LAST_YEAR}. For no end, leave it out."
        )
    return moment
