"""Connections and variables as the database keeps them: sealed. What is in them is the API's business."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import psycopg
from psycopg.rows import dict_row

from evenflow.core.object_names import SealedKind
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import read
from evenflow.store.db.sql import sql
from evenflow.store.serving.views import SIMILAR

LOOKS = 2  # at what waits while keys change
RESEAL = {"deferral": "sealed/reseal_deferral", "once": "sealed/reseal_once", "report": "sealed/reseal_report"}
CANARY = "evenflow"  # its name, and the text that is sealed in it
WAITING, ONCE = "waiting", "once"  # kinds of what tries keep: of a run, and of a run under a name


class Seals(Protocol):
    """How what the database must not read is sealed for a place, a kind and a name, and opened again. Opening raises
    :class:`SecretsError`, which names ``what`` or the place.
    """

    def seal(self, kind: str, name: str, text: str) -> bytes: ...

    def open(self, kind: str, name: str, sealed: bytes, *, what: str = "") -> str: ...

    def reseal(self, kind: str, name: str, sealed: bytes, *, what: str = "") -> bytes: ...


def name_of_once(run_key: int, name: str) -> str:
    """For which a value that a task stores once is sealed."""
    return f"{run_key}/{name}"


async def set_value(
    conn: AsyncConn, kind: SealedKind, name: str, sealed: bytes, *, description: str | None, dags: Sequence[str] | None, actor: str
) -> None:
    """Makes or replaces a value; a description or patterns that are None stay."""
    names = {
        "kind": kind,
        "name": name,
        "sealed": sealed,
        "description": description,
        "dags": None if dags is None else list(dags),
        "actor": actor,
    }
    await conn.execute(sql("sealed/set_one"), names)
    await _reparse_asking(conn, kind, name)


async def read_value(conn: AsyncConn, kind: SealedKind, name: str) -> Row | None:
    """With the patterns of the DAGs that may use it: none, and every DAG may."""
    cursor = conn.cursor(row_factory=dict_row)
    return await (await cursor.execute(sql("sealed/read_one"), {"kind": kind, "name": name})).fetchone()


async def list_values(conn: AsyncConn, kind: SealedKind, *, limit: int, after: str | None = None) -> list[Row]:
    """By name."""
    return await read(conn, "sealed/list_all", {"kind": kind, "limit": limit, "after": after})


async def list_similar(conn: AsyncConn, kind: SealedKind, wanted: str) -> list[tuple[str, list[str]]]:
    """Names like ``wanted``, each with the patterns of the DAGs that may use it."""
    names = {"kind": kind, "wanted": wanted, "limit": SIMILAR}
    return [(name, dags) for name, dags in await (await conn.execute(sql("sealed/list_similar"), names)).fetchall()]


async def list_rules(conn: AsyncConn, kind: SealedKind) -> list[tuple[str, list[str]]]:
    """Names that not all DAGs may use, each with the patterns of those that may."""
    return await (await conn.execute(sql("sealed/list_rules"), {"kind": kind}, prepare=True)).fetchall()


async def delete_value(conn: AsyncConn, kind: SealedKind, name: str) -> bool:
    """Whether there was one."""
    was_there = await (await conn.execute(sql("sealed/delete_one"), {"kind": kind, "name": name})).fetchone() is not None
    await _reparse_asking(conn, kind, name)
    return was_there


async def _reparse_asking(conn: AsyncConn, kind: SealedKind, name: str) -> None:
    """Has files parsed once more that asked for this value while they were loaded."""
    await conn.execute(sql("sealed/reparse_asking"), {"asked": f"{kind}:{name}"})


class Canary(NamedTuple):
    sealed: bytes
    host: str  # the host with whose keys it was first sealed


async def read_canary(conn: AsyncConn) -> Canary | None:
    cursor = await conn.cursor(row_factory=dict_row).execute(sql("sealed/read_one"), {"kind": "canary", "name": CANARY})
    return _canary(await cursor.fetchone())


def find_canary(conn: psycopg.Connection[Any]) -> Canary | None:
    """The same for callers without an event loop."""
    cursor = conn.cursor(row_factory=dict_row).execute(sql("sealed/read_one"), {"kind": "canary", "name": CANARY})
    return _canary(cursor.fetchone())


def _canary(row: Row | None) -> Canary | None:
    return None if row is None else Canary(bytes(row["sealed"]), row["changed_by"])


async def make_canary(conn: AsyncConn, sealed: bytes, *, host: str) -> None:
    """Unless there is one."""
    await conn.execute(sql("sealed/make_canary"), {"name": CANARY, "sealed": sealed, "host": host})


async def delete_unused_keys(conn: AsyncConn, *, fit: bool) -> None:
    """Deletes the canary, and the keys of tokens unless they ``fit``. Does nothing where data or tokens would be lost."""
    await conn.execute(sql("sealed/delete_unused_keys"), {"fit": fit})


async def reseal_waiting(conn: AsyncConn, seals: Seals) -> None:
    """Seals anew what waiting or resumed tries said, or tries with a report in quarantine, and what tasks store once.

    One row at a time, so that no scheduler waits for more than one. Rows that change meanwhile are looked at again: another API
    process that did not know the new key yet may have sealed them.
    """
    done: set[bytes] = set()
    for _ in range(LOOKS):
        for row in await (await conn.execute(sql("sealed/list_waiting"))).fetchall():
            if done.issuperset(_seals(row)):
                continue
            source, run_key, task_index, map_index, name, old, old_event = row
            owner = "a report" if source == "report" else f"task {task_index}"
            what = f"What {owner} of run {run_key} keeps"
            place = (ONCE, name_of_once(run_key, name)) if source == "once" else (WAITING, str(run_key))
            new = {seal: seal if seal in done else seals.reseal(*place, seal, what=what) for seal in _seals(row)}
            names = {
                "run_key": run_key,
                "task_index": task_index,
                "map_index": map_index,
                "name": name,
                "old": old,
                "new": new[bytes(old)],
                "old_event": old_event,
                "new_event": None if old_event is None else new[bytes(old_event)],
            }
            await conn.execute(sql(RESEAL[source]), names)
            done |= set(new.values())


def _seals(row: tuple[Any, ...]) -> list[bytes]:
    return [bytes(seal) for seal in row[-2:] if seal is not None]


async def reseal(conn: AsyncConn, seals: Seals) -> int:
    """Every value sealed anew, in one transaction; answers how many connections and variables."""
    async with conn.transaction():
        rows = await (await conn.execute(sql("sealed/lock_all"))).fetchall()
        names = {
            "kinds": [kind for kind, _, _ in rows],
            "names": [name for _, name, _ in rows],
            "seals": [seals.reseal(kind, name, bytes(sealed)) for kind, name, sealed in rows],
        }
        await conn.execute(sql("sealed/reseal"), names)
    return sum(kind != "canary" for kind, _, _ in rows)
