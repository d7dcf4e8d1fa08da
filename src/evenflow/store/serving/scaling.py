"""Fleets, what autoscalers see of them and do with them. For autoscalers, and for the API, which shows it."""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from psycopg.rows import args_row

from evenflow.core.limits import LEASE_S
from evenflow.core.scaling.forecast import RunningTask, Successor, TaskHabits
from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.core.scaling.sizing import Look, Sizing
from evenflow.core.trigger_rules import UpstreamCounts
from evenflow.errors import EvenflowError, NotActing
from evenflow.store.db.columns import numbers, texts
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import read
from evenflow.store.db.notify import DISPATCH, FLEETS, RESUMES, wake_async
from evenflow.store.db.sql import sql


class FleetGone(EvenflowError):
    """An autoscaler wanted to change something of a fleet, and it was deleted meanwhile."""


class FleetRow(NamedTuple):
    name: str
    target: str
    queues: list[str]
    policy: dict[str, Any]
    options: dict[str, Any]
    replicas: int
    changed_at: Any
    changed_by: str

    @property
    def rule(self) -> ScalingPolicy:
        return ScalingPolicy.of(self.policy)


class WorkerRow(NamedTuple):
    """A worker that lives. ``by_queue``: of the tries that it has; ``age_s``: for how long they have run, on average."""

    service_id: int
    name: str
    is_ready: bool
    slots: int
    queues: list[str]
    began_at: float
    fence: int | None
    out_of_service: bool
    running: int
    by_queue: dict[str, int] | None
    age_s: float | None

    @property
    def takes_tries(self) -> bool:
        return self.is_ready and self.fence is None and not self.out_of_service


class WaitingRow(NamedTuple):
    """``kind`` is that of the queue's executor."""

    queue: str
    waiting: int
    oldest_wait: float
    kind: str


class TaskCost(NamedTuple):
    """Tries of one task that a worker runs; with zeros, of all. ``squares``: of the seconds for which they have run, summed up."""

    worker_id: int
    version_key: int
    task_index: int
    squares: float


class TaskName(NamedTuple):
    """Of a task, what its labels are made of."""

    version_key: int
    task_index: int
    dag_id: str
    task_id: str
    tags: list[str]


@dataclass(slots=True)
class StepRow:
    step_id: int
    plan: int
    step: str
    detail: dict[str, Any]
    at: float
    done: bool


# -- who acts


async def take_lease(conn: AsyncConn, holder: int) -> float | None:
    """The time by the database when this autoscaler is the acting one; None when another one is."""
    row = await (await conn.execute(sql("scaling/take_lease"), {"holder": holder, "lease_s": LEASE_S}, prepare=True)).fetchone()
    return None if row is None else float(row[0])


async def lease_left_s(conn: AsyncConn) -> float:
    """Seconds until no autoscaler acts, unless the one that acts renews its lease."""
    row = await (await conn.execute(sql("scaling/read_lease"), prepare=True)).fetchone()
    return 0.0 if row is None else float(row[0])


async def give_lease(conn: AsyncConn, holder: int) -> None:
    await conn.execute(sql("scaling/give_lease"), {"holder": holder})


@asynccontextmanager
async def acting(conn: AsyncConn, holder: int, plan: int | None = None) -> AsyncIterator[None]:
    """A transaction of the autoscaler that acts, for this plan if there is one. Raises :class:`NotActing` when another autoscaler
    acts by now, and :class:`FleetGone` when the plan was deleted with its fleet.
    """
    async with conn.transaction():
        lease = await conn.execute(sql("scaling/hold_lease"), {"holder": holder}, prepare=True)
        if await lease.fetchone() is None:
            raise NotActing("Another autoscaler acts by now.")
        if plan is not None:
            held = await conn.execute(sql("scaling/hold_plan"), {"plan": plan}, prepare=True)
            if await held.fetchone() is None:
                raise FleetGone(f"Plan {plan} was deleted with its fleet.")
        yield


# -- fleets


async def list_fleets(conn: AsyncConn, name: str | None = None) -> list[FleetRow]:
    cursor = conn.cursor(row_factory=args_row(FleetRow))
    return await (await cursor.execute(sql("scaling/list_fleets"), {"name": name}, prepare=True)).fetchall()


