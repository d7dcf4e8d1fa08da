"""What a DAG is to everything but its author: ``DagSpec``, the versioned, serialisable description that the scheduler decides from.

The spec says when and under which limits tasks run, never what they do: the code stays in the DAG file, and a worker finds it by
``task_id``. Durations are seconds. A task refers to others by *task index*, its position in ``DagSpec.tasks``, which is also
its key in the database. Fields left at their default are left out of the JSON, so a field can be added without changing the
hash of DAGs that do not use it; one whose meaning changes raises ``FORMAT``.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass, field
from typing import Any, NewType

from evenflow.core.limits import MAX_LOSSES, MAX_MAP_LENGTH
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
WAITING_HOLDS = ("pool", "task_limits", "run", "executor")  # what a task may hold or release while it is deferred


def instance_name(task_id: str, map_index: int) -> str:
    """A task instance, for people."""
    return task_id if map_index == UNMAPPED else f"{task_id}[{map_index}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When runs are created. :mod:`evenflow.core.timetable` says what the kinds mean; the other fields belong to them."""

    kind: str = "manual"  # manual, cron, delta, dates, once, continuous, assets
    cron: str | None = None
    timezone: str = "UTC"
    also: tuple[str, ...] = ()  # cron: further expressions; a run for every tick of any of them
    every_s: float | None = None  # delta
    dates: tuple[str, ...] = ()  # dates: ISO 8601 with offset, ascending
    trigger: bool = False  # cron, delta: a run stands for a tick, not for the interval between two
    window_s: float = 0.0  # of a trigger: how far the data interval reaches back from its tick
    run_immediately: bool = False  # of a trigger without start_date: the first run is for the tick before the DAG was seen
    assets: Any = None  # a condition of core.assets, beside or instead of the times


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParamSpec:
    """A run parameter: its default and a JSON Schema for its value. ``required`` means that there is no default."""

    default: Any = None
    schema: dict[str, Any] = field(default_factory=dict)
    required: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapInput:
    """What is mapped over, as an expression of which only the length matters here: a literal of this ``length``, the result that
    ``task`` has under ``key``, or ``parts`` combined by ``zip``, ``zip_longest`` or ``concat``. ``name`` is the argument's.
    """

    name: str = ""
    length: int | None = None
    task: int | None = None
    key: str = "return_value"
    combine: str = ""
    parts: tuple[MapInput, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """How a task or a group is expanded. ``kind`` ``product``: one instance for each combination of the inputs, the last input
    fastest. ``each``: one for each instance of the mapped task that is its only input and its only upstream, index by index.
    """

    inputs: tuple[MapInput, ...]
    kind: str = "product"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """A task group: for people and for mapping (its edges are already edges between tasks). The tasks of a mapped group, those of
    the groups inside it included, have an instance for each index; mapped groups do not nest.
    """

    group_id: str
    parent: int | None = None
    tooltip: str = ""
    mapping: Mapping | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetSpec:
    """An asset that the DAG makes, reads or waits for."""

    name: str
    uri: str
    group: str = "asset"
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRuleSpec:
    """What a failure by one of these exceptions means. A class is named by module and name (``builtins.ValueError``), and the name
    means its subclasses too unless the match is ``exact``. ``retries`` lowers what the task allows, it never raises it.
    """

    exceptions: tuple[str, ...] = ()  # none: every failure
    action: str = "retry"  # or fail, or default: as if there were no rules
    delay: float | None = None  # in the place of the task's, without its growth
    retries: int | None = None
    reason: str = ""
    exact: bool = False


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
    retry_jitter: float = 0.0  # a delay is longer by up to this share of it
    retry_rules: tuple[RetryRuleSpec, ...] = ()  # the first that matches decides
    infrastructure_retries: int = MAX_LOSSES  # how often infrastructure may lose it, in all, before that counts as its own failure
    setup: bool = False
    teardown: bool = False
    on_failure_fail_dagrun: bool = False  # of a teardown: its failure is one of the run
    execution_timeout: float | None = None
    depends_on_past: bool = False  # waits until its instances in the previous run have ended well
    wait_for_downstream: bool = False  # and those directly downstream of it
    empty: bool = False  # no code to run: the scheduler finishes it at once
    display_name: str = ""  # shown beside the id
    doc: str = ""
    outlets: tuple[str, ...] = ()  # assets of which its success is an event
    outlet_aliases: tuple[str, ...] = ()  # it may add assets to these when it runs
    inlets: tuple[str, ...] = ()  # assets and aliases whose events it reads
    callbacks: tuple[str, ...] = ()  # names of core.callbacks, one for each function that is to be called
    while_deferred: dict[str, str] | None = None  # hold or release, by WAITING_HOLDS, where the task says so
    cleans_up: bool = False  # there is something to stop outside when it ends early: a worker is to run its on_kill
    execution_timeout_counts_waiting: bool = True  # the time in which it is deferred too


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineSpec:
    """When a run is to have ended: ``interval`` after what ``reference`` names. ``callbacks`` is how many functions are called when
    it has not.
    """

    name: str
    reference: str  # queued_at, logical_date, fixed_datetime, time_of_day (the first after the run is due)
    interval: float = 0.0
    at: str | None = None  # fixed_datetime: ISO 8601 with offset; time_of_day: HH:MM:SS
    timezone: str = "UTC"  # of a time of day
    callbacks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DagSpec:
    dag_id: str
    tasks: tuple[TaskSpec, ...]
    groups: tuple[GroupSpec, ...] = ()
    params: dict[str, RunParamSpec] = field(default_factory=dict)
    schedule: Schedule = field(default_factory=Schedule)
    start_date: str | None = None  # ISO 8601 with offset
    end_date: str | None = None
    default_timezone: str = "UTC"  # of what the file says without one; applied in all that is here
    catchup: bool = False
    max_active_runs: int | None = 16
    max_active_tasks: int | None = 16  # of each run; null: no limit
    max_map_length: int = MAX_MAP_LENGTH  # instances of a mapped task, or of each task of a mapped group
    dagrun_timeout: float | None = None  # from the start of a run
    max_consecutive_failed_dag_runs: int = 0  # so many failures in a row pause the DAG; 0: never
    tags: tuple[str, ...] = ()
    owner: str = ""
    owner_links: dict[str, str] = field(default_factory=dict)  # where to find an owner: https:// or mailto:
    display_name: str = ""  # shown beside the id
    description: str = ""
    doc: str = ""
    is_paused_upon_creation: bool | None = None  # null: as the setting dags_are_paused_at_creation says
    fail_fast: bool = False  # the first failure for good ends the run
    reset_by: tuple[str, ...] = ()  # patterns of DAG ids, or bundle:pattern, whose tasks may clear runs that they did not make
    assets: tuple[AssetSpec, ...] = ()
    callbacks: tuple[str, ...] = ()  # as those of a task
    deadlines: tuple[DeadlineSpec, ...] = ()
    format: int = FORMAT

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no blanks, defaults left out (``format`` always in)."""
        import json  # here and below: not on the way of `import evenflow`

        return json.dumps({"format": self.format, **_sparse(self)}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def hash(self) -> str:
        return hash_of(self.to_json())

    @classmethod
    def from_json(cls, text: str | bytes) -> DagSpec:
        """The inverse of :meth:`to_json`. Raises :class:`DagError` on what this Evenflow does not know."""
        import json

        raw = json.loads(text)
        if raw.get("format") != FORMAT:
            raise DagError(
                f"DAG spec format {raw.get('format')!r} is not known here (this Evenflow knows {FORMAT}). Upgrade Evenflow."
            )
        try:
            return cls._of(raw)
        except (TypeError, KeyError, AttributeError) as error:
            name = raw.get("dag_id")
            raise DagError(f"The spec of DAG {name!r} cannot be read here: {error}. Was it stored by a newer Evenflow?") from None

    @classmethod
    def _of(cls, raw: dict[str, Any]) -> DagSpec:
        raw["tasks"] = tuple(_task(t) for t in raw["tasks"])
        raw["groups"] = tuple(GroupSpec(**_with_mapping(g)) for g in raw.get("groups", ()))
        raw["params"] = {name: RunParamSpec(**p) for name, p in raw.get("params", {}).items()}
        raw["schedule"] = read_schedule(raw.get("schedule", {}))
        raw["tags"] = tuple(raw.get("tags", ()))
        raw["reset_by"] = tuple(raw.get("reset_by", ()))
        raw["assets"] = tuple(AssetSpec(**asset) for asset in raw.get("assets", ()))
        raw["callbacks"] = tuple(raw.get("callbacks", ()))
        raw["deadlines"] = tuple(DeadlineSpec(**deadline) for deadline in raw.get("deadlines", ()))
        return cls(**raw)


def hash_of(canonical: str) -> str:
    """What names a spec: SHA-256 of its :meth:`DagSpec.to_json`, hex."""
    import hashlib

    return hashlib.sha256(canonical.encode()).hexdigest()


def read_schedule(raw: dict[str, Any]) -> Schedule:
    """What :meth:`DagSpec.to_json` made of a schedule."""
    fields: dict[str, Any] = {name: tuple(value) if name in ("also", "dates") else value for name, value in raw.items()}
    return Schedule(**fields)


def _task(raw: dict[str, Any]) -> TaskSpec:
    raw["upstream"] = tuple(raw.get("upstream", ()))
    if "trigger_rule" in raw:
        raw["trigger_rule"] = TriggerRule(raw["trigger_rule"])
    if "retry_rules" in raw:
        raw["retry_rules"] = tuple(RetryRuleSpec(**{**r, "exceptions": tuple(r.get("exceptions", ()))}) for r in raw["retry_rules"])
    for name in ("outlets", "outlet_aliases", "inlets", "callbacks"):
        if name in raw:
            raw[name] = tuple(raw[name])
    return TaskSpec(**_with_mapping(raw))


def _with_mapping(raw: dict[str, Any]) -> dict[str, Any]:
    if "mapping" in raw:
        raw["mapping"] = Mapping(**{**raw["mapping"], "inputs": tuple(map(_map_input, raw["mapping"]["inputs"]))})
    return raw


def _map_input(raw: dict[str, Any]) -> MapInput:
    return MapInput(**{**raw, "parts": tuple(map(_map_input, raw.get("parts", ())))})


def _sparse(value: Any) -> Any:
    """Dataclasses to dicts without the fields that are at their default; everything else as JSON has it."""
    if isinstance(value, (str, int, float)) or value is None:
        return value
    if isinstance(value, (tuple, list)):
        return [_sparse(v) for v in value]
    if isinstance(value, dict):
        return {k: _sparse(v) for k, v in value.items()}
    if dataclasses.is_dataclass(value):
        kind: Any = type(value)
        told = ((name, getattr(value, name), default) for name, default in _defaults(kind))
        return {name: _sparse(item) for name, item, default in told if item != default}
    return value


@functools.cache
def _defaults(spec: type[Any]) -> list[tuple[str, Any]]:
    """The fields and their defaults; one that must be given has a default that equals nothing."""
    return [
        (f.name, f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default)
        for f in dataclasses.fields(spec)
    ]
