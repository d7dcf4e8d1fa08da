"""DAG files, for a caller that waits until they are read, and the DAGs that several files define."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.rows import execute
from evenflow.store.db.sql import sql


@dataclass(frozen=True, slots=True)
class Parse:
    """``is_busy``: a processor is reading the file. ``parsed_at``: when one last had read it; None means never."""

    is_busy: bool
    parsed_at: datetime | None
    error: str | None = None


async def request_parse(conn: AsyncConn, bundle: str, file: str) -> Parse | None:
    """Have the file parsed once more, and return how far it was; None when no processor has seen it yet."""
    row = await (await conn.execute(sql("files/request_parse"), {"bundle": bundle, "file": file})).fetchone()
    return None if row is None else Parse(*row)


async def read_parse(conn: AsyncConn, bundle: str, file: str) -> Parse | None:
    row = await (await conn.execute(sql("files/read_parse"), {"bundle": bundle, "file": file})).fetchone()
    return None if row is None else Parse(*row)


async def list_parsed(conn: AsyncConn, bundle: str) -> set[str]:
    """The files of a bundle that need not be parsed."""
    rows = await (await conn.execute(sql("files/list_parsed"), {"bundle": bundle})).fetchall()
    return {file for (file,) in rows}


class Wanted(NamedTuple):
    """``file`` defines a DAG that is ``owner``'s."""

    dag_id: str
    bundle: str
    file: str
    owner_bundle: str
    owner: str


def list_wanted(conn: psycopg.Connection[Any], *, limit: int) -> list[Wanted]:
    return [Wanted(*row) for row in execute(conn, "dags/list_wanted", {"limit": limit}).fetchall()]
