"""Why a task instance does not run: every reason that exists, as data. Programs distinguish reasons by ``kind``.

The first reason of an answer is what must change first; the task starts when no reason is left. ``core/explain.py`` puts reasons
into words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from evenflow.core.pods.ends import WaitingPod

HOLDERS_NAMED = 5  # of a limit, the oldest first: enough to identify the cause; the rest is counted
UPSTREAMS_NAMED = 20
LINE_COUNTED = 10_000  # a place in line is exact up to here; beyond it, the exact number helps no reader and costs more
OUTRUN_CURE = (
    "Kill that worker with all of its control group or container (systemctl kill --signal=SIGKILL UNIT): "
    "what it had is sent again 15 s later."
)
RUNS_SEARCHED = 10_000  # newest runs of a DAG that are searched for running ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact behind a reason, in lines: ``held by``, ``place in line``."""

    name: str
    lines: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A reason in words: one sentence, the facts behind it, what to type or to do (``cure``), and the purpose of that (``aim``)."""

    sentence: str
    facts: list[Fact] = field(default_factory=list)
    cure: str | None = None
    aim: str = "to change it"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Explained:
    """``told``: the same in words, for people; the API adds it to its answers."""

    told: Told | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Underway:
    """Work that has begun and is not over."""

    dag_id: str
    run_id: str
    map_index: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder(Underway):
    """The holder of a part of a limit: a task instance, or a run where ``task_id`` is null."""

    task_id: str | None
    slots: int
    worker: str | None
    deferred: bool = False  # it waits for its trigger meanwhile, and has no worker


@dataclass(frozen=True, slots=True, kw_only=True)
class OutrunTry(Underway):
    """A try that its worker cannot end, claimed ``since``: its processes fork more quickly than they are killed."""

    task_id: str
    worker: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """An upstream task of which ``missing`` of ``total`` instances have not finished."""

    task_id: str
    missing: int
    total: int
    states: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _HasEnded(_Explained):
    state: str
    at: datetime | None
    explanation: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(_HasEnded):
    """The task has run, or was skipped: it waits for nothing."""

    kind: Literal["finished"] = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedUpstream:
    """An upstream task that has failed, in ``failed`` of its instances; ``map_index`` and ``explanation`` are those of the
    first.
    """

    task_id: str
    map_index: int
    failed: int
    explanation: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamFailed(_Explained):
    """The task was not run because of these upstreams, the first of ``failed``: the causes, which may be further up."""

    kind: Literal["upstream_failed"] = "upstream_failed"
    at: datetime | None
    trigger_rule: str
    failed: int
    upstreams: list[FailedUpstream]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(_HasEnded):
    """The task's run ended before it began."""

    kind: Literal["run_ended"] = "run_ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running(_Explained):
    """A worker runs the task. ``kill_at``: since when a person, or a limit of its run, wants it ended. It ends when its worker
    reports that nothing is left of it. ``outrun``: the worker reports that it cannot end the try, because its processes fork more
    quickly than they are killed.
    """

    kind: Literal["running"] = "running"
    since: datetime
    worker: str
    host: str
    kill_at: datetime | None
    outrun: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NoScheduler(_Explained):
    """No scheduler is alive, so nothing is decided."""

    kind: Literal["no_scheduler"] = "no_scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsWorker(_Explained):
    """The task was started, and no worker has claimed it yet. ``workers`` are the live ones of its queue that take it; they have
    ``slots`` for it, ``busy`` of them in use. ``closed`` live workers are out of service; ``closed_worker`` is the first of them,
    which ``closed_by`` brought into ``closed_state``.
    ``resumes``: it returns from waiting, and may also use the slots for resumes. ``ahead`` is exact when ``counted``, else a lower
    bound. ``executor``: the queue's, if tries are sent to it, of ``executor_kind``; by ``launchers`` that live and serve it, and
    ``refusal`` is why a live one does not, or why the executor takes nothing now. ``fleet``: the fleet, of the target
    ``fleet_target``, whose workers an autoscaler starts for it. ``until``: the end of its queued_timeout, and ``then`` is what
    follows, in the queue ``other_queue`` if it goes elsewhere. ``pod``: the one that was made for it, as a launcher knows it.
    """

    kind: Literal["awaits_worker"] = "awaits_worker"
    queue: str
    since: datetime
    resumes: bool
    ahead: int
    counted: bool
    workers: int
    slots: int
    busy: int
    closed: int = 0
    closed_worker: str | None = None
    closed_state: str | None = None
    closed_since: datetime | None = None
    closed_by: str | None = None
    executor: str | None = None
    executor_kind: str | None = None
    launchers: int = 0
    refusal: str | None = None
    pod: WaitingPod | None = None
    fleet: str | None = None
    fleet_target: str | None = None
    until: datetime | None = None
    then: str | None = None
    other_queue: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(_Explained):
    """The task's DAG is paused."""

    kind: Literal["paused"] = "paused"
    dag_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfService(_Explained):
    """The task's DAG, pool or queue, or the whole system, is in a state of service in which it does not start: ``what`` is the kind
    of object, ``state`` one of :class:`evenflow.core.service_states.ServiceState`.
    """

    kind: Literal["out_of_service"] = "out_of_service"
    what: str
    name: str
    state: str
    since: datetime
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined(_Explained):
    """The task's run is set aside, because handling it raised an exception: nothing is applied to it and nothing of it starts."""

    kind: Literal["quarantined"] = "quarantined"
    since: datetime
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAfter(_Explained):
    """The task's run may not begin before ``at``."""

    kind: Literal["run_after"] = "run_after"
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsUpstreams(_Explained):
    """Upstreams have not finished: the first of ``missing``. ``expands``: the task is mapped, and its instances are created
    then.
    """

    kind: Literal["awaits_upstreams"] = "awaits_upstreams"
    trigger_rule: str
    expands: bool
    missing: int
    upstreams: list[Upstream]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTask:
    """A task of the previous run whose instances have not all ended well, with their states."""

    task_id: str
    states: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsPast(_Explained):
    """The task depends on the past, and these tasks of the previous run are missing."""

    kind: Literal["awaits_past"] = "awaits_past"
    run_id: str
    tasks: list[PastTask]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsRetry(_Explained):
    """The last try failed; the next one is due at ``at``."""

    kind: Literal["awaits_retry"] = "awaits_retry"
    at: datetime | None
    tries: int
    explanation: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsPoke(_Explained):
    """The task looks for something outside, since ``since``, and did not find it; it looks again at ``at``, in the same try."""

    kind: Literal["awaits_poke"] = "awaits_poke"
    at: datetime | None
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsEvent(_Explained):
    """The task is deferred, and waits for its trigger. ``triggerer`` runs the trigger, or is null. The trigger has failed
    ``failures`` times, and is tried again at ``again_at``.
    """

    kind: Literal["awaits_event"] = "awaits_event"
    state: str
    trigger: str
    since: datetime
    until: datetime | None  # then the wait ends, whatever has happened
    triggerer: str | None
    host: str | None
    failures: int
    again_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsAnswer(_Explained):
    """The task asks people, and waits for an answer."""

    kind: Literal["awaits_answer"] = "awaits_answer"
    since: datetime
    until: datetime | None  # then its default is the answer, or it fails