async def read_fleet(conn: AsyncConn, name: str) -> FleetRow:
    """Raises :class:`FleetGone`."""
    found = await list_fleets(conn, name)
    if not found:
        raise FleetGone(f"Fleet {name!r} was deleted.")
    return found[0]


async def set_fleet(
    conn: AsyncConn, *, name: str, target: str, queues: Collection[str], policy: ScalingPolicy, options: Mapping[str, Any], by: str
) -> bool:
    """Whether it is set: a fleet keeps the target that it has."""
    params = {
        "name": name,
        "target": target,
        "queues": list(queues),
        "policy": json.dumps(policy.told()),
        "options": json.dumps(dict(options)),
        "by": by,
    }
    return await (await conn.execute(sql("scaling/set_fleet"), params)).fetchone() is not None


async def delete_fleet(conn: AsyncConn, name: str) -> bool:
    """Whether there was one."""
    return await (await conn.execute(sql("scaling/delete_fleet"), {"name": name})).fetchone() is not None


async def find_rival(conn: AsyncConn, name: str, queues: Collection[str]) -> tuple[str, list[str]] | None:
    """Another fleet that serves one of these queues, and all queues of that."""
    row = await (await conn.execute(sql("scaling/find_rival"), {"name": name, "queues": list(queues)})).fetchone()
    return None if row is None else (row[0], row[1])


async def read_refusals(conn: AsyncConn) -> list[dict[str, str]]:
    """Reads, for each autoscaler that lives, why it cannot look after fleets, by their names."""
    return [told for (told,) in await (await conn.execute(sql("scaling/read_refusals"), {"lease_s": LEASE_S})).fetchall()]


async def set_replicas(conn: AsyncConn, fleet: str, replicas: int) -> None:
    await conn.execute(sql("scaling/set_replicas"), {"fleet": fleet, "replicas": replicas}, prepare=True)


# -- what is seen


async def read_workers(conn: AsyncConn, names: Collection[str] | None = None) -> list[WorkerRow]:
    """Reads all living workers, or those of these names. Of a thousand most name the same queues: each text is read once."""
    params = {"names": None if names is None else texts(names), "lease_s": LEASE_S}
    cursor = conn.cursor(row_factory=args_row(_worker))
    return await (await cursor.execute(sql("scaling/read_workers"), params, prepare=True)).fetchall()


def _worker(*columns: Any) -> WorkerRow:
    """Made at once: a copy of a row costs as much as all else of it."""
    queues, by_queue = columns[4], columns[9]
    return WorkerRow._make((*columns[:4], _read(queues), *columns[5:9], by_queue and _read(by_queue), columns[10]))


@functools.lru_cache(maxsize=1_000)
def _read(text: str) -> Any:
    """Reads JSON into a shared value that callers must not change."""
    return json.loads(text)


async def count_waiting(conn: AsyncConn, queues: Collection[str], *, most: int) -> list[WaitingRow]:
    """Of each queue and class ``most`` are counted."""
    cursor = conn.cursor(row_factory=args_row(WaitingRow))
    params = {"queues": list(queues), "most": most}
    return await (await cursor.execute(sql("scaling/count_waiting"), params, prepare=True)).fetchall()


async def is_queue_known(conn: AsyncConn, queue: str) -> bool:
    """Whether a fleet, an executor or a DAG names it."""
    cursor = await conn.execute(sql("scaling/is_queue_known"), {"queue": queue}, prepare=True)
    row = await cursor.fetchone()
    assert row is not None
    return bool(row[0])


async def count_expected(conn: AsyncConn, *, ahead_s: float, most: int) -> dict[str, int]:
    """Tries that are known to come within ``ahead_s``, by queue; in all ``most`` are counted."""
    params = {"ahead_s": ahead_s, "most": most}
    return dict(await (await conn.execute(sql("scaling/count_expected"), params, prepare=True)).fetchall())


async def read_costs(conn: AsyncConn, workers: Collection[int], *, by_task: bool) -> list[TaskCost]:
    """Of a thousand workers there are many: their numbers are not turned into text."""
    cursor = conn.cursor(binary=True, row_factory=args_row(TaskCost))
    params = {"workers": numbers(workers), "by_task": by_task}
    return await (await cursor.execute(sql("scaling/read_costs"), params, prepare=True)).fetchall()


