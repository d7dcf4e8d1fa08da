"""What a DAG is to everything but its author: ``DagSpec``, the versioned, serialisable description that the scheduler decides from.

The spec says when and under which limits tasks run, never what they do: the code stays in the DAG file, and a worker finds it by
``task_id``. Durations are seconds. A task refers to others by *task index*, its position in ``DagSpec.tasks``, which is also
its key in the database. Fields left at their default are left out of the JSON, so a field can be added without changing the
hash of DAGs that do not use it; one whose meaning changes raises ``FORMAT``.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, NewType

from evenflow.core.trigger_rules import TriggerRule
from evenflow.errors import DagError

FORMAT = 1

DagId = NewType("DagId", str)
TaskId = NewType("TaskId", str)
RunKey = NewType("RunKey", int)  # database key of a run, time-ordered
TaskIndex = NewType("TaskIndex", int)
Epoch = NewType("Epoch", int)

UNMAPPED = -1  # map_index of a task that is not mapped
DEFAULT_POOL = "default_pool"
DEFAULT_QUEUE = "default"
DEFAULT_EXECUTOR = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When runs are created. ``kind`` is ``manual`` or ``cron``; the other fields belong to the kind."""

    kind: str = "manual"
    cron: str | None = None
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """A run parameter: its default and a JSON Schema for its value. ``required`` means that there is no default."""

    default: Any = None
    schema: dict[str, Any] = field(default_factory=dict)
    required: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapInput:
    """One expanded argument: ``length`` of a literal, or the ``task`` index whose result it maps over."""

    name: str
    length: int | None = None
    task: int | None = None
    key: str = "return_value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """How a task is expanded. ``kind`` ``product``: one instance for each combination of the inputs, the last input fastest."""

    inputs: tuple[MapInput, ...]
    kind: str = "product"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """A task group: for people and for mapping, never for readiness (its edges are already edges between tasks)."""

    group_id: str
    parent: int | None = None
    tooltip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    task_id: str
    operator: str  # what kind of task, for people: python, bash, empty, spark, ...
    upstream: tuple[int, ...] = ()  # task indexes, ascending, no duplicates
    trigger_rule: TriggerRule = TriggerRule.ALL_SUCCESS
    group: int | None = None
    mapping: Mapping | None = None
    pool: str = DEFAULT_POOL
    pool_slots: int = 1
    priority_weight: int = 1  # effective: the weight rule is already applied
    queue: str = DEFAULT_QUEUE
    executor: str = DEFAULT_EXECUTOR
    max_active_tis_per_dag: int | None = None
    max_active_tis_per_dagrun: int | None = None
    retries: int = 0
    retry_delay: float = 300.0
    retry_exponential_backoff: float = 0.0  # factor per try; 0 is a constant delay
    max_retry_delay: float | None = None
    execution_timeout: float | None = None
    empty: bool = False  # no code to run: the scheduler finishes it at once
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DagSpec:
    dag_id: str
    tasks: tuple[TaskSpec, ...]
    groups: tuple[GroupSpec, ...] = ()
    params: dict[str, Param] = field(default_factory=dict)
    schedule: Schedule = field(default_factory=Schedule)
    start_date: str | None = None  # ISO 8601 with offset
    end_date: str | None = None
    catchup: bool = False
    max_active_runs: int | None = 16
    max_active_tasks: int | None = 16  # of each run; null: no limit
    tags: tuple[str, ...] = ()
    owner: str = ""
    description: str = ""
    doc: str = ""
    is_paused_upon_creation: bool = False
    format: int = FORMAT

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no blanks, defaults left out (``format`` always in)."""
        import json  # here and below: not on the way of `import evenflow`

        return json.dumps({"format": self.format, **_sparse(self)}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def hash(self) -> str:
        """SHA-256 of :meth:`to_json`, hex."""
        import hashlib

        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def from_json(cls, text: str | bytes) -> DagSpec:
        """The inverse of :meth:`to_json`. Raises :class:`DagError` on a format that this Evenflow does not know."""
        import json

        raw = json.loads(text)
        if raw.get("format") != FORMAT:
            raise DagError(
                f"DAG spec format {raw.get('format')!r} is not known here (this Evenflow knows {FORMAT}). Upgrade Evenflow."
            )
        raw["tasks"] = tuple(_task(t) for t in raw["tasks"])
        raw["groups"] = tuple(GroupSpec(**g) for g in raw.get("groups", ()))
        raw["params"] = {name: Param(**p) for name, p in raw.get("params", {}).items()}
        raw["schedule"] = Schedule(**raw.get("schedule", {}))
        raw["tags"] = tuple(raw.get("tags", ()))
        return cls(**raw)


def _task(raw: dict[str, Any]) -> TaskSpec:
    raw["upstream"] = tuple(raw.get("upstream", ()))
    if "trigger_rule" in raw:
        raw["trigger_rule"] = TriggerRule(raw["trigger_rule"])
    if "mapping" in raw:
        mapping = raw["mapping"]
        raw["mapping"] = Mapping(**{**mapping, "inputs": tuple(MapInput(**i) for i in mapping["inputs"])})
    return TaskSpec(**raw)


def _sparse(value: Any) -> Any:
    """Dataclasses to dicts without the fields that are at their default; everything else as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        out = {}
        for f in dataclasses.fields(value):
            item = getattr(value, f.name)
            default = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
            if default is dataclasses.MISSING or item != default:
                out[f.name] = _sparse(item)
        return out
    if isinstance(value, (tuple, list)):
        return [_sparse(v) for v in value]
    if isinstance(value, dict):
        return {k: _sparse(v) for k, v in value.items()}
    return value
