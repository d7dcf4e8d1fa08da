"""``DagSpec``: the versioned, serialisable description of a DAG by which the scheduler decides.

The spec says when and under which limits tasks run, never what they do: the code stays in the DAG file, and a worker finds it by
``task_id``. Durations are seconds. A task refers to others by *task index*, its position in ``DagSpec.tasks``, which is also its
key in the database. JSON leaves out fields at their default, so a new field does not change the hash of DAGs that do not use it. A
field whose meaning changes raises ``FORMAT``.

The bounds of a field stand beside its type. :mod:`evenflow.core.spec.size` checks a whole spec by them; :mod:`evenflow.sdk.options`
checks an author's options by them.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

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

UNMAPPED = -1  # map_index of a task that is not mapped
DEFAULT_POOL = "default_pool"
DEFAULT_QUEUE = "default"
DEFAULT_EXECUTOR = "worker"
Enforcement = Literal["enforce", "warn", "off"]  # of a task's resources, where a worker cannot: see `resources`
WAITING_HOLDS = ("pool", "task_limits", "run", "executor")  # what a task may hold or release while it is deferred
LINKS = ("https://", "http://", "mailto:")  # allowed beginnings of an owner's link, because pages link to it

Id = Annotated[str, Chars(limits.MAX_NAME_CHARS, least=1, printable=True, without="/")]
Name = Annotated[str, Chars(limits.MAX_NAME_CHARS, least=1)]
QueueName = Annotated[str, Chars(limits.MAX_NAME_CHARS, least=1, printable=True, without=",")]  # settings list queues by commas
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
    """What happens to a try that no worker has claimed in time."""

    TELL = "tell"  # it keeps waiting
    FAIL = "fail"
    ELSEWHERE = "elsewhere"  # it goes to another queue


def instance_name(task_id: str, map_index: int) -> str:
    """Returns the name of a task instance, for people."""
    return task_id if map_index == UNMAPPED else f"{task_id}[{map_index}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When runs are created. :mod:`evenflow.core.timetable` defines the kinds; the other fields belong to them."""

    kind: str = "manual"  # manual, cron, delta, dates, once, continuous, assets, code, watch
    cron: CronText | None = None
    timezone: Zone = "UTC"
    also: Annotated[tuple[CronText, ...], Items(limits.MAX_CRONS - 1)] = ()  # cron: further ones; a run for every tick of any
    every_s: Interval | None = None  # delta
    dates: Annotated[tuple[IsoInstant, ...], Items(limits.MAX_DATES)] = ()  # dates: ISO 8601 with offset, ascending
    trigger: bool = False  # cron, delta: a run stands for a tick, not for the interval between two
    window_s: Interval = 0.0  # of a trigger: how far the data interval reaches back from its tick
    run_immediately: bool = False  # of a trigger without start_date: the first run is for the tick before the DAG was seen
    code: Annotated[str, Chars(limits.MAX_NAME_CHARS)] = ""  # code: how the timetable calls itself
    watch: AssetName = ""  # watch: the asset whose changes outside the one task of the DAG waits for
    watch_key: Annotated[str, Chars(limits.MAX_NAME_CHARS)] = ""  # watch: of several DAGs with one key, one at a time watches
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
    """What a task maps over, as an expression of which only the length matters here: a literal of this ``length``, the result that
    ``task`` has under ``key``, or ``parts`` combined by ``zip``, ``zip_longest`` or ``concat``. ``name`` is the name of the
    argument.
    """

    name: str = ""
    length: int | None = None
    task: int | None = None
    key: str = "return_value"
    combine: str = ""
    parts: tuple[MapInput, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """How a task or a group is expanded. ``kind`` ``product``: one instance for each combination of the inputs, where the last
    input varies fastest. ``each``: one instance for each instance of a mapped task, index by index; that task is the only input and
    the only upstream.
    """

    inputs: tuple[MapInput, ...]
    kind: str = "product"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """A task group, for people and for mapping (its edges are edges between tasks already). The tasks of a mapped group, including
    groups inside it, have an instance for each index; mapped groups do not nest.
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
    """The consequence of a failure by one of these exceptions. A class is named by module and name (``builtins.ValueError``), and
    the name includes its subclasses unless the match is ``exact``. ``retries`` lowers what the task allows, it never raises it.
    """

    exceptions: Annotated[tuple[Path, ...], Items(limits.MAX_NAMES)] = ()  # none: every failure
    action: Annotated[str, OneOf(("retry", "fail", "default"))] = "retry"  # default: as if there were no rules
    delay: RetryDelay | None = None  # replaces the task's delay, without its growth
    retries: Retries | None = None
    reason: Annotated[str, Chars(limits.MAX_REASON)] = ""
    exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Limits for all processes of a try together: bytes of memory, and processors that they keep busy. None: as much as the host
    has.
    """

    memory: Annotated[int, Between(limits.MIN_TRY_MEMORY, limits.MAX_TRY_MEMORY)] | None = None
    cpu: Annotated[float, Between(limits.MIN_TRY_CPU, limits.MAX_TRY_CPU)] | None = None

    def __str__(self) -> str:
        size = None if self.memory is None else f'memory="{memory(self.memory)}"'
        return f"resources({', '.join(filter(None, [size, None if self.cpu is None else f'cpu={self.cpu:g}']))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTerms:
    """The options of a task by which a scheduler decides; :mod:`evenflow.sdk.options` explains them."""

    trigger_rule: TriggerRule = TriggerRule.ALL_SUCCESS
    pool: Name = DEFAULT_POOL
    pool_slots: PositiveCount = 1
    priority_weight: Annotated[int, Between(limits.INT32_MIN, limits.INT32_MAX)] = 1
    queue: QueueName = DEFAULT_QUEUE
    executor: Name | None = None  # the executor of its queue, if it is named
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
    other_queue: QueueName | None = None
    depends_on_past: bool = False
    wait_for_downstream: bool = False
    reuse: bool = False
    resources: Resources | None = None  # of each try; None: no limit of its own
    pod_override: Annotated[dict[str, Any], PodOverride(limits.MAX_POD_OVERRIDE)] | None = None  # of pods of its tries
    while_deferred: dict[Annotated[str, OneOf(WAITING_HOLDS)], Annotated[str, OneOf((HOLD, RELEASE))]] | None = None
    display_name: DisplayName = ""
    doc: Doc = ""

    def when_unclaimed(self, *, resumes: bool) -> Unclaimed:
        """Returns what happens to a try after its ``queued_timeout``. A resume does not fail by it, because then no worker would
        clean up what its try has begun.
        """
        return Unclaimed.TELL if resumes and self.on_queued_timeout is Unclaimed.FAIL else self.on_queued_timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec(TaskTerms):
    """``priority_weight`` is the effective one: the weight rule is already applied."""

    task_id: Id
    operator: Path  # the kind of task, for people: python, bash, empty, spark, ...
    upstream: tuple[int, ...] = ()  # task indexes, ascending, no duplicates
    group: int | None = None
    mapping: Mapping | None = None
    setup: bool = False
    teardown: bool = False
    on_failure_fail_dagrun: bool = False  # of a teardown: its failure fails the run
    empty: bool = False  # no code to run: the scheduler finishes it at once
    outlets: AssetNames = ()  # assets of which its success is an event
    outlet_aliases: AssetNames = ()  # aliases to which it may add assets when it runs
    inlets: AssetNames = ()  # assets and aliases whose events it reads
    callbacks: Callbacks = ()  # names of core.callbacks, one for each function to call
    cleans_up: bool = False  # a worker runs its on_kill when it ends early, because it has something to stop outside


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineSpec:
    """When a run should have ended: ``interval`` after the moment of ``reference``. ``callbacks`` is the number of functions that
    are called when it has not.
    """

    name: Annotated[str, Chars(limits.MAX_NAME_CHARS)]
    reference: str  # queued_at, logical_date, fixed_datetime, average_runtime, time_of_day (the first after the run is due)
    interval: Annotated[float, Between(-limits.MAX_RUN_SECONDS, limits.MAX_RUN_SECONDS)] = 0.0
    at: str | None = None  # fixed_datetime: ISO 8601 with offset; time_of_day: HH:MM:SS
    timezone: Zone = "UTC"  # of a time of day
    runs: Annotated[int, Between(0, limits.MAX_AVERAGED_RUNS)] = (
        0  # average_runtime: the last successful ones, after the run was asked for
    )
    least: Annotated[int, Between(0, limits.MAX_AVERAGED_RUNS)] = 0  # average_runtime: with fewer there is no deadline
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
    default_timezone: Zone = "UTC"  # of times in the file without a zone; it is applied to all times here
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
        """Returns the spec of :meth:`to_json`. Raises :class:`DagError` for a format that this Evenflow does not know."""
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
    """Returns the name of a spec: the SHA-256 of its :meth:`DagSpec.to_json`, in hex."""
    import hashlib

    return hashlib.sha256(canonical.encode()).hexdigest()


def read_schedule(raw: dict[str, Any]) -> Schedule:
    """Returns the schedule that :meth:`DagSpec.to_json` wrote."""
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
    """Turns dataclasses into dicts without the fields at their default; other values stay as JSON has them."""
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
    """Returns the fields and their defaults; a required field has a default that equals nothing."""
    return [
        (f.name, f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default)
        for f in dataclasses.fields(spec)
    ]
