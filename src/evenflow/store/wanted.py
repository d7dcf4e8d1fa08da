"""DAG ids that two files want."""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg

from evenflow.store.rows import execute


class Wanted(NamedTuple):
    """``file`` defines a DAG that is ``owner``'s."""

    dag_id: str
    bundle: str
    file: str
    owner_bundle: str
    owner: str


def list_wanted(conn: psycopg.Connection[Any], *, limit: int) -> list[Wanted]:
    return [Wanted(*row) for row in execute(conn, "dags/list_wanted", {"limit": limit}).fetchall()]
