"""Lanes, limit classes and limits: what a selection round reads and writes. All but the wakes are for the holder of the executor's
lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from evenflow.core.limits import LANES_PER_ROUND, LEAST_HEADS, MOST_EXEMPT, MOST_HEADS, MOST_LIMIT_CLASSES, MOST_PARKED
from evenflow.core.selection import OPEN, WOKEN, Lane, LimitClass, Queue
from evenflow.core.service_states import ALL_OPEN, Closures
from evenflow.store.db.columns import arrays, floats, numbers, texts, words
from evenflow.store.db.rows import Conn, Rows, execute, row_of
from evenflow.store.scheduling.runs import RunLimit


class StoredLane(NamedTuple):
    lane_id: int
    class_id: int
    run_key: int
    run_priority: int
    priority: int
    run_after_us: int  # of resumes a time before all dates
    locals: list[int]
    ready: int
    task_index: int | None  # the mapped task whose untouched instances it stands for
    next_map_index: int
    end_map_index: int
    parked_on: int
    since_s: float  # when the first of its tasks became ready, seconds since 1970
    tries_before: int  # of its untouched instances, when their task was cleared and expanded anew
    exempt: bool  # resumes, clean-up and callbacks: they start where first starts may not

    def as_lane(self, now_s: float) -> Lane:
        """As the core sees it; ``now_s`` in seconds since 1970."""
        order = (-self.run_priority, -self.priority, self.run_after_us, self.lane_id)
        return Lane(self.lane_id, self.class_id, order, self.locals, self.ready, self.parked_on, now_s - self.since_s, self.exempt)


class LimitRoom(NamedTuple):
    limit_id: int
    free: int  # capacity minus use
    patience_s: float | None  # of a pool that does not backfill
    released_at_s: float  # when it last had more room than before, seconds since 1970


class Ahead(NamedTuple):
    """How many lanes of each queue a statement reads: fewer when there are many queues."""

    most: int

    @property
    def params(self) -> dict[str, int]:
        return {"least": LEAST_HEADS, "most": self.most, "lanes": LANES_PER_ROUND}

    def of(self, queues: int) -> int:
        return max(LEAST_HEADS, min(self.most, LANES_PER_ROUND // max(1, queues)))


OPEN_AHEAD, PARKED_AHEAD = Ahead(MOST_HEADS), Ahead(MOST_PARKED)


def fold_wakes(conn: Conn) -> Rows[tuple[int, int, float, bool]]:
    """Deletes the wakes; answers (limit_id, released, when the last of it was, whether it limits the runs of a DAG)."""
    return Rows(execute(conn, "selection/fold_wakes"), tuple)


def insert_wakes(conn: Conn, released: Mapping[int, int], at: Mapping[int, float], now_s: float) -> None:
    """Releases for the next round, with when they happened, seconds since 1970; ``now_s`` where ``at`` is silent."""
    instants = (at.get(limit, now_s) for limit in released)
    params = {"limits": numbers(released), "released": numbers(released.values()), "at": floats(instants)}
    execute(conn, "selection/insert_wakes", params)


def closed(closures: Closures) -> dict[str, str]:
    """Binds that say what is closed."""
    return {"closed": numbers(closures.limits), "closed_queues": texts(closures.queues)}


def heads(released: Mapping[int, int], closures: Closures) -> dict[str, object]:
    """Binds of the statements that read open lanes."""
    return {"limits": numbers(released), "released": numbers(released.values()), **OPEN_AHEAD.params, **closed(closures)}


def count_open_classes(conn: Conn) -> Rows[tuple[int]]:
    """In how many limit classes lanes are open or woken; above ``MOST_LIMIT_CLASSES``: in more than can be looked through."""
    return Rows(execute(conn, "selection/count_open_classes", {"most": MOST_LIMIT_CLASSES + 1}), tuple)


def read_heads(conn: Conn, released: Mapping[int, int], closures: Closures) -> Rows[StoredLane]:
    """The best open lanes of each limit class that can start one, or whose pool may be kept for one; of ``MOST_LIMIT_CLASSES``
    limit classes.
    """
    return Rows(
        execute(conn, "selection/read_heads", {**heads(released, closures), "limit_classes": MOST_LIMIT_CLASSES}),
        row_of(StoredLane),
    )


def read_heads_of_bases(conn: Conn, released: Mapping[int, int], closures: Closures) -> Rows[StoredLane]:
    """The same of each base, whichever task's limit they have."""
    return Rows(execute(conn, "selection/read_heads_of_bases", heads(released, closures)), row_of(StoredLane))


