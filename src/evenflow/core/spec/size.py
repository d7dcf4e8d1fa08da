"""Checks each value of a spec against the bounds beside its field: when a DAG is made, where its author sees the error, and again
where a spec arrives.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from datetime import datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from evenflow.core.assets import leaves
from evenflow.core.bounds import Bound, Bytes, Items, Size
from evenflow.core.callbacks import OWN_DAGS
from evenflow.core.limits import MAX_ASSET_NAME, MAX_SPEC_ASSETS, MAX_SPEC_EDGES
from evenflow.core.model import AssetSpec, DagSpec, DeadlineSpec, GroupSpec, Mapping, TaskSpec
from evenflow.errors import BadId, BadSchedule, DagError, DagTooLarge

Measure = Callable[[str, Any], None]  # takes the beginning of a message, and a value


def check_size(spec: DagSpec) -> None:
    """Raises :class:`DagError` for the first value of a DAG outside its bounds."""
    where = f"DAG {spec.dag_id!r:.300}"
    check_own(spec.dag_id)
    _record(DagSpec)(where, spec)
    edges = sum(len(task.upstream) for task in spec.tasks)
    if edges > MAX_SPEC_EDGES:
        raise DagTooLarge(f"{where} has {edges:,} edges between tasks (limit {MAX_SPEC_EDGES:,}).")
    dates = [datetime.fromisoformat(text) for text in spec.schedule.dates]
    if dates != sorted(dates):
        raise BadSchedule(f"{where}: the dates of its schedule are not in ascending order.")
    if spec.schedule.assets is not None:
        named = [leaf.name for leaf in leaves(spec.schedule.assets)]
        _check_bound(f"{where}, assets that it waits for", Items(MAX_SPEC_ASSETS), named)
        for name in named:
            _check_bound(f"{where}, an asset that it waits for", Bytes(MAX_ASSET_NAME), name)


def check_own(dag_id: str) -> None:
    """Raises :class:`BadId` for the id of one of Evenflow's own DAGs."""
    if dag_id.startswith(OWN_DAGS):
        raise BadId(f"The DAG id {dag_id!r:.300} begins with {OWN_DAGS!r}, as those of Evenflow's own DAGs do. Choose another one.")


def bounds_of(kind: Any) -> tuple[Any, list[Bound]]:
    """Returns a type without its bounds, and the bounds. It ignores that the type may include None."""
    if get_origin(kind) in (UnionType, Union):
        kind = next(part for part in get_args(kind) if part is not NoneType)
    if get_origin(kind) is Annotated:
        return get_args(kind)[0], [each for each in get_args(kind)[1:] if isinstance(each, Bound)]
    return kind, []


@functools.cache
def _record(kind: Any) -> Measure:
    """Returns the check of a dataclass. A value at its default is within its bounds."""
    types = get_type_hints(kind, include_extras=True)
    defaults = {
        field.name: field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        for field in dataclasses.fields(kind)
    }
    checks = [(name, default, check) for name, default in defaults.items() if (check := _check_of(types[name])) is not None]

    def check_record(where: str, record: Any) -> None:
        for name, default, check in checks:
            value = getattr(record, name)
            if value != default:
                check(f"{where}, {name}", value)

    return check_record


def _check_of(kind: Any) -> Measure | None:
    """Returns the check of a type, or None without bounds. :mod:`evenflow.core.spec.shape` walks mapping inputs, because they have
    levels.
    """
    plain, bounds = bounds_of(kind)
    origin, parts = get_origin(plain), get_args(plain)
    inner: Measure | None = None
    if origin is tuple:
        inner = _each(parts[0])
    elif origin is dict:
        inner = _items(*parts)
    elif isinstance(plain, type) and dataclasses.is_dataclass(plain) and plain is not Mapping:
        inner = _record(plain)
    if inner is None and not bounds:
        return None

    def check(where: str, value: Any) -> None:
        if value is None:
            return
        for bound in bounds:
            _check_bound(where, bound, value)
        if inner is not None:
            inner(where, value)

    return check


def _each(kind: Any) -> Measure | None:
    check = _check_of(kind)
    if check is None:
        return None

    def check_each(where: str, values: Any) -> None:
        around = where.rpartition(", ")[0]
        for value in values:
            called = _called(value)
            check(f"{around}, {called}" if called else where, value)

    return check_each


def _items(key: Any, item: Any) -> Measure | None:
    check_key, check_item = _check_of(key), _check_of(item)
    if check_key is None and check_item is None:
        return None

    def check_items(where: str, values: Any) -> None:
        for name, value in values.items():
            if check_key is not None:
                check_key(where, name)
            if check_item is not None:
                check_item(f"{where} {name!r:.300}", value)

    return check_items


def _called(item: Any) -> str:
    """Returns how messages name one of several items: by its place alone if it has no name."""
    match item:
        case TaskSpec():
            return f"task {item.task_id!r:.300}"
        case GroupSpec():
            return f"group {item.group_id!r:.300}"
        case AssetSpec():
            return f"asset {item.name!r:.300}"
        case DeadlineSpec():
            return f"deadline {item.name!r:.300}"
        case _:
            return ""


def _check_bound(where: str, bound: Bound, value: Any) -> None:
    flaw = bound.flaw(value)
    if flaw is not None:
        kind = DagTooLarge if isinstance(bound, Size) and bound.size_of(value) > bound.most else DagError
        raise kind(f"{where}: {flaw}.")
