"""What waits to be applied: reports and timers, taken by run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from evenflow.core.limits import (
    API_HEARD_S,
    CHANGE_OVERHEAD,
    CHANGED_PER_TURN,
    CHANGES_PER_TURN,
    INSTANTS_SEEN,
    REPORTS_PER_TURN,
    REPORTS_SEEN,
    RUNS_PER_TURN,
    WAITING_WORKERS,
)
from evenflow.core.states import TaskState
from evenflow.store.db.columns import numbers, texts
from evenflow.store.db.rows import Conn, Rows, execute, row_of

TURN_LIMITS = {"heard_s": API_HEARD_S, "workers": WAITING_WORKERS}
EXECUTOR_LOCK = 0x45564E46  # "EVNF": the advisory lock of the one executor that there is


class Turn(NamedTuple):
    now_s: float  # when it began, by the database, seconds since 1970
    fast_follow: bool  # whether a round follows in the transaction that applies
    wakes: bool  # whether there are any, and so on
    run_wakes: bool
    pauses: bool
    timers: bool
    queued_timeouts: bool  # whether any task has one
    lanes: bool
    watches: bool
    tries: bool  # whether any are under way, or deferred ones keep their slot of an executor
    closures: bool  # whether pools, queues or the system may be closed
    places: int  # how often executors and sharing rules have been changed
    waiting_claims: list[tuple[int, dict[str, Any]]] | None  # by worker: key, queues, slots, resumes; the first to be served first


class Since(NamedTuple):
    """From which transactions on the next look at the inbox, and at wakes of runs, is to be. Good for the connection on which the
    last look was: another may lead to a server that knows less, and gives their numbers again.
    """

    reports: str = "0"
    changes: str = "0"  # what people want
    run_wakes: str = "0"


EVERYTHING = Since()


class Wait(NamedTuple):
    first_s: float | None  # for how long the first report or due timer has waited; ``None``: there is neither
    crowded: bool  # more runs have something to say than one turn takes


class LockedRun(NamedTuple):
    run_key: int
    dag_id: str
    version_key: int
    state: str
    priority: int
    run_after_us: int
    cancelled_by: str | None
    is_paused: bool
    clears: int  # how often people touched it
    interrupted: bool  # some of it is as a cancel left it
    branched: bool  # a branch has skipped something of it
    unfinished: int  # instances
    in_quarantine: bool
    found: int  # runs that it came to, including those that others have locked
    since: str  # of the next look, as in each row
    changes_since: str


class TakenReport(NamedTuple):
    """A report with the dispatch and task instance that it is about; those are ``None`` when its epoch is past."""

    run_key: int
    epoch: int
    kind: str
    at: str  # an instant, as the database writes it
    began_at: str  # the same, less how long it ran
    at_s: float  # seconds since 1970
    outcome: str | None
    payload: dict[str, Any] | None  # None for a success
    ran_s: float | None
    task_index: int | None
    map_index: int
    holds: list[int]
    pool_slots: int
    worker_id: int | None
    state: str | None
    try_number: int
    losses: int
    tries_before: int  # tries begun before a person cleared it
    intent: dict[str, str] | None  # what a person wants once it has ended
    resumes: bool  # whether it is the dispatch of a resume
    purpose: str | None  # what for
    deferral: int | None  # the epoch of the dispatch that deferred

    def untold(self, state: TaskState) -> dict[str, Any]:
        """What history does not know yet of its process, of a task instance in this state: which worker had it, and of an end that
        came without its start how long it ran.
        """
        if state is not TaskState.QUEUED:
            return {}
        known = {"ran_s": None if self.kind == "started" else self.ran_s, "worker": self.worker_id}
        return {name: value for name, value in known.items() if value is not None}


class TakenTimer(NamedTuple):
    kind: str
    run_key: int
    task_index: int
    map_index: int
    state: str
    epoch: int
    try_number: int
    due_at_s: float  # seconds since 1970
    is_void: bool  # its subject has changed since


def try_executor(conn: Conn) -> Rows[tuple[bool]]:
    """Whether this transaction has the executor's lock."""
    return Rows(execute(conn, "inbox/try_executor", {"executor": EXECUTOR_LOCK}), tuple)


