"""What REST answers to "why is it not running?" and "what would start next?", as its clients read it: :mod:`evenflow.core.why` and
:mod:`evenflow.core.plan` have the meanings; a test holds both together.
"""

from __future__ import annotations

from datetime import datetime

from evenflow.client.answers import Answer


class RunName(Answer):
    dag_id: str
    run_id: str
    state: str


class Holder(Answer):
    dag_id: str
    run_id: str
    task_id: str | None
    map_index: int
    slots: int
    since: datetime
    worker: str | None
    deferred: bool = False


class Upstream(Answer):
    task_id: str
    missing: int
    total: int
    states: dict[str, int]


class Finished(Answer, tag_field="kind", tag="finished"):
    state: str
    at: datetime | None
    explanation: str | None


class RunEnded(Answer, tag_field="kind", tag="run_ended"):
    state: str
    at: datetime | None
    explanation: str | None


class Running(Answer, tag_field="kind", tag="running"):
    since: datetime
    worker: str
    host: str
    kill_at: datetime | None
    outrun: bool = False


class NoScheduler(Answer, tag_field="kind", tag="no_scheduler"):
    pass


class AwaitsWorker(Answer, tag_field="kind", tag="awaits_worker"):
    queue: str
    since: datetime
    returns: bool
    ahead: int
    counted: bool
    workers: int
    slots: int
    busy: int


class Paused(Answer, tag_field="kind", tag="paused"):
    dag_id: str


class OutOfService(Answer, tag_field="kind", tag="out_of_service"):
    what: str
    name: str
    state: str
    since: datetime
    actor: str


class Quarantined(Answer, tag_field="kind", tag="quarantined"):
    since: datetime
    explanation: str


class RunAfter(Answer, tag_field="kind", tag="run_after"):
    at: datetime


class AwaitsUpstreams(Answer, tag_field="kind", tag="awaits_upstreams"):
    trigger_rule: str
    expands: bool
    missing: int
    upstreams: list[Upstream]


class PastTask(Answer):
    task_id: str
    states: dict[str, int]


class AwaitsPast(Answer, tag_field="kind", tag="awaits_past"):
    run_id: str
    tasks: list[PastTask]


class AwaitsRetry(Answer, tag_field="kind", tag="awaits_retry"):
    at: datetime | None
    tries: int
    explanation: str | None


class AwaitsPoke(Answer, tag_field="kind", tag="awaits_poke"):
    at: datetime | None
    since: datetime | None


class AwaitsEvent(Answer, tag_field="kind", tag="awaits_event"):
    state: str
    trigger: str
    since: datetime
    until: datetime | None
    triggerer: str | None
    host: str | None
    failures: int
    again_at: datetime | None


class FullLimit(Answer, tag_field="kind", tag="full_limit"):
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


class KeptPool(Answer, tag_field="kind", tag="kept_pool"):
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


class NextRound(Answer, tag_field="kind", tag="next_round"):
    pass


Reason = (
    Finished
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
    | FullLimit
    | KeptPool
    | NextRound
)


class Why(Answer):
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    state: str
    run_state: str
    reasons: list[Reason]


class PlannedTask(Answer):
    task_id: str
    count: int


class PlannedLane(Answer):
    dag_id: str
    run_id: str
    count: int
    tasks: list[PlannedTask]
    pool: str
    pool_slots: int
    queue: str
    run_priority: int
    priority: int


class LimitUse(Answer):
    limit: str
    name: str
    capacity: int
    used: int


class BlockedTasks(Answer):
    by: LimitUse | None
    paused: bool
    kept: bool
    tasks: int
    closed: str | None = None


class WaitingLane(Answer):
    lane: PlannedLane
    by: LimitUse | None
    kept: bool
    closed: str | None = None


class Plan(Answer):
    starting: int
    starts: list[PlannedLane]
    complete: bool
    blocked: list[BlockedTasks]
    counted: bool
    waiting: list[WaitingLane]
    unapplied: dict[str, int]
    schedulers: int
