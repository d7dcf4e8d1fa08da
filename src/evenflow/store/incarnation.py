"""The incarnations of a database: a new one begins when it was set back to an earlier state."""

from __future__ import annotations

from typing import Any

import psycopg

from evenflow.store.sql import sql


def begin_incarnation(conn: psycopg.Connection[Any], *, reason: str, by: str) -> int:
    """Every service is lost, every try in flight is sent again, and nothing of before is let in. The incarnation's number."""
    with conn.transaction():
        row = conn.execute(sql("incarnation/begin"), {"reason": reason, "by": by}).fetchone()
        assert row is not None
        conn.execute(sql("tokens/notify"))
    return int(row[0])