def begin_turn(conn: Conn, since: Since = EVERYTHING) -> Rows[Turn]:
    return Rows(execute(conn, "inbox/begin_turn", {"since": since.run_wakes, **TURN_LIMITS}), row_of(Turn))


def lock_runs(
    conn: Conn, since: Since, *, limit: int, helps_after_s: float, spread: float = 0.0, only: Collection[int] | None = None
) -> Rows[LockedRun]:
    """Returns the runs that are locked now. If there are none it is one row, whose ``run_key`` is 0. Follows :func:`try_executor`.
    Without that lock it takes nothing until the oldest report has waited for ``helps_after_s``, and ``spread``, at least 0 and
    below 1, says where among the waiting reports it begins. Takes reports of all runs, or ``only`` of these.
    """
    params = {
        "limit": limit,
        "reports": REPORTS_SEEN,
        "changes": CHANGES_PER_TURN,
        "helps_after": helps_after_s,
        "spread": spread,
        "instants": INSTANTS_SEEN,
        "since": since.reports,
        "changes_since": since.changes,
        "only": None if only is None else numbers(only),
    }
    return Rows(execute(conn, "inbox/lock_runs", params), row_of(LockedRun))


def take_reports(conn: Conn, *, limit: int) -> Rows[TakenReport]:
    """At most ``limit`` reports of what :func:`lock_runs` has locked; the rest stays for the next transaction."""
    params = {
        "limit": limit,
        "changes": CHANGES_PER_TURN,
        "instances": CHANGED_PER_TURN,
        "overhead": CHANGE_OVERHEAD,
    }
    return Rows(execute(conn, "inbox/take_reports", params), row_of(TakenReport))


def take_timers(conn: Conn, run_keys: list[int], *, share: int) -> Rows[TakenTimer]:
    """Those that are due, the oldest first, of each run at most its ``share``; the rest stays for the next transaction."""
    params = {"run_keys": numbers(run_keys), "share": share}
    return Rows(execute(conn, "inbox/take_timers", params), row_of(TakenTimer))


def read_wait(conn: Conn, since: Since) -> tuple[Wait, Since]:
    """What waits, and from when on to look next."""
    params = {"since": since.reports, "runs": RUNS_PER_TURN, "reports": REPORTS_PER_TURN}
    ((waited_s, crowded, reports),) = execute(conn, "inbox/read_wait", params).fetchall()
    return Wait(None if waited_s is None or waited_s < 0 else waited_s, crowded), since._replace(reports=reports)


def next_due(conn: Conn) -> Rows[tuple[float | None]]:
    """Seconds until the next timer; ``None`` without timers."""
    return Rows(execute(conn, "inbox/next_due"), tuple)


def delete_orphans(conn: Conn, since: Since) -> tuple[int, Since]:
    """Deletes reports of runs that do not exist any more; answers how many, and from when on to look next."""
    params = {"reports": REPORTS_SEEN, "since": since.reports, "changes_since": since.changes}
    ((deleted, *following),) = execute(conn, "inbox/delete_orphans", params).fetchall()
    return deleted, Since(*following)


def insert_cancels(conn: Conn, cancels: Sequence[tuple[int, str]]) -> None:
    """Asks for the end of runs as (run_key, requester or cause), and wakes the listeners of the inbox."""
    run_keys, actors = zip(*cancels, strict=True)
    execute(conn, "inbox/insert_cancels", {"run_keys": numbers(run_keys), "actors": texts(actors)})


def insert_settles(conn: Conn, rest: Mapping[int, tuple[int, int]]) -> None:
    """By run: the (task_index, map_index) behind which waiting tasks are still to be judged. Wakes the listeners of the inbox."""
    tasks, maps = zip(*rest.values(), strict=True)
    execute(conn, "inbox/insert_settles", {"run_keys": numbers(rest), "tasks": numbers(tasks), "maps": numbers(maps)})


def notify(conn: Conn, channel: str) -> None:
    """Wakes the listeners on a channel of :mod:`evenflow.store.db.notify`, once the transaction commits."""
    execute(conn, "inbox/notify", {"channel": channel})