async def name_tasks(conn: AsyncConn, tasks: Collection[tuple[int, int]]) -> list[TaskName]:
    """Of tasks by (version_key, task_index)."""
    params = {"version_keys": numbers(key for key, _ in tasks), "task_indexes": numbers(index for _, index in tasks)}
    cursor = conn.cursor(row_factory=args_row(TaskName))
    return await (await cursor.execute(sql("scaling/name_tasks"), params, prepare=True)).fetchall()


async def read_running(conn: AsyncConn, *, most: int) -> list[RunningTask]:
    """Of ``most`` tries that workers have."""
    cursor = conn.cursor(row_factory=args_row(RunningTask))
    return await (await cursor.execute(sql("scaling/read_running"), {"most": most}, prepare=True)).fetchall()


async def read_successors(conn: AsyncConn, places: Collection[tuple[int, int]]) -> list[Successor]:
    """Those of these tasks, by (run_key, task_index), that have not begun."""
    params = {"run_keys": numbers(key for key, _ in places), "task_indexes": numbers(index for _, index in places)}
    rows = await (await conn.execute(sql("scaling/read_successors"), params, prepare=True)).fetchall()
    return [
        Successor(run_key, task_index, None if total is None else UpstreamCounts(total, *ended), room)
        for run_key, task_index, total, *ended, room in rows
    ]


async def read_habits(
    conn: AsyncConn, tasks: Mapping[tuple[int, int], int], *, runs: int, instances: int
) -> dict[tuple[int, int], TaskHabits]:
    """Reads tasks by (version_key, task_index), each with the run up to which it is looked at: ``runs`` runs, ``instances``
    instances of each.
    """
    params = {
        "version_keys": numbers(key for key, _ in tasks),
        "task_indexes": numbers(index for _, index in tasks),
        "run_keys": numbers(tasks.values()),
        "runs": runs,
        "instances": instances,
    }
    rows = await (await conn.execute(sql("scaling/read_habits"), params, prepare=True)).fetchall()
    return {(key, index): TaskHabits(tuple(took_s or ()), length) for key, index, took_s, length in rows}


async def read_pools(conn: AsyncConn, names: Collection[str]) -> dict[str, int]:
    """The free slots of each."""
    return dict(await (await conn.execute(sql("scaling/read_pools"), {"names": texts(names)}, prepare=True)).fetchall())


async def record_look(conn: AsyncConn, fleet: str, look: Look, sizing: Sizing) -> None:
    """Of a fleet that was deleted nothing is kept."""
    seen = {
        name: getattr(look, name)
        for name in (
            *("at", "running", "aside", "waiting", "expected", "oldest_wait", "duration"),
            *("replicas", "out_of_service", "others", "ready"),
        )
    }
    await conn.execute(sql("scaling/record_look"), {"fleet": fleet, **seen, "asked": sizing.asked, "reason": sizing.reason})


async def list_looks(conn: AsyncConn, fleet: str, *, since: float, limit: int, after: str | None = None) -> list[Row]:
    """The newest first."""
    params = {"fleet": fleet, "since": since, "limit": limit, "after": after}
    return await read(conn, "scaling/list_looks", params)


async def forget_looks(conn: AsyncConn, fleet: str, *, kept_s: float) -> None:
    await conn.execute(sql("scaling/forget_looks"), {"fleet": fleet, "kept_s": kept_s})


# -- fences


async def put_up_fences(conn: AsyncConn, plan: int, workers: Collection[int], *, for_s: float) -> set[str]:
    """Names of the workers that take nothing more."""
    params = {"plan": plan, "workers": numbers(workers), "for_s": for_s}
    return {name for (name,) in await (await conn.execute(sql("scaling/put_up_fences"), params)).fetchall()}


async def renew_fences(conn: AsyncConn, plan: int, *, for_s: float) -> None:
    """Renews the fences that have held without a gap."""
    await conn.execute(sql("scaling/renew_fences"), {"plan": plan, "for_s": for_s})


async def take_down_fences(conn: AsyncConn, plan: int, names: Collection[str] | None = None) -> list[str]:
    """Removes fences and returns their workers, whose polls are to be woken (:func:`wake_workers`)."""
    params = {"plan": plan, "names": None if names is None else texts(names)}
    return [name for (name,) in await (await conn.execute(sql("scaling/take_down_fences"), params)).fetchall()]


