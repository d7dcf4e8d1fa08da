"""Lanes, limit classes and limits: what a selection round reads and writes. All but the wakes are for the holder of the executor's
lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from evenflow.core.asking import Question
from evenflow.core.selection.lanes import LimitClass, Share
from evenflow.core.service_states import ALL_OPEN, Closures
from evenflow.store.db.columns import arrays, floats, numbers, words
from evenflow.store.db.rows import Conn, Rows, execute, row_of
from evenflow.store.scheduling.lanes import LimitRoom, StoredLane, statement_of
from evenflow.store.scheduling.runs import RunLimit


class SharedScope(NamedTuple):
    """A pool or executor where more than the order decides."""

    limit_id: int
    kind: str
    name: str
    aging_s: int | None
    share_by: str | None
    weighted: list[str]  # tenants that were given a weight


def fold_wakes(conn: Conn) -> Rows[tuple[int, int, float, bool]]:
    """Deletes the wakes; answers (limit_id, released, when the last of it was, whether it limits the runs of a DAG)."""
    return Rows(execute(conn, "selection/fold_wakes"), tuple)


def insert_wakes(conn: Conn, released: Mapping[int, int], at: Mapping[int, float], now_s: float) -> None:
    """Releases for the next round, with when they happened, seconds since 1970; ``now_s`` where ``at`` is silent."""
    instants = (at.get(limit, now_s) for limit in released)
    params = {"limits": numbers(released), "released": numbers(released.values()), "at": floats(instants)}
    execute(conn, "selection/insert_wakes", params)


def ask(conn: Conn, question: Question[Any]) -> Rows[Any]:
    """Sends what a round asks for."""
    statement = statement_of(question)
    kind: Any = statement.kind
    return Rows(
        execute(conn, statement.name, statement.params), row_of(kind) if issubclass(kind, tuple) else lambda row: kind(*row)
    )


def read_closures(conn: Conn) -> Rows[tuple[int | None, str | None]]:
    """What is closed, as :func:`as_closures` takes it."""
    return Rows(execute(conn, "states/read_closures"), tuple)


def as_closures(rows: Iterable[tuple[int | None, str | None]]) -> Closures:
    """Of rows (limit_id, queue), one of which is null."""
    found = list(rows)
    if not found:
        return ALL_OPEN
    return Closures(frozenset(limit for limit, _ in found if limit is not None), frozenset(q for _, q in found if q is not None))


def foresee_room(conn: Conn, limits: Iterable[int]) -> Rows[LimitRoom]:
    """The room on these limits, and on max_active_tasks of the runs that ``inbox.lock_runs`` has locked."""
    return Rows(execute(conn, "selection/read_limits", {"limits": numbers(limits), "of_locked": True}), row_of(LimitRoom))


def find_waiting(conn: Conn, limits: Iterable[int], *, of_locked: bool = False) -> Rows[tuple[int]]:
    """Returns which of these limits are not free to take: tasks wait for them, or a pool may have to be kept for others.
    ``of_locked`` includes max_active_tasks of the runs that ``inbox.lock_runs`` has locked.
    """
    return Rows(execute(conn, "selection/find_waiting", {"limits": numbers(limits), "of_locked": of_locked}), tuple)


def find_lanes(conn: Conn, keys: Iterable[tuple[int, int, int]]) -> Rows[StoredLane]:
    """Lanes of these (run_key, class_id, priority), except lanes of resumes."""
    run_keys, limit_classes, priorities = zip(*keys, strict=True)
    params = {"run_keys": numbers(run_keys), "limit_classes": numbers(limit_classes), "priorities": numbers(priorities)}
    return Rows(execute(conn, "selection/find_lanes", params), row_of(StoredLane))


def read_run_limits(conn: Conn, run_keys: Iterable[int]) -> Rows[RunLimit]:
    return Rows(execute(conn, "selection/read_run_limits", {"run_keys": numbers(run_keys)}), row_of(RunLimit))


def use_limits(conn: Conn, deltas: Mapping[int, int], released_at: Mapping[int, float], now_s: float) -> None:
    """Adds ``deltas`` to the use of limits; for those that fall, ``released_at`` is the time, in seconds since 1970."""
    instants = (released_at.get(limit, now_s) for limit in deltas)
    params = {"limits": numbers(deltas), "deltas": numbers(deltas.values()), "released_at": floats(instants)}
    execute(conn, "selection/use_limits", params)


def find_limit_class(
    conn: Conn,
    pool: str,
    executor: str,
    queue: str,
    weight: int,
    task_limit: int | None,
    aging_s: int | None,
    share_id: int | None,
    base_id: int | None,
) -> tuple[int, int, int, int] | None:
    """(class_id, base_id, pool_limit, executor_limit); ``None`` when the pool or the executor does not exist."""
    params = {
        "pool": pool,
        "executor": executor,
        "queue": queue,
        "weight": weight,
        "task_limit": task_limit,
        "aging_s": aging_s,
        "share_id": share_id,
        "base_id": base_id,
    }
    return execute(conn, "selection/find_limit_class", params).fetchone()


def read_sharing(conn: Conn) -> Rows[SharedScope]:
    return Rows(execute(conn, "selection/read_sharing"), row_of(SharedScope))


def read_executors(conn: Conn) -> Rows[tuple[str, str]]:
    """(queue, executor) of the queues that are not the default one's."""
    return Rows(execute(conn, "selection/read_executors"), tuple)


