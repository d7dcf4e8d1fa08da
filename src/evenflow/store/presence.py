"""A control-plane process in the table of services, over a connection of its own kind: the synchronous twin of ``services``."""

from __future__ import annotations

from evenflow.store.migrate import SCHEMA_VERSION
from evenflow.store.rows import Conn, execute


def register(conn: Conn, *, kind: str, name: str, host: str, pid: int, version: str, detail: str = "{}") -> int:
    """The id of a new service, active from now on; ``detail`` is JSON."""
    params: dict[str, str | int] = {"kind": kind, "name": name, "host": host, "pid": pid, "version": version, "detail": detail}
    params["schema_known"] = SCHEMA_VERSION
    row = execute(conn, "services/register", params).fetchone()
    assert row is not None
    return int(row[0])


def beat(conn: Conn, *, service_id: int, kind: str, state: str = "active", detail: str = "{}") -> bool:
    """Whether the service is still known; ``detail`` is JSON."""
    params = {"service_id": service_id, "kind": kind, "state": state, "detail": detail}
    return execute(conn, "services/beat", params).fetchone() is not None
