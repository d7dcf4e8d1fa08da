"""Runs as the scheduler handles them: taken, started, counted down, finished, and created when their DAG is due; and what their
branches decided.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from evenflow.core.limits import CREATION_LINES, RUN_WAKES_PER_TURN
from evenflow.core.states import RunEvent, RunState, move_run
from evenflow.store.db.columns import arrays, floats, numbers, texts, words
from evenflow.store.db.rows import Conn, Rows, execute, row_of


class QueuedRun(NamedTuple):
    run_key: int
    dag_id: str
    version_key: int
    priority: int
    run_after_us: int
    slot_limit: int | None  # the DAG's max_active_runs limit
    due_at_s: float  # when it could start at the earliest, seconds since 1970
    clears: int  # how often people touched it: it has run before
    interrupted: bool  # some of it is as a cancel left it
    wake_id: int  # the place of its DAG
    wake_xact: str  # the same
    more: bool  # whether there may be more, of all
    since: str  # of the next look, as in each row


class CountedRun(NamedTuple):
    run_key: int
    unfinished: int
    failed_leaves: int
    interrupted: bool  # some of it is as a cancel left it
    cancelled_by: str | None
    slot_limit: int | None  # the max_active_runs limit that it holds one of
    others_wait: bool  # runs of its DAG are queued


class RunLimit(NamedTuple):
    limit_id: int
    kind: str
    run_key: int
    name: str


def read_specs(conn: Conn, version_keys: Iterable[int]) -> Rows[tuple[int, str]]:
    """The versions' DagSpecs as JSON."""
    return Rows(execute(conn, "runs/read_specs", {"version_keys": numbers(version_keys)}), tuple)


def take_queued(conn: Conn, since: str, *, dags: int, limit: int, share: int) -> Rows[QueuedRun]:
    """Returns at most ``limit`` runs that may start, in their order of starting, of at most ``dags`` DAGs that wakes name; at most
    ``share`` of each. Deletes their wakes: the caller makes one for what it leaves. Without any there is one row whose ``run_key``
    is 0. A transaction that has asked for the executor's lock in vain takes none.
    """
    params = {"since": since, "wakes": RUN_WAKES_PER_TURN, "dags": dags, "limit": limit, "share": share, "lines": CREATION_LINES}
    return Rows(execute(conn, "runs/take_queued", params), row_of(QueuedRun))


def wake(conn: Conn, dag_ids: Sequence[str]) -> None:
    """The next turn looks at these DAGs."""
    execute(conn, "runs/wake", {"dag_ids": texts(dag_ids)})


def keep_places(conn: Conn, runs: Iterable[QueuedRun]) -> None:
    """Of the DAGs of these, which were taken in this transaction and of which nothing has begun."""
    first = {run.dag_id: run for run in reversed(list(runs))}
    params = {
        "dag_ids": texts(first),
        "wake_ids": numbers(run.wake_id for run in first.values()),
        "priorities": numbers(run.priority for run in first.values()),
        "xacts": numbers(int(run.wake_xact) for run in first.values()),
    }
    execute(conn, "runs/keep_places", params)


def run_moved(was: RunState, event: RunEvent) -> dict[str, str]:
    """What a statement needs to know of a move: the state of the runs before it, and after it."""
    return {"was": was, "state": move_run(was, event)}


def start(conn: Conn, runs: Sequence[tuple[int, int, int]]) -> None:
    """Runs as (run_key, unfinished task instances, max_active_runs limit held or 0) become running."""
    run_keys, unfinished, slots = zip(*runs, strict=True)
    params = {"run_keys": numbers(run_keys), "unfinished": numbers(unfinished), "slots": numbers(slots)}
    execute(conn, "runs/start", params | run_moved(RunState.QUEUED, RunEvent.START))


def insert_counters(conn: Conn, counters: Sequence[tuple[int, int, int]]) -> None:
    """Upstream counters as (run_key, task_index, total)."""
    run_keys, tasks, totals = zip(*counters, strict=True)
    execute(conn, "runs/insert_counters", {"run_keys": numbers(run_keys), "tasks": numbers(tasks), "totals": numbers(totals)})