@dataclass(frozen=True, slots=True, kw_only=True)
class FullLimit(_Explained):
    """A limit has no room for the task.

    ``limit`` is ``pool``, ``executor``, ``dag_task`` (max_active_tis_per_dag), ``dag_runs`` (max_active_runs), ``run``
    (max_active_tasks) or ``run_task`` (max_active_tis_per_dagrun). The task needs ``wanted`` of it. ``ahead`` tasks of a better
    order wait for this limit and for no other; at least as many unless ``counted``. ``holders`` are the first of ``held_by``, of
    which ``unclaimed`` have no worker yet.
    """

    kind: Literal["full_limit"] = "full_limit"
    limit: str
    name: str
    capacity: int
    used: int
    wanted: int
    ahead: int
    counted: bool
    held_by: int
    unclaimed: int
    holders: list[Holder]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPool(_Explained):
    """The task's pool has room for it, but keeps that for a task of a better order that wants ``wanted`` slots: the pool lets
    smaller tasks pass for ``patience_s`` and no longer.
    """

    kind: Literal["kept_pool"] = "kept_pool"
    name: str
    capacity: int
    used: int
    patience_s: float
    dag_id: str
    run_id: str
    task_id: str
    wanted: int
    waited_s: float
    ahead: int
    counted: bool
    held_by: int
    unclaimed: int
    holders: list[Holder]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSlots(_Explained):
    """Tenants share the task's pool or executor, so the order decides only between tasks of its own tenant. The tenant with the
    fewest slots for its weight is next; the task's tenant holds ``held``.
    """

    kind: Literal["shared_slots"] = "shared_slots"
    limit: str
    name: str
    share_by: str
    tenant: str
    weight: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages(_Explained):
    """The task has waited for ``waited_s``; each ``aging_s`` of that counts as one priority of its run."""

    kind: Literal["ages"] = "ages"
    waited_s: float
    aging_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRound(_Explained):
    """Nothing holds the task back: it starts with one of the next rounds of a scheduler."""

    kind: Literal["next_round"] = "next_round"


WhyNot = (
    Finished
    | UpstreamFailed
    | RunEnded
    | Running
    | NoScheduler
    | AwaitsWorker
    | Paused
    | OutOfService
    | Quarantined
    | RunAfter
    | AwaitsUpstreams
    | AwaitsPast
    | AwaitsRetry
    | AwaitsPoke
    | AwaitsEvent
    | AwaitsAnswer
    | FullLimit
    | KeptPool
    | SharedSlots
    | Ages
    | NextRound
)