def find_share(conn: Conn, scope_id: int, tenant: str) -> int:
    """Returns the share of a tenant, which is made if it does not exist."""
    ((share_id,),) = execute(conn, "selection/find_share", {"scope_id": scope_id, "name": tenant}).fetchall()
    return int(share_id)


def charge_shares(conn: Conn, shares: Collection[Share], times: Mapping[int, int]) -> None:
    """What tenants were served, and the times of their shared places."""
    params = {"shares": numbers(share.share_id for share in shares), "served": numbers(share.served for share in shares)}
    execute(conn, "selection/charge_shares", {**params, "scopes": numbers(times), "times": numbers(times.values())})


def read_limit_classes(conn: Conn, limit_classes: Iterable[int]) -> Rows[LimitClass]:
    return Rows(
        execute(conn, "selection/read_limit_classes", {"limit_classes": numbers(limit_classes)}), lambda row: LimitClass(*row)
    )


def find_task_limit(conn: Conn, name: str) -> int | None:
    """The max_active_tis_per_dag limit of ``dag_id/task_id``."""
    row = execute(conn, "selection/find_task_limit", {"name": name}).fetchone()
    return None if row is None else int(row[0])


def insert_lanes(conn: Conn, lanes: Sequence[StoredLane], bases: Sequence[int]) -> None:
    """``bases`` are those of their limit classes."""
    (
        ids,
        limit_classes,
        run_keys,
        run_priorities,
        priorities,
        order_keys,
        locals_,
        ready,
        tasks,
        next_,
        ends,
        parked,
        since,
        tries_before,
        exempt,
    ) = zip(*lanes, strict=True)
    params = {
        "lanes": numbers(ids),
        "limit_classes": numbers(limit_classes),
        "run_keys": numbers(run_keys),
        "run_priorities": numbers(run_priorities),
        "priorities": numbers(priorities),
        "order_keys": words(key.hex() for key in order_keys),
        "locals": arrays(locals_),
        "parked": numbers(parked),
        "ready": numbers(ready),
        "tasks": numbers(-1 if t is None else t for t in tasks),
        "next": numbers(next_),
        "ends": numbers(ends),
        "since": floats(since),
        "tries_before": numbers(tries_before),
        "exempt": words(str(e) for e in exempt),
        "bases": numbers(bases),
    }
    execute(conn, "selection/insert_lanes", params)


def insert_ready(conn: Conn, ready: Sequence[tuple[int, int, int]]) -> None:
    """Ready tasks as (lane_id, task_index, map_index)."""
    lanes, tasks, maps = zip(*ready, strict=True)
    execute(conn, "selection/insert_ready", {"lanes": numbers(lanes), "tasks": numbers(tasks), "maps": numbers(maps)})


def take_ready(conn: Conn, counts: Mapping[int, int]) -> Rows[tuple[int, int, int, str, int, int]]:
    """The first tasks of lanes, by lane how many: (lane_id, task_index, map_index, state, epoch, try_number)."""
    params = {"lanes": numbers(counts), "counts": numbers(counts.values())}
    return Rows(execute(conn, "selection/take_ready", params), tuple)


def update_lanes(conn: Conn, lanes: Sequence[tuple[int, int, int, int]]) -> None:
    """Lanes as (lane_id, parked_on, ready, next_map_index)."""
    ids, parked, ready, next_ = zip(*lanes, strict=True)
    params = {"lanes": numbers(ids), "parked": numbers(parked), "ready": numbers(ready), "next": numbers(next_)}
    execute(conn, "selection/update_lanes", params)


def delete_lanes(conn: Conn, lane_ids: Sequence[int]) -> None:
    execute(conn, "selection/delete_lanes", {"lanes": numbers(lane_ids)})


def delete_run_lanes(conn: Conn, run_key: int) -> Rows[tuple[int]]:
    """Deletes the lanes of a run; answers the limits that lanes behind them may be parked on."""
    return Rows(execute(conn, "selection/delete_run_lanes", {"run_key": run_key}), tuple)


def take_pauses(conn: Conn) -> Rows[tuple[str, bool]]:
    """DAGs that were paused or unpaused since the last look, as (dag_id, is_paused)."""
    return Rows(execute(conn, "selection/take_pauses"), tuple)


def apply_pauses(conn: Conn, changed: Mapping[str, bool]) -> list[int]:
    """Parks the lanes of DAGs that are paused now, and opens those of the others; returns the limits to wake, 0 when lanes
    opened.
    """
    paused = [dag_id for dag_id, is_paused in changed.items() if is_paused]
    unpaused = [dag_id for dag_id, is_paused in changed.items() if not is_paused]
    limits = [0] if unpaused else []
    if paused:
        limits += [row[0] for row in execute(conn, "selection/park_paused", {"dag_ids": paused})]
    if unpaused:
        execute(conn, "selection/open_unpaused", {"dag_ids": unpaused})
    return limits


def keep_pauses(conn: Conn, dag_ids: Collection[str]) -> Rows[tuple[str]]:
    """Which of these DAGs are paused; none is paused or unpaused before this transaction has ended."""
    return Rows(execute(conn, "selection/keep_pauses", {"dag_ids": list(dag_ids)}), tuple)


def reserve(conn: Conn, sequence: str) -> Rows[tuple[int]]:
    """The first of a thousand fresh numbers of ``epoch_seq``, ``lane_seq`` or ``run_limit_seq``."""
    return Rows(execute(conn, "selection/reserve", {"sequence": sequence}), tuple)