def read_exempt(conn: Conn, released: Iterable[int], closures: Closures) -> Rows[StoredLane]:
    """The exempt lanes of closed limit classes, whatever they are parked on, except those whose witness is full."""
    params = {"released": numbers(released), "limit": MOST_EXEMPT, **closed(closures)}
    return Rows(execute(conn, "states/read_exempt", params), row_of(StoredLane))


def read_closures(conn: Conn) -> Rows[tuple[int | None, str | None]]:
    """What is closed, as :func:`as_closures` takes it."""
    return Rows(execute(conn, "states/read_closures"), tuple)


def as_closures(rows: Iterable[tuple[int | None, str | None]]) -> Closures:
    """Of rows (limit_id, queue), one of which is null."""
    found = list(rows)
    if not found:
        return ALL_OPEN
    return Closures(frozenset(limit for limit, _ in found if limit is not None), frozenset(q for _, q in found if q is not None))


def read_parked(conn: Conn, limits: Iterable[int]) -> Rows[StoredLane]:
    """The best lanes parked on each of these limits, per limit class, best first."""
    return Rows(execute(conn, "selection/read_parked", {"limits": numbers(limits), **PARKED_AHEAD.params}), row_of(StoredLane))


def more_of(queue: Queue, *, by_base: bool, seen: int) -> tuple[str, dict[str, int]]:
    """The statement that reads the next ``MOST_HEADS`` lanes of a queue behind those that have been read, and its binds."""
    params = {"parked_on": WOKEN if queue.woken else OPEN, "queue": queue.class_id, "seen": seen, "limit": MOST_HEADS}
    return "selection/read_more_of_base" if by_base else "selection/read_more", params


def read_more(conn: Conn, queue: Queue, *, by_base: bool, seen: int) -> Rows[StoredLane]:
    return Rows(execute(conn, *more_of(queue, by_base=by_base, seen=seen)), row_of(StoredLane))


def find_waiting(conn: Conn, limits: Iterable[int]) -> Rows[tuple[int]]:
    """Which of these limits are not free to take: somebody waits for them, or a pool may have to be kept for somebody."""
    return Rows(execute(conn, "selection/find_waiting", {"limits": numbers(limits)}), tuple)


def find_lanes(conn: Conn, keys: Iterable[tuple[int, int, int]]) -> Rows[StoredLane]:
    """Lanes of these (run_key, class_id, priority), except lanes of resumes."""
    run_keys, limit_classes, priorities = zip(*keys, strict=True)
    params = {"run_keys": numbers(run_keys), "limit_classes": numbers(limit_classes), "priorities": numbers(priorities)}
    return Rows(execute(conn, "selection/find_lanes", params), row_of(StoredLane))


def read_limits(conn: Conn, limits: Iterable[int]) -> Rows[LimitRoom]:
    return Rows(execute(conn, "selection/read_limits", {"limits": numbers(limits)}), row_of(LimitRoom))


def read_run_limits(conn: Conn, run_keys: Iterable[int]) -> Rows[RunLimit]:
    return Rows(execute(conn, "selection/read_run_limits", {"run_keys": numbers(run_keys)}), row_of(RunLimit))


def use_limits(conn: Conn, deltas: Mapping[int, int], released_at: Mapping[int, float], now_s: float) -> None:
    """Adds ``deltas`` to the use of limits; of those that fall, ``released_at`` says since when, seconds since 1970."""
    instants = (released_at.get(limit, now_s) for limit in deltas)
    params = {"limits": numbers(deltas), "deltas": numbers(deltas.values()), "released_at": floats(instants)}
    execute(conn, "selection/use_limits", params)


def find_limit_class(
    conn: Conn, pool: str, executor: str, queue: str, weight: int, task_limit: int | None, base_id: int | None
) -> tuple[int, int, int, int] | None:
    """(class_id, base_id, pool_limit, executor_limit); ``None`` when the pool or the executor does not exist."""
    params = {
        "pool": pool,
        "executor": executor,
        "queue": queue,
        "weight": weight,
        "task_limit": task_limit,
        "base_id": base_id,
    }
    return execute(conn, "selection/find_limit_class", params).fetchone()


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
        run_afters,
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
        "run_afters": numbers(run_afters),
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
    """Parks the lanes of DAGs that are paused now, opens those of the others; answers the limits to wake, 0 when lanes opened."""
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
    """The first of a thousand fresh numbers of ``epoch_seq`` or ``lane_seq``."""
    return Rows(execute(conn, "selection/reserve", {"sequence": sequence}), tuple)
