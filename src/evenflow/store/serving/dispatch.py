"""Tries on their way to workers and back: claims, reports, what a worker's beat reveals. For the API."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
from psycopg.rows import args_row

from evenflow.core.limits import LOOK_BACK_S, RUN_PARAMS_KNOWN, RUNS_KNOWN
from evenflow.core.model import UNMAPPED
from evenflow.core.selection.order import DispatchClass
from evenflow.store.db.columns import numbers, texts
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.failures import BAD_VALUE, not_storable
from evenflow.store.db.notify import INBOX, execute_then_wake, wake_async
from evenflow.store.db.sql import sql


class _Looks:
    """From which transactions on claims look in each place, by connection: another may lead to a server that gives their numbers
    again. The clock says only how often that is asked.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[AsyncConn, tuple[float, dict[str, str]]] = WeakKeyDictionary()

    def since(self, conn: AsyncConn) -> str:
        return json.dumps(self._known.get(conn, (0.0, {}))[1])

    def of(self, conn: AsyncConn) -> dict[str, Any]:
        """What a claim has to know."""
        asked, _ = self._known.get(conn, (-LOOK_BACK_S, {}))
        return {"since": self.since(conn), "looks": time.monotonic() - asked >= LOOK_BACK_S}

    def found(self, conn: AsyncConn, since: str) -> None:
        _, known = self._known.get(conn, (0.0, {}))
        self._known[conn] = time.monotonic(), known | json.loads(since)


_looks = _Looks()


class Place(NamedTuple):
    """Where tries of one class wait for workers. ``sent``: those that a launcher sends, whether it has done so or not."""

    queue: str
    dispatch_class: DispatchClass
    sent: bool = False


class ClaimedResume(NamedTuple):
    """What a try that resumes said when it was deferred, and what became of that."""

    purpose: str
    trigger: str  # the path of its class
    sealed: bytes
    event: bytes | None  # sealed, too
    deferred_s: float
    began_s: float  # since the try began for the first time
    ran_s: float  # of that, without waiting
    reason: str | None


class ClaimedTry(NamedTuple):
    """A dispatch row that a worker holds, with what its run adds. ``map_length`` is null unless the task is mapped."""

    epoch: int
    run_key: int
    task_index: int
    map_index: int
    try_number: int
    map_length: int | None
    dispatch_class: DispatchClass
    version_key: int
    dag_id: str
    run_id: str
    run_type: str
    params: dict[str, Any]
    run_after: datetime
    logical_date: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    traceparent: str | None  # of the program that asked for the run
    resume: ClaimedResume | None = None  # of class DispatchClass.RESUME


_OF_TRY = ClaimedTry._fields.index("version_key")  # how many fields are of the try itself; those behind them are of its run
_PARAMS = ClaimedTry._fields.index("params")


class KnownRuns:
    """What claims have learnt of runs, which never changes. It is good for one server, as are the numbers of runs."""

    def __init__(self) -> None:
        self.newest = 0
        self._runs: dict[int, tuple[Any, ...]] = {}

    def add(self, run_key: int, run: tuple[Any, ...]) -> None:
        self.newest = max(self.newest, run_key)
        if len(msgspec.json.encode(run[_PARAMS - _OF_TRY])) > RUN_PARAMS_KNOWN:
            return
        self._runs[run_key] = run
        if len(self._runs) > RUNS_KNOWN:
            del self._runs[next(iter(self._runs))]

    def get(self, run_key: int) -> tuple[Any, ...] | None:
        return self._runs.get(run_key)


class ClaimResult(NamedTuple):
    worker_state: str | None  # null: no such worker
    limited: bool  # people want it to take less than it asks for, so that nothing is given says nothing about what waits
    kill: list[int]
    tries: list[ClaimedTry]
    waited_s: list[float]  # of each try, from its dispatch to this claim
    busy: Collection[int] = ()  # handed tries that another transaction has locked at this moment


class ListDifference(NamedTuple):
    kill: list[int]
    revoked: list[int]  # of those
    resend: list[int]
    unmarked: list[int]  # listed, claimed a while ago, and not marked as started


class TryHolder(NamedTuple):
    """The worker of a try. ``client``: the API speaks for it, as for that client; empty for one that speaks for itself."""

    service_id: int
    host: str
    pid: int
    client: str


class RunNames(NamedTuple):
    dag_id: str
    run_id: str
    version_key: int
    subject: int  # the run that it is about: itself, or for a callback the run that called


