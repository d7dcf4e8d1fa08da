"""What a DAG is to everything but its author: ``DagSpec``, the versioned, serialisable description that the scheduler decides from.

The spec says when and under which limits tasks run, never what they do: the code stays in the DAG file, and a worker finds it by
``task_id``. Durations are seconds. A task refers to others by *task index*, its position in ``DagSpec.tasks``, which is also
its key in the database. Fields left at their default are left out of the JSON, so a field can be added without changing the
hash of DAGs that do not use it; one whose meaning changes raises ``FORMAT``.

The bounds of a field stand beside its type. :mod:`evenflow.core.spec.size` asks them of a whole spec; :mod:`evenflow.sdk.options`
reads by them what an author says.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal, NewType

from evenflow.core import limits
from evenflow.core.bounds import Between, Bytes, Chars, Iso8601, Items, JsonBytes, OneOf
from evenflow.core.callbacks import Callback
from evenflow.core.deferral import HOLD, RELEASE
from evenflow.core.partitions import Partitions
from evenflow.core.pods.override import PodOverride
from evenflow.core.quantities import memory
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
Enforcement = Literal["enforce", "warn", "off"]  # of what a task may take, where a worker cannot: see the setting `resources`
WAITING_HOLDS = ("pool", "task_limits", "run", "executor")  # what a task may hold or release while it is deferred
LINKS = ("https://", "http://", "mailto:")  # what an owner's link may begin with: it is shown to be clicked

Id = Annotated[str, Chars(limits.MAX_NAME_CHARS, least=1, printable=True, without="/")]
Name = Annotated[str, Chars(limits.MAX_NAME_CHARS, least=1)]
DisplayName = Annotated[str, Chars(limits.MAX_NAME_CHARS, least=1, printable=True)]
Zone = Annotated[str, Chars(limits.MAX_NAME_CHARS)]
Environment = Annotated[str, Chars(limits.MAX_NAME_CHARS, printable=True)]
Doc = Annotated[str, Chars(limits.MAX_DOC_CHARS)]
Path = Annotated[str, Chars(limits.MAX_PATH_CHARS)]  # of a class, by module and name
AssetName = Annotated[str, Bytes(limits.MAX_ASSET_NAME)]
LinkUrl = Annotated[str, Chars(limits.MAX_LINK_CHARS, printable=True, begins=LINKS)]
CronText = Annotated[str, Chars(limits.MAX_CRON_CHARS)]
IsoInstant = Annotated[str, Iso8601()]
Interval = Annotated[float, Between(0, limits.MAX_INTERVAL_S)]
Names = Annotated[tuple[Name, ...], Items(limits.MAX_NAMES)]
AssetNames = Annotated[tuple[AssetName, ...], Items(limits.MAX_NAMES)]
Callbacks = Annotated[tuple[Annotated[str, OneOf(tuple(Callback))], ...], Items(limits.MAX_CALLBACKS * len(Callback))]
PositiveCount = Annotated[int, Between(1, limits.INT32_MAX)]
Retries = Annotated[int, Between(0, limits.MAX_RETRIES)]
RetryDelay = Annotated[float, Between(0, limits.MAX_RETRY_DELAY_S)]
Timeout = Annotated[float, Between(limits.MIN_TIMEOUT_S, limits.MAX_RUN_SECONDS)]


class Unclaimed(StrEnum):
    """What becomes of a try that no worker has claimed in time."""

    TELL = "tell"  # it waits on
    FAIL = "fail"
    ELSEWHERE = "elsewhere"  # it goes to another queue


def instance_name(task_id: str, map_index: int) -> str:
    """A task instance, for people."""
    return task_id if map_index == UNMAPPED else f"{task_id}[{map_index}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When runs are created. :mod:`evenflow.core.timetable` says what the kinds mean; the other fields belong to them."""

    kind: str = "manual"  # manual, cron, delta, dates, once, continuous, assets
    cron: CronText | None = None
    timezone: Zone = "UTC"
    also: Annotated[tuple[CronText, ...], Items(limits.MAX_CRONS - 1)] = ()  # cron: further ones; a run for every tick of any
    every_s: Interval | None = None  # delta
    dates: Annotated[tuple[IsoInstant, ...], Items(limits.MAX_DATES)] = ()  # dates: ISO 8601 with offset, ascending
    trigger: bool = False  # cron, delta: a run stands for a tick, not for the interval between two
    window_s: Interval = 0.0  # of a trigger: how far the data interval reaches back from its tick
    run_immediately: bool = False  # of a trigger without start_date: the first run is for the tick before the DAG was seen
    assets: Any = None  # a condition of core.assets, beside or instead of the times


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParamSpec:
    """A run parameter: its default and a JSON Schema for its value. ``required`` means that there is no default."""

    default: Annotated[Any, JsonBytes(limits.MAX_DEFAULT_BYTES)] = None
    schema: Annotated[dict[str, Any], JsonBytes(limits.MAX_SCHEMA_BYTES)] = field(default_factory=dict)
    required: bool = False
    description: Doc = ""


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

    group_id: Name
    parent: int | None = None
    tooltip: Doc = ""
    mapping: Mapping | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetSpec:
    """An asset that the DAG makes, reads or waits for."""

    name: AssetName
    uri: Annotated[str, Chars(limits.MAX_URI_CHARS)]
    group: Annotated[str, Chars(limits.MAX_URI_CHARS)] = "asset"
    extra: Annotated[dict[str, Any], JsonBytes(limits.MAX_SCHEMA_BYTES)] = field(default_factory=dict)
    partitions: Partitions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRuleSpec:
    """What a failure by one of these exceptions means. A class is named by module and name (``builtins.ValueError``), and the name
    means its subclasses too unless the match is ``exact``. ``retries`` lowers what the task allows, it never raises it.
    """

    exceptions: Annotated[tuple[Path, ...], Items(limits.MAX_NAMES)] = ()  # none: every failure
    action: Annotated[str, OneOf(("retry", "fail", "default"))] = "retry"  # default: as if there were no rules
    delay: RetryDelay | None = None  # in the place of the task's, without its growth
    retries: Retries | None = None
    reason: Annotated[str, Chars(limits.MAX_REASON)] = ""
    exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """All processes of a try together have at most so many bytes of memory and keep so many processors busy. None: as much as the
    host has.
    """

    memory: Annotated[int, Between(limits.MIN_TRY_MEMORY, limits.MAX_TRY_MEMORY)] | None = None
    cpu: Annotated[float, Between(limits.MIN_TRY_CPU, limits.MAX_TRY_CPU)] | None = None

    def __str__(self) -> str:
        size = None if self.memory is None else f'memory="{memory(self.memory)}"'
        return f"resources({', '.join(filter(None, [size, None if self.cpu is None else f'cpu={self.cpu:g}']))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTerms:
    """What an author's options say of a task and a scheduler goes by; :mod:`evenflow.sdk.options` says what they mean."""

    trigger_rule: TriggerRule = TriggerRule.ALL_SUCCESS
    pool: Name = DEFAULT_POOL
    pool_slots: PositiveCount = 1
    priority_weight: Annotated[int, Between(limits.INT32_MIN, limits.INT32_MAX)] = 1
    queue: Name = DEFAULT_QUEUE
    executor: Name | None = None  # that of its queue, if it is said
    max_active_tis_per_dag: PositiveCount | None = None
    max_active_tis_per_dagrun: PositiveCount | None = None
    retries: Retries = 0
    retry_delay: RetryDelay = 300.0
    retry_exponential_backoff: Annotated[float, Between(0, limits.MAX_BACKOFF)] = 0.0  # factor per try; 0 is a constant delay
    max_retry_delay: RetryDelay | None = None
    retry_jitter: Annotated[float, Between(0, 1)] = 0.0
    retry_rules: Annotated[tuple[RetryRuleSpec, ...], Items(limits.MAX_RETRY_RULES + 1)] = ()  # the first that matches decides
    infrastructure_retries: Retries = limits.MAX_LOSSES
    execution_timeout: Timeout | None = None
    execution_timeout_counts_waiting: bool = True
    queued_timeout: Timeout | None = None
    on_queued_timeout: Unclaimed = Unclaimed.TELL
    other_queue: Name | None = None
    depends_on_past: bool = False
    wait_for_downstream: bool = False
    reuse: bool = False
    resources: Resources | None = None  # of each try; None: no limit of its own
    pod_override: Annotated[dict[str, Any], PodOverride(limits.MAX_POD_OVERRIDE)] | None = None  # of pods of its tries
    while_deferred: dict[Annotated[str, OneOf(WAITING_HOLDS)], Annotated[str, OneOf((HOLD, RELEASE))]] | None = None
    display_name: DisplayName = ""
    doc: Doc = ""

    def when_unclaimed(self, *, resumes: bool) -> Unclaimed:
        """What becomes of a try after its ``queued_timeout``. One that comes back from waiting does not fail by it: nobody would
        clean up what it has begun.
        """
        return Unclaimed.TELL if resumes and self.on_queued_timeout is Unclaimed.FAIL else self.on_queued_timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec(TaskTerms):
    """Its ``priority_weight`` is the effective one: the weight rule is already applied."""

    task_id: Id
    operator: Path  # what kind of task, for people: python, bash, empty, spark, ...
    upstream: tuple[int, ...] = ()  # task indexes, ascending, no duplicates
    group: int | None = None
    mapping: Mapping | None = None
    setup: bool = False
    teardown: bool = False
    on_failure_fail_dagrun: bool = False  # of a teardown: its failure is one of the run
    empty: bool = False  # no code to run: the scheduler finishes it at once
    outlets: AssetNames = ()  # assets of which its success is an event
    outlet_aliases: AssetNames = ()  # it may add assets to these when it runs
    inlets: AssetNames = ()  # assets and aliases whose events it reads
    callbacks: Callbacks = ()  # names of core.callbacks, one for each function that is to be called
    cleans_up: bool = False  # there is something to stop outside when it ends early: a worker is to run its on_kill


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineSpec:
    """When a run is to have ended: ``interval`` after what ``reference`` names. ``callbacks`` is how many functions are called when
    it has not.
    """

    name: Annotated[str, Chars(limits.MAX_NAME_CHARS)]
    reference: str  # queued_at, logical_date, fixed_datetime, time_of_day (the first after the run is due)
    interval: Annotated[float, Between(-limits.MAX_RUN_SECONDS, limits.MAX_RUN_SECONDS)] = 0.0
    at: str | None = None  # fixed_datetime: ISO 8601 with offset; time_of_day: HH:MM:SS
    timezone: Zone = "UTC"  # of a time of day
    callbacks: Annotated[int, Between(0, limits.MAX_CALLBACKS)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DagSpec:
    dag_id: Id
    tasks: Annotated[tuple[TaskSpec, ...], Items(limits.MAX_SPEC_TASKS)]
    groups: Annotated[tuple[GroupSpec, ...], Items(limits.MAX_SPEC_GROUPS)] = ()
    params: Annotated[dict[Name, RunParamSpec], Items(limits.MAX_PARAMS)] = field(default_factory=dict)
    schedule: Schedule = field(default_factory=Schedule)
    start_date: IsoInstant | None = None
    end_date: IsoInstant | None = None
    default_timezone: Zone = "UTC"  # of what the file says without one; applied in all that is here
    catchup: bool = False
    max_active_runs: PositiveCount | None = 16
    max_active_tasks: PositiveCount | None = 16
    max_map_length: Annotated[int, Between(1, limits.MAX_MAP_LENGTH)] = limits.MAX_MAP_LENGTH
    dagrun_timeout: Timeout | None = None
    max_consecutive_failed_dag_runs: Annotated[int, Between(0, limits.MAX_FAILED_RUNS)] = 0
    tags: Names = ()
    owner: Annotated[str, Chars(limits.MAX_NAME_CHARS)] = ""
    owner_links: Annotated[dict[Name, LinkUrl], Items(limits.MAX_NAMES)] = field(default_factory=dict)
    display_name: DisplayName = ""
    description: Doc = ""
    doc: Doc = ""
    is_paused_upon_creation: bool | None = None
    fail_fast: bool = False
    reset_by: Names = ()
    assets: Annotated[tuple[AssetSpec, ...], Items(limits.MAX_SPEC_ASSETS)] = ()
    callbacks: Callbacks = ()
    deadlines: Annotated[tuple[DeadlineSpec, ...], Items(limits.MAX_DEADLINES)] = ()
    environment: Environment = ""  # the name of the Python that runs its tasks; empty: the workers' own
    format: int = FORMAT

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no blanks, defaults left out (``format`` always in)."""
        return json.dumps({"format": self.format, **_sparse(self)}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def hash(self) -> str:
        return hash_of(self.to_json())

    @classmethod
    def from_json(cls, text: str | bytes) -> DagSpec:
        """The inverse of :meth:`to_json`. Raises :class:`DagError` on what this Evenflow does not know."""
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
        raw["assets"] = tuple(map(_asset, raw.get("assets", ())))
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


def _asset(raw: dict[str, Any]) -> AssetSpec:
    if "partitions" in raw:
        raw["partitions"] = Partitions.read(raw["partitions"])
    return AssetSpec(**raw)


def _task(raw: dict[str, Any]) -> TaskSpec:
    raw["upstream"] = tuple(raw.get("upstream", ()))
    if "trigger_rule" in raw:
        raw["trigger_rule"] = TriggerRule(raw["trigger_rule"])
    if "on_queued_timeout" in raw:
        raw["on_queued_timeout"] = Unclaimed(raw["on_queued_timeout"])
    if "retry_rules" in raw:
        raw["retry_rules"] = tuple(RetryRuleSpec(**{**r, "exceptions": tuple(r.get("exceptions", ()))}) for r in raw["retry_rules"])
    if "resources" in raw:
        raw["resources"] = Resources(**raw["resources"])
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