def insert_limits(conn: Conn, limits: Collection[RunLimit], capacities: Iterable[int]) -> None:
    """Of new runs."""
    ids, kinds, run_keys, names = zip(*limits, strict=True)
    params = {"limits": numbers(ids), "kinds": words(kinds), "run_keys": numbers(run_keys), "names": texts(names)}
    execute(conn, "runs/insert_limits", {**params, "capacities": numbers(capacities)})


def delete_limits(conn: Conn, run_keys: Sequence[int]) -> None:
    execute(conn, "runs/delete_limits", {"run_keys": numbers(run_keys)})


def delete_ended_limits(conn: Conn, limits: Sequence[int]) -> None:
    """Deletes the limits of runs that have ended, among them one of these."""
    execute(conn, "runs/delete_ended_limits", {"limits": numbers(limits)})


def count_down(conn: Conn, finished: Sequence[tuple[int, int, int]]) -> Rows[CountedRun]:
    """Takes (run_key, finished instances, failed leaves) off the runs; a negative number of finished adds instances."""
    run_keys, counts, leaves = zip(*finished, strict=True)
    params = {"run_keys": numbers(run_keys), "finished": numbers(counts), "failed_leaves": numbers(leaves)}
    return Rows(execute(conn, "runs/count_down", params), row_of(CountedRun))


def finish(conn: Conn, runs: Sequence[tuple[int, str, str | None]]) -> None:
    """Runs as (run_key, final state, reason)."""
    run_keys, states, reasons = zip(*runs, strict=True)
    execute(conn, "runs/finish", {"run_keys": numbers(run_keys), "states": words(states), "reasons": texts(reasons)})


def mark_cancelled(conn: Conn, run_key: int, actor: str) -> None:
    execute(conn, "runs/mark_cancelled", {"run_key": run_key, "actor": actor})


def append_events(conn: Conn, events: Sequence[tuple[int, str, str, str]]) -> None:
    """History as (run_key, event, state, actor)."""
    run_keys, names, states, actors = zip(*events, strict=True)
    params = {"run_keys": numbers(run_keys), "events": words(names), "states": words(states), "actors": texts(actors)}
    execute(conn, "runs/append_events", params)


def insert_timeouts(conn: Conn, timeouts: Sequence[tuple[int, float]]) -> None:
    """Runs that start now as (run_key, seconds that they may take)."""
    run_keys, seconds = zip(*timeouts, strict=True)
    execute(conn, "runs/insert_timeouts", {"run_keys": numbers(run_keys), "seconds": floats(seconds)})


def lock_dags(conn: Conn, dag_ids: Collection[str]) -> None:
    """In one order for all."""
    execute(conn, "runs/lock_dags", {"dag_ids": texts(dag_ids)})


def pause_failing(conn: Conn, limits: Sequence[tuple[str, int]]) -> None:
    """Pauses those of these (dag_id, how many) whose last ``how many`` runs have all failed."""
    dag_ids, most = zip(*limits, strict=True)
    lock_dags(conn, set(dag_ids))
    execute(conn, "runs/pause_failing", {"dag_ids": texts(dag_ids), "most": numbers(most)})


class BranchDecision(NamedTuple):
    task_index: int  # of the branch
    map_index: int
    skipped: list[int]  # task indexes


def keep_decisions(conn: Conn, decisions: Sequence[tuple[int, int, int, Sequence[int]]]) -> None:
    """Of branches, as (run_key, task_index, map_index, task indexes that are skipped); one of an earlier try is replaced."""
    run_keys, tasks, maps, skipped = zip(*decisions, strict=True)
    params = {"run_keys": numbers(run_keys), "tasks": numbers(tasks), "maps": numbers(maps), "skipped": arrays(skipped)}
    execute(conn, "branches/keep", params)


def read_decisions(conn: Conn, run_key: int) -> Rows[BranchDecision]:
    """The decisions of a run whose branch is a success."""
    return Rows(execute(conn, "branches/read_decisions", {"run_key": run_key}), row_of(BranchDecision))
