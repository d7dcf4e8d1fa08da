"""Triggers on their way to triggerers and back: claims, what beats reveal, events and failures. For the API."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from evenflow.store.db.columns import numbers
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.failures import BAD_VALUE, not_storable
from evenflow.store.db.instant import read
from evenflow.store.db.notify import INBOX, execute_then_wake
from evenflow.store.db.sql import sql
from evenflow.store.scheduling.tasks import TryKey


class ClaimedTrigger(NamedTuple):
    """A deferral whose trigger a triggerer has, with facts of its run. Times are seconds."""

    epoch: int
    claim: int
    run_key: int
    task_index: int
    map_index: int
    try_number: int
    version_key: int
    dag_id: str
    run_id: str
    path: str
    sealed: bytes
    deferred_s: float
    failures: int
    waited_s: float  # from when it could be claimed to this claim


class TriggerClaim(NamedTuple):
    state: str | None  # of the triggerer; null: no such one
    triggers: list[ClaimedTrigger]


@dataclass(frozen=True, slots=True)
class TriggerKey(TryKey):
    """One claim of the trigger that a deferred try waits for."""

    claim: int


async def claim(
    conn: AsyncConn, *, service_id: int, claim_key: str, capacity: int, queues: Collection[str], lease_s: float
) -> TriggerClaim:
    """Up to ``capacity`` triggers of these queues for this triggerer; the same ``claim_key`` again returns the same ones."""
    names = {"service_id": service_id, "claim_key": claim_key, "capacity": capacity, "queues": list(queues), "lease_s": lease_s}
    for _ in ("a look", "a second one that sees what beat the first"):
        rows = await (await conn.execute(sql("triggers/claim"), names, prepare=True)).fetchall()
        if not rows:
            return TriggerClaim(None, [])
        state, beaten = rows[0][:2]
        taken = [ClaimedTrigger._make(row[2:]) for row in rows if row[2] is not None]
        if taken or not beaten:
            break
    return TriggerClaim(state, taken)


async def find_queues(conn: AsyncConn) -> set[str]:
    """The queues in which triggers wait for a triggerer."""
    return {queue for (queue,) in await (await conn.execute(sql("triggers/find_queues"), prepare=True)).fetchall()}


async def compare_listed(
    conn: AsyncConn,
    *,
    service_id: int,
    epochs: Iterable[int],
    lost_after_s: float,
    heard_at_s: float | None = None,
    asks: str | None = None,
) -> list[int]:
    """Of the triggers that a triggerer lists, those to stop. What it has claimed and does not list is given back for it, unless the
    list may be older than the claim: ``heard_at_s`` is a moment before it, and ``asks`` the key of its newest claim then.
    """
    names = {
        "service_id": service_id,
        "epochs": numbers(epochs),
        "lost_after_s": lost_after_s,
        "heard_at_s": heard_at_s,
        "asks": asks,
    }
    rows = await (await conn.execute(sql("triggers/compare_listed"), names, prepare=True)).fetchall()
    if lost := {epoch: claim for epoch, is_lost, claim in rows if is_lost}:
        claims = {"epochs": numbers(lost), "claims": numbers(lost.values())}
        await conn.execute(sql("triggers/release_lost"), {"service_id": service_id, **claims})
    return [epoch for epoch, is_lost, _ in rows if not is_lost]


async def share_out(conn: AsyncConn, *, service_id: int, slack: int, pause_s: float, lease_s: float) -> int:
    """Returns how many of its triggers this triggerer is to give back because it has more than an even share; it then takes none
    for ``pause_s``. An excess of at most ``slack`` stays.
    """
    names = {"service_id": service_id, "slack": slack, "pause_s": pause_s, "lease_s": lease_s}
    row = await (await conn.execute(sql("triggers/share_out"), names, prepare=True)).fetchone()
    return 0 if row is None else int(row[0])


async def insert_events(conn: AsyncConn, events: str) -> None:
    """Puts events into the inbox, and wakes schedulers. ``events`` is a JSON list of ``{run_key, epoch, age_s, payload}``."""
    await execute_then_wake(conn, "triggers/insert_events", {"events": events}, [INBOX])


async def put_events(conn: AsyncConn, events: str) -> None:
    """Puts events in a transaction of the caller, who wakes schedulers after it."""
    await conn.execute(sql("triggers/insert_events"), {"events": events}, prepare=True)


async def record_failures(
    conn: AsyncConn, keys: Sequence[TriggerKey], *, first_s: float, longest_s: float, worked_s: float
) -> dict[int, int]:
    """Gives back triggers that have failed, for later; returns how often each has, by epoch, without those whose claims are over.
    The pauses begin with ``first_s`` and end at ``longest_s``; one that failed after ``worked_s`` begins a new count.
    """
    names = {**_columns(keys), "first_s": first_s, "longest_s": longest_s, "worked_s": worked_s}
    return dict(await (await conn.execute(sql("triggers/record_failures"), names)).fetchall())


async def give_back(conn: AsyncConn, keys: Sequence[TriggerKey]) -> None:
    """Gives back triggers for another triggerer, at once; those of claims that are over stay where they are."""
    await conn.execute(sql("triggers/give_back"), _columns(keys))


async def tell_watched(conn: AsyncConn, key: TriggerKey, number: int, extra: str) -> bool:
    """Records an event of the asset that the DAG of this trigger watches, once for each number of a claim. Returns False when the
    claim is over. ``extra`` is JSON. Raises :class:`XComError` when the database cannot hold it.
    """
    names = {**asdict(key), "number": number, "extra": extra}
    try:
        return await (await conn.execute(sql("triggers/tell_watched"), names, prepare=True)).fetchone() is not None
    except BAD_VALUE as error:
        raise not_storable("The extra of the event", error) from None


async def is_claimed(conn: AsyncConn, key: TriggerKey) -> bool:
    """Whether the trigger still waits, in this claim."""
    return await (await conn.execute(sql("triggers/find_claimed"), asdict(key), prepare=True)).fetchone() is not None


async def list_waiting(
    conn: AsyncConn, *, dag_id: str | None, run_id: str | None, scope: str | None, limit: int, after: str | None
) -> list[Row]:
    """Which task waits for what, the longest waiting first."""
    names = {"dag_id": dag_id, "run_id": run_id, "scope": scope, "limit": limit, "after": after}
    return await read(conn, "triggers/list_waiting", names)


def _columns(keys: Sequence[TriggerKey]) -> dict[str, str]:
    return {
        "run_keys": numbers(key.run_key for key in keys),
        "tasks": numbers(key.task_index for key in keys),
        "maps": numbers(key.map_index for key in keys),
        "epochs": numbers(key.epoch for key in keys),
        "claims": numbers(key.claim for key in keys),
    }
