"""The differences between two versions of a DAG, in the words of its author.

It compares the JSON of specs, so a field that a newer format adds shows without being known here. Positions of tasks and groups
become ids first: a new first task changes no other task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_OF_TASKS = ("tasks", "groups", "format")  # shown task by task, or not at all


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting of the DAG (``task_id`` is null) or of a task; null stands for its default."""

    task_id: str | None
    setting: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class SpecDiff:
    added: list[str]  # task ids, in the order of the DAG
    removed: list[str]
    changes: list[SettingChange]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changes)


def diff_specs(before: str, after: str) -> SpecDiff:
    """Returns the differences between two texts of DagSpec JSON."""
    old, new = json.loads(before), json.loads(after)
    old_tasks, new_tasks = _tasks(old), _tasks(new)
    changes = list(_changes(None, _settings(old), _settings(new)))
    for task_id, task in new_tasks.items():
        if task_id in old_tasks:
            changes += _changes(task_id, old_tasks[task_id], task)
    return SpecDiff(
        added=[task_id for task_id in new_tasks if task_id not in old_tasks],
        removed=[task_id for task_id in old_tasks if task_id not in new_tasks],
        changes=changes,
    )


def _settings(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name not in _OF_TASKS}


def _tasks(spec: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    ids = [task["task_id"] for task in spec["tasks"]]
    groups = [group["group_id"] for group in spec.get("groups", ())]
    return {task["task_id"]: _named(task, ids, groups) for task in spec["tasks"]}


def _named(task: Mapping[str, Any], ids: list[str], groups: list[str]) -> dict[str, Any]:
    named = dict(task)
    if "upstream" in task:
        named["upstream"] = sorted(ids[index] for index in task["upstream"])
    if task.get("group") is not None:
        named["group"] = groups[task["group"]]
    if "mapping" in task:
        inputs = [
            {**item, "task": ids[item["task"]]} if item.get("task") is not None else item for item in task["mapping"]["inputs"]
        ]
        named["mapping"] = {**task["mapping"], "inputs": inputs}
    return named


def _changes(task_id: str | None, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[SettingChange]:
    for setting in sorted(old.keys() | new.keys()):
        if old.get(setting) != new.get(setting):
            yield SettingChange(task_id, setting, old.get(setting), new.get(setting))
