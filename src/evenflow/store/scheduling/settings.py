"""The value of one setting that decides, for who decides."""

from __future__ import annotations

from typing import Any

from evenflow.store.db.rows import Conn, execute


def read_value(conn: Conn, name: str) -> Any:
    """None: nobody has set it, so its default holds."""
    row = execute(conn, "settings/read_one", {"name": name}).fetchone()
    return None if row is None else row[0]