async def find_stray_fences(conn: AsyncConn) -> list[tuple[int, str]]:
    """(plan, worker) of fences whose plan has ended."""
    return await (await conn.execute(sql("scaling/find_stray_fences"), prepare=True)).fetchall()


async def wake_workers(conn: AsyncConn) -> None:
    """What waits may be for workers that take tries again."""
    await wake_async(conn, [DISPATCH, RESUMES])


async def wake_hosts(conn: AsyncConn) -> None:
    """Native workers are to be started, or ended."""
    await wake_async(conn, [FLEETS])


# -- steps


async def begin_plan(conn: AsyncConn, fleet: str, step: str, detail: Mapping[str, Any]) -> StepRow:
    """Raises :class:`FleetGone`."""
    params = {"fleet": fleet, "step": step, "detail": json.dumps(dict(detail))}
    row = await (await conn.execute(sql("scaling/begin_plan"), params)).fetchone()
    if row is None:
        raise FleetGone(f"Fleet {fleet!r} was deleted.")
    return StepRow(row[0], row[0], step, dict(detail), row[1], False)


async def begin_step(conn: AsyncConn, fleet: str, plan: int, step: str, detail: Mapping[str, Any]) -> StepRow:
    params = {"fleet": fleet, "plan": plan, "step": step, "detail": json.dumps(dict(detail))}
    row = await (await conn.execute(sql("scaling/begin_step"), params)).fetchone()
    assert row is not None
    return StepRow(row[0], plan, step, dict(detail), row[1], False)


async def detail_step(conn: AsyncConn, step: StepRow, detail: Mapping[str, Any]) -> None:
    """What a step is about to do."""
    await conn.execute(sql("scaling/detail_step"), {"step_id": step.step_id, "detail": json.dumps(dict(detail))})
    step.detail |= detail


async def finish_step(conn: AsyncConn, step: StepRow, detail: Mapping[str, Any]) -> None:
    await conn.execute(sql("scaling/finish_step"), {"step_id": step.step_id, "detail": json.dumps(dict(detail))})
    step.detail |= detail
    step.done = True


async def close_plan(conn: AsyncConn, plan: int) -> None:
    await conn.execute(sql("scaling/close_plan"), {"plan": plan})


async def read_open(conn: AsyncConn, fleet: str) -> dict[int, list[StepRow]]:
    """The steps of the plans that have not ended, by plan."""
    cursor = conn.cursor(row_factory=args_row(StepRow))
    plans: dict[int, list[StepRow]] = {}
    for step in await (await cursor.execute(sql("scaling/read_open"), {"fleet": fleet}, prepare=True)).fetchall():
        plans.setdefault(step.plan, []).append(step)
    return plans


async def list_steps(conn: AsyncConn, fleet: str, *, limit: int, after: str | None = None) -> list[Row]:
    return await read(conn, "scaling/list_steps", {"fleet": fleet, "limit": limit, "after": after})


# -- native workers


async def add_native(conn: AsyncConn, fleet: str, replicas: int) -> None:
    """Adds native workers until ``replicas`` that stay belong to the fleet."""
    await conn.execute(sql("scaling/add_native"), {"fleet": fleet, "replicas": replicas})


async def end_native(conn: AsyncConn, fleet: str, names: Sequence[str]) -> None:
    await conn.execute(sql("scaling/end_native"), {"fleet": fleet, "names": texts(names)})


async def list_native(conn: AsyncConn, fleet: str) -> list[tuple[str, bool]]:
    """(name, whether it is to end)"""
    return await (await conn.execute(sql("scaling/list_native"), {"fleet": fleet}, prepare=True)).fetchall()


async def forget_native(conn: AsyncConn, fleet: str, names: Collection[str]) -> None:
    """Those that were to end have ended."""
    await conn.execute(sql("scaling/forget_native"), {"fleet": fleet, "names": texts(names)})


async def reset_native(conn: AsyncConn, fleet: str) -> None:
    """Its host runs none of its workers."""
    await conn.execute(sql("scaling/reset_native"), {"fleet": fleet})
