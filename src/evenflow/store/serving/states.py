"""States of service as people set and see them. For the API."""

from __future__ import annotations

from collections.abc import Iterable

from psycopg.rows import dict_row

from evenflow.core.service_states import ObjectKind, ServiceState
from evenflow.store.db.columns import texts
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.notify import DISPATCH, INBOX, RESUMES
from evenflow.store.db.sql import sql


async def list_service_states(
    conn: AsyncConn,
    *,
    kind: ObjectKind | None = None,
    name: str | None = None,
    paused_dags: bool = True,
    scope: str | None,
    limit: int,
) -> list[Row]:
    """What is not active, without DAGs that are only paused unless ``paused_dags``."""
    cursor = conn.cursor(row_factory=dict_row)
    names = {"kind": kind, "name": name, "paused_dags": paused_dags, "scope": scope, "limit": limit}
    return await (await cursor.execute(sql("states/list_all"), names, prepare=False)).fetchall()


async def exists(conn: AsyncConn, kind: ObjectKind, name: str, *, scope: str | None) -> bool:
    row = await (await conn.execute(sql("states/find_object"), {"kind": kind, "name": name, "scope": scope})).fetchone()
    return row is not None and bool(row[0])


async def set_state(
    conn: AsyncConn, kind: ObjectKind, name: str, state: ServiceState, *, actor: str, within_s: float | None = None
) -> None:
    """Of a DAG this adds what its pause does not say: ``dags.set_paused`` comes first. ``within_s``: how long a drain waits."""
    plain = state is ServiceState.PAUSED and kind is ObjectKind.DAG
    if state is ServiceState.ACTIVE or plain:
        await conn.execute(sql("states/delete_one"), {"kind": kind, "name": name})
    else:
        names = {"kind": kind, "name": name, "state": state, "actor": actor, "within_s": within_s}
        await conn.execute(sql("states/set_one"), names)
    await conn.execute(sql("states/notify"), {"channels": [INBOX, DISPATCH, RESUMES]})


async def list_held(conn: AsyncConn, kind: ObjectKind, name: str, *, scope: str | None, limit: int) -> list[Row]:
    """What is in flight in an object, by task, the most first; ``tries`` is of all tasks together."""
    cursor = conn.cursor(row_factory=dict_row)
    names = {"kind": kind, "name": name, "scope": scope, "limit": limit}
    return await (await cursor.execute(sql("states/list_held"), names, prepare=False)).fetchall()


async def count_runs(conn: AsyncConn, dag_id: str | None, *, scope: str | None) -> int:
    """How many runs run, of this DAG or of all."""
    row = await (await conn.execute(sql("states/count_runs"), {"dag_id": dag_id, "scope": scope}, prepare=False)).fetchone()
    assert row is not None
    return int(row[0])


async def list_closing(conn: AsyncConn, objects: Iterable[tuple[ObjectKind, str]]) -> list[Row]:
    """Which of these objects are not active, and the system if it is not: kind, name, state, since, actor."""
    chosen = list(objects)
    params = {"kinds": texts(kind for kind, _ in chosen), "names": texts(name for _, name in chosen)}
    return await (await conn.cursor(row_factory=dict_row).execute(sql("states/list_closing"), params, prepare=False)).fetchall()