async def claim(
    conn: AsyncConn,
    *,
    service_id: int,
    claim_key: str,
    slots: int,
    resumes: int,
    queues: Collection[str],
    lease_s: float,
    known: KnownRuns | None = None,
    api: int | None = None,
) -> ClaimResult:
    """Claims tries for this worker in one statement: up to ``resumes`` resumes, and up to ``slots`` less these first starts. The
    data of resumes is read in a second statement, and in a third the facts of old runs that are not ``known``. The same
    ``claim_key`` again returns the same tries. A claim that finds nothing waits at the server ``api`` from then on, until it finds
    something, a turn answers it, or :func:`withdraw` ends it.
    """
    known = known or KnownRuns()
    names = {
        "service_id": service_id,
        "claim_key": claim_key,
        "slots": slots,
        "resumes": resumes,
        "queues": list(queues),
        "lease_s": lease_s,
        "newest_run": known.newest,
        "api": api,
    }
    names |= _looks.of(conn)
    for _ in ("a look", "a second one that sees what beat the first"):
        rows = await (await conn.execute(sql("dispatch/claim"), names, prepare=True)).fetchall()
        if not rows:
            return ClaimResult(None, False, [], [], [])
        state, beaten, limited, since, kill = rows[0][:5]
        if since is not None:
            _looks.found(conn, since)
        taken = [row[5:] for row in rows if row[5] is not None]
        if taken or not beaten:
            break
    tries = await _with_resumes(conn, await _with_runs(conn, [row[1:] for row in taken], known))
    return ClaimResult(state, limited, kill, tries, [row[0] for row in taken])


async def withdraw(conn: AsyncConn, *, service_id: int, claim_key: str, api: int) -> bool:
    """Withdraws a claim that waits. False: it did not wait, and a turn may have answered it."""
    names = {"service_id": service_id, "claim_key": claim_key, "api": api}
    return await (await conn.execute(sql("dispatch/withdraw"), names, prepare=True)).fetchone() is not None


async def find_given(conn: AsyncConn, claims: Collection[tuple[int, str]]) -> list[tuple[int, str]]:
    """Returns the waiting claims, as (worker, key), that turns have answered."""
    names = {"workers": numbers(worker for worker, _ in claims), "keys": texts(key for _, key in claims)}
    return await (await conn.execute(sql("dispatch/find_given"), names, prepare=True)).fetchall()


async def read_given(conn: AsyncConn, given: Sequence[tuple[int, int, int, int]], known: KnownRuns) -> list[ClaimedTry]:
    """Returns the tries (epoch, run_key, task_index, try_number) that a turn has given a worker, with the facts of their runs."""
    rows = [
        (epoch, run_key, task, UNMAPPED, number, None, DispatchClass.FIRST_START, None) for epoch, run_key, task, number in given
    ]
    return await _with_runs(conn, rows, known)


async def claim_handed(
    conn: AsyncConn,
    epochs: Collection[int],
    *,
    service_id: int,
    claim_key: str,
    queues: Collection[str],
    lease_s: float,
    resumes: int = 0,
    known: KnownRuns | None = None,
) -> ClaimResult:
    """Claims the unclaimed tries among those that this worker was handed, and up to ``resumes`` resumes of its queues, whether they
    were sent or not. Otherwise as :func:`claim`.
    """
    known = known or KnownRuns()
    names = {
        "service_id": service_id,
        "claim_key": claim_key,
        "epochs": numbers(epochs),
        "resumes": resumes,
        "queues": list(queues),
        "lease_s": lease_s,
        "newest_run": known.newest,
    }
    rows = await (await conn.execute(sql("dispatch/claim_handed"), names, prepare=True)).fetchall()
    if not rows:
        return ClaimResult(None, False, [], [], [])
    state, limited, kill, busy = rows[0][:4]
    taken = [row[4:] for row in rows if row[4] is not None]
    tries = await _with_resumes(conn, await _with_runs(conn, [row[1:] for row in taken], known))
    return ClaimResult(state, limited, kill, tries, [row[0] for row in taken], busy)


async def _with_runs(conn: AsyncConn, rows: Sequence[tuple[Any, ...]], known: KnownRuns) -> list[ClaimedTry]:
    """``rows`` have the fields of the run if it is new. Those of a run that has been deleted since are over."""
    missing = set()
    for row in rows:
        if row[_OF_TRY] is not None:
            known.add(row[1], row[_OF_TRY:])
        elif known.get(row[1]) is None:
            missing.add(row[1])
    found = {}
    if missing:
        cursor = await conn.execute(sql("dispatch/read_runs"), {"run_keys": numbers(missing)}, prepare=True)
        found = {run_key: tuple(run) for run_key, *run in await cursor.fetchall()}
        for run_key, run in found.items():
            known.add(run_key, run)
    tries = []
    for row in rows:
        own = row[_OF_TRY:] if row[_OF_TRY] is not None else known.get(row[1]) or found.get(row[1])
        if own is not None:
            tries.append(ClaimedTry(*row[:_OF_TRY], *own))
    return tries


async def read_tries(conn: AsyncConn, *, service_id: int, epochs: Collection[int]) -> list[ClaimedTry]:
    """Those of ``epochs`` that this worker holds."""
    cursor = conn.cursor(row_factory=args_row(ClaimedTry))
    names = {"service_id": service_id, "epochs": numbers(epochs)}
    return await _with_resumes(conn, await (await cursor.execute(sql("dispatch/read_claimed"), names)).fetchall())


