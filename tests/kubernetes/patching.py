"""The kinds of patches: JSON merge, strategic merge as far as it differs, and server-side apply with its field managers.

Lists are replaced as a whole, also in an apply: nothing here patches parts of one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from tests.kubernetes.errors import Refused

Path = tuple[str, ...]


def merge(into: Any, patch: Any) -> Any:
    """RFC 7386: None deletes, objects are merged, everything else is replaced."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    out = dict(into) if isinstance(into, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = merge(out.get(name), value)
    return out


def leaves(obj: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(obj, Mapping):
        for name, value in obj.items():
            yield from leaves(value, (*at, name))
    else:
        yield at, obj


class Managers:
    """Who owns which fields of which object."""

    def __init__(self) -> None:
        self._owned: dict[str, dict[str, set[Path]]] = {}  # by uid and manager

    def apply(self, uid: str, live: Mapping[str, Any], wanted: Mapping[str, Any], manager: str, force: bool) -> dict[str, Any]:
        owned = self._owned.setdefault(uid, {})
        given = {
            path: value
            for path, value in leaves(wanted)
            if path[0] not in ("kind", "apiVersion") and path[:2] != ("metadata", "name")
        }
        conflicts = [
            (other, path)
            for other, paths in owned.items()
            if other != manager
            for path in paths & given.keys()
            if _at(live, path) != given[path]
        ]
        if conflicts and not force:
            other, path = conflicts[0]
            raise Refused(409, f'Apply failed with {len(conflicts)} conflict: conflict with "{other}": .{".".join(path)}')
        for other, path in conflicts:
            owned[other].discard(path)
        out = copy.deepcopy(dict(live))
        others = set().union(*(paths for name, paths in owned.items() if name != manager))
        for path in owned.get(manager, set()) - given.keys() - others:
            _drop(out, path)
        for path, value in given.items():
            _put(out, path, value)
        owned[manager] = set(given)
        return out

    def wrote(self, uid: str, before: Mapping[str, Any], after: Mapping[str, Any], manager: str) -> None:
        """An ordinary write: what it changed is its own from now on."""
        old = dict(leaves(before))
        changed = {path for path, value in leaves(after) if old.get(path) != value and path[0] == "spec"}
        for paths in self._owned.setdefault(uid, {}).values():
            paths -= changed
        self._owned[uid].setdefault(manager, set()).update(changed)


def _at(obj: Any, path: Path) -> Any:
    for name in path:
        obj = obj.get(name) if isinstance(obj, Mapping) else None
    return obj


def _put(obj: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        obj = obj.setdefault(name, {})
    obj[path[-1]] = copy.deepcopy(value)


def _drop(obj: dict[str, Any], path: Path) -> None:
    for name in path[:-1]:
        obj = obj.get(name, {})
    obj.pop(path[-1], None)
