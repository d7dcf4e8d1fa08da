"""Why a task instance does not run: every reason that there is, as data. A program tells them apart by ``kind``.

The first reason of an answer is what must change first; the task starts when none of them holds any more. ``core/explain.py`` puts
them into words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

HOLDERS_NAMED = 5  # of a limit, the oldest first: enough to see who it is; the rest is counted
UPSTREAMS_NAMED = 20
LINE_COUNTED = 10_000  # a place in line is exact up to here; beyond, the exact number helps nobody and costs more
OUTRUN_CURE = (
    "Kill that worker with all of its control group or container (systemctl kill --signal=SIGKILL UNIT): "
    "what it had is sent again 15 s later."
)
RUNS_SEARCHED = 10_000  # newest runs of a DAG among which those that run are looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something behind a reason, in lines: ``held by``, ``place in line``."""

    name: str
    lines: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A reason in words: one sentence, the facts behind it, and what to type or to do (``cure``), and ``aim``: what for."""

    sentence: str
    facts: list[Fact] = field(default_factory=list)
    cure: str | None = None
    aim: str = "to change it"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Explained:
    """``told``: the same in words, for people; the API adds it to what it answers."""

    told: Told | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Underway:
    """What has begun and is not over."""

    dag_id: str
    run_id: str
    map_index: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder(Underway):
    """What has a part of a limit: a task instance, or a run where ``task_id`` is null."""

    task_id: str | None
    slots: int
    worker: str | None
    deferred: bool = False  # it waits for its trigger meanwhile, and has no worker


@dataclass(frozen=True, slots=True, kw_only=True)
class OutrunTry(Underway):
    """A try that its worker cannot end, claimed ``since``: what it has started forks more quickly than it is killed."""

    task_id: str
    worker: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A task upstream of which ``missing`` of ``total`` instances have not finished."""

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
    """It has run, or was skipped: it waits for nothing."""

    kind: Literal["finished"] = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedUpstream:
    """A task upstream that has failed, in ``failed`` of its instances; ``map_index`` and ``explanation`` are those of the first."""

    task_id: str
    map_index: int
    failed: int
    explanation: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamFailed(_Explained):
    """It was not run, because of these upstreams, the first of ``failed``: the causes, which may be further up."""

    kind: Literal["upstream_failed"] = "upstream_failed"
    at: datetime | None
    trigger_rule: str
    failed: int
    upstreams: list[FailedUpstream]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(_HasEnded):
    """Its run ended before it began."""

    kind: Literal["run_ended"] = "run_ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running(_Explained):
    """A worker has it. ``kill_at``: since when somebody, or a limit of its run, wants it ended. It ends when its worker says
    that nothing is left of it. ``outrun``: the worker says that it cannot end it, since its processes fork more quickly than they
    are killed.
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
    """It was started, and no worker has claimed it yet. ``workers`` of its queue live and take it; they have ``slots`` for it, of
    which so many are ``busy``. ``closed`` live and are out of service; ``closed_worker`` is one of them. ``resumes``: it comes back
    from waiting, and may have the slots for resumes, too. ``ahead`` is exact when ``counted``, else at least that. ``executor``:
    the queue's, if tries are sent to it, of ``executor_kind``; by ``launchers`` that live and serve it, and ``refusal`` is why one
    that lives does not. ``fleet``: whose workers an autoscaler starts for it. ``until``: when its queued_timeout is over, and
    ``then`` is what becomes of it, in the queue ``other_queue`` if it goes elsewhere.
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
    executor: str | None = None
    executor_kind: str | None = None
    launchers: int = 0
    refusal: str | None = None
    fleet: str | None = None
    until: datetime | None = None
    then: str | None = None
    other_queue: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(_Explained):
    """Its DAG is paused."""

    kind: Literal["paused"] = "paused"
    dag_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfService(_Explained):
    """Its DAG, pool or queue, or the whole system, is in a state of service in which it does not start: ``what`` is the kind of
    object, ``state`` one of :class:`evenflow.core.service_states.ServiceState`.
    """

    kind: Literal["out_of_service"] = "out_of_service"
    what: str
    name: str
    state: str
    since: datetime
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined(_Explained):
    """Its run is set aside, because handling it raised an exception: nothing is applied to it and nothing of it starts."""

    kind: Literal["quarantined"] = "quarantined"
    since: datetime
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAfter(_Explained):
    """Its run may not begin before ``at``."""

    kind: Literal["run_after"] = "run_after"
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsUpstreams(_Explained):
    """Upstreams have not finished: the first of ``missing``. ``expands``: it is mapped, and its instances come into being then."""

    kind: Literal["awaits_upstreams"] = "awaits_upstreams"
    trigger_rule: str
    expands: bool
    missing: int
    upstreams: list[Upstream]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTask:
    """A task of the run before of which not all instances have ended well; how they stand."""

    task_id: str
    states: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsPast(_Explained):
    """It depends on the past, and this is what the run before has not done yet."""

    kind: Literal["awaits_past"] = "awaits_past"
    run_id: str
    tasks: list[PastTask]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsRetry(_Explained):
    """Its last try failed; the next one is due at ``at``."""

    kind: Literal["awaits_retry"] = "awaits_retry"
    at: datetime | None
    tries: int
    explanation: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsPoke(_Explained):
    """It looks for something outside, since ``since``, and did not find it; it looks again at ``at``, in the same try."""

    kind: Literal["awaits_poke"] = "awaits_poke"
    at: datetime | None
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsEvent(_Explained):
    """It is deferred, and waits for its trigger. ``triggerer`` has that, or none yet; it has failed ``failures`` times, and is
    tried again at ``again_at``.
    """

    kind: Literal["awaits_event"] = "awaits_event"
    state: str
    trigger: str
    since: datetime
    until: datetime | None  # then its wait is over, whatever has happened
    triggerer: str | None
    host: str | None
    failures: int
    again_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitsAnswer(_Explained):
    """It asks people, and waits for an answer."""

    kind: Literal["awaits_answer"] = "awaits_answer"
    since: datetime
    until: datetime | None  # then its default is the answer, or it fails


@dataclass(frozen=True, slots=True, kw_only=True)
class FullLimit(_Explained):
    """A limit has no room for it.

    ``limit`` is ``pool``, ``executor``, ``dag_task`` (max_active_tis_per_dag), ``dag_runs`` (max_active_runs), ``run``
    (max_active_tasks) or ``run_task`` (max_active_tis_per_dagrun). It needs ``wanted`` of it. ``ahead``: so many tasks of a better
    order wait for this limit and for no other; at least so many unless ``counted``. ``holders``: the first of ``held_by``, of
    which so many are ``unclaimed``: no worker has them yet.
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
    """Its pool has room for it, but keeps that for a task of a better order that wants ``wanted`` slots: the pool lets smaller ones
    pass for ``patience_s`` and no longer.
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
    """Tenants share its pool or executor, so the order decides only between tasks of its own tenant. Next is the tenant with the
    fewest slots for its weight; that of the task has ``held``.
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
    """It has waited for ``waited_s``; each ``aging_s`` of that count as one priority of its run."""

    kind: Literal["ages"] = "ages"
    waited_s: float
    aging_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRound(_Explained):
    """Nothing holds it back: it starts with one of the next rounds of a scheduler."""

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