async def _with_resumes(conn: AsyncConn, tries: list[ClaimedTry]) -> list[ClaimedTry]:
    """Returns those of ``tries`` that are not over by now. Resuming ones have what they said when they were deferred."""
    back = [row.epoch for row in tries if row.dispatch_class == DispatchClass.RESUME]
    if not back:
        return tries
    cursor = await conn.execute(sql("dispatch/read_resumes"), {"epochs": numbers(back)}, prepare=True)
    found = {epoch: ClaimedResume(*row) for epoch, *row in await cursor.fetchall()}
    told = [row._replace(resume=found.get(row.epoch)) for row in tries]
    return [row for row in told if row.resume is not None or row.dispatch_class != DispatchClass.RESUME]


async def compare_listed(
    conn: AsyncConn, *, service_id: int, epochs: Iterable[int], resend_after_s: float, unmarked_after_s: float
) -> ListDifference:
    """How a worker's list of its tries differs from what the database says it holds."""
    names = {
        "service_id": service_id,
        "epochs": numbers(epochs),
        "resend_after_s": resend_after_s,
        "unmarked_after_s": unmarked_after_s,
    }
    rows = await (await conn.execute(sql("dispatch/compare_listed"), names, prepare=True)).fetchall()
    return ListDifference(
        [epoch for epoch, kill, _, _, _ in rows if kill],
        [epoch for epoch, _, _, revoked, _ in rows if revoked],
        [epoch for epoch, _, resend, _, _ in rows if resend],
        [epoch for epoch, _, _, _, unmarked in rows if unmarked],
    )


async def mark_started(conn: AsyncConn, *, service_id: int, epochs: Collection[int]) -> list[int]:
    """Reports the start of those of this worker's ``epochs`` whose start was not known, and returns them."""
    names = {"service_id": service_id, "epochs": numbers(epochs)}
    told = await (await conn.execute(sql("dispatch/mark_started"), names, prepare=True)).fetchall()
    if told:
        await wake_async(conn, [INBOX])
    return [epoch for (epoch,) in told]


async def give_back(conn: AsyncConn, *, service_id: int, begun: Iterable[int]) -> int:
    """Gives back what this worker has beside those that it has ``begun``, for another worker; returns how many. Wakes no worker."""
    names = {"service_id": service_id, "begun": numbers(begun)}
    return (await conn.execute(sql("dispatch/give_back"), names, prepare=True)).rowcount


async def find_waiting(
    conn: AsyncConn, *, queues: Collection[str], workers: Iterable[int]
) -> tuple[set[Place], list[tuple[int, int]]]:
    """Returns the ``queues`` that have work, and the (worker, epoch) to kill on ``workers``."""
    async with conn.pipeline():
        waiting = await conn.execute(
            sql("dispatch/find_waiting"), {"queues": list(queues), "since": _looks.since(conn)}, prepare=True
        )
        kills = await conn.execute(sql("dispatch/read_kills"), {"workers": numbers(workers)}, prepare=True)
    return {Place(*row) for row in await waiting.fetchall()}, await kills.fetchall()


async def insert_reports(conn: AsyncConn, reports: str) -> None:
    """Stores all of them or none, and wakes schedulers once they are committed.

    ``reports`` is a JSON list of ``{run_key, task_index, map_index, epoch, kind, age_s, payload?, result?}``, where the result
    is JSON in a string.
    Raises :class:`XComError` when a result is not JSON that the database can hold.
    """
    try:
        await execute_then_wake(conn, "dispatch/insert_reports", {"reports": reports}, [INBOX])
    except BAD_VALUE as error:
        raise not_storable("The result", error) from None


async def find_current(conn: AsyncConn, tries: Sequence[tuple[int, int, int, int]]) -> set[int]:
    """Of tries (epoch, run_key, task_index, map_index): the epochs that have not been superseded by a later try of their task."""
    names = dict(zip(("epochs", "run_keys", "tasks", "maps"), map(numbers, zip(*tries, strict=True)), strict=True))
    return {epoch for (epoch,) in await (await conn.execute(sql("dispatch/find_current"), names, prepare=True)).fetchall()}


async def find_holder(conn: AsyncConn, epoch: int) -> TryHolder | None:
    """Returns the worker that has this try in hand."""
    cursor = conn.cursor(row_factory=args_row(TryHolder))
    return await (await cursor.execute(sql("dispatch/find_holder"), {"epoch": epoch}, prepare=True)).fetchone()


async def is_held(conn: AsyncConn, *, epoch: int, run_key: int, task_index: int, map_index: int) -> bool:
    """Whether the try is in hand; a finished one is not."""
    names = {"epoch": epoch, "run_key": run_key, "task_index": task_index, "map_index": map_index}
    return await (await conn.execute(sql("dispatch/find_held"), names, prepare=True)).fetchone() is not None


async def read_run(conn: AsyncConn, run_key: int) -> RunNames | None:
    row = await (await conn.execute(sql("dispatch/read_run"), {"run_key": run_key})).fetchone()
    return None if row is None else RunNames(*row)


async def write_progress(conn: AsyncConn, *, epoch: int, payload: str) -> bool:
    """Whether the try still runs; ``payload`` is JSON."""
    cursor = await conn.execute(sql("dispatch/write_progress"), {"epoch": epoch, "payload": payload}, prepare=True)
    return await cursor.fetchone() is not None
