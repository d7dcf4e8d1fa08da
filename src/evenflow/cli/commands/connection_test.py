"""Tries a connection from this machine.

The API does not do this: it must not run authors' code, nor connect to arbitrary addresses.
"""

from __future__ import annotations

import http.client
import socket

from evenflow.sdk.secrets.connections import Connection

PATIENCE_S = 10.0  # for an answer; a system that takes longer has a problem
_SPARK_PORTS = {"spark": 7077, "sc": 15002}


def try_connection(conn: Connection) -> tuple[bool, str]:
    """Returns whether the connection works, and what was found, without secrets."""
    match conn.scheme:
        case "postgresql" | "postgres":
            return _postgres(conn)
        case "http" | "https":
            return _http(conn)
        case "spark" | "sc":
            return _listens(conn, _SPARK_PORTS[conn.scheme])
        case "spark-local":
            return True, "it runs on the worker's machine; there is nothing to connect to"
        case _:
            return False, f"a connection of type {conn.conn_type or 'unknown'} cannot be tested here; a task that uses it will tell"


def _postgres(conn: Connection) -> tuple[bool, str]:
    import psycopg

    host, port = conn.host or "localhost", conn.port or 5432
    try:
        with psycopg.connect(
            host=host,
            port=port,
            user=conn.login,
            password=conn.password,
            dbname=conn.schema or None,
            connect_timeout=int(PATIENCE_S),
            sslmode=conn.extra.get("sslmode", "prefer"),
        ) as connected:
            return True, f"PostgreSQL {connected.info.parameter_status('server_version')} at {host}:{port} let {conn.login} in"
    except psycopg.Error as error:
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return False, f"{host}:{port}: {said}"


def _http(conn: Connection) -> tuple[bool, str]:
    """Any answer except a server error or a refused login shows that it works."""
    import base64

    kind = http.client.HTTPSConnection if conn.scheme == "https" else http.client.HTTPConnection
    headers = {}
    if conn.login:
        headers["Authorization"] = "Basic " + base64.b64encode(f"{conn.login}:{conn.password or ''}".encode()).decode()
    link = kind(conn.host or "localhost", conn.port, timeout=PATIENCE_S)
    try:
        link.request("HEAD", f"/{conn.path}", headers=headers)
        status = link.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return False, f"{conn.host}: {type(error).__name__}: {error}"
    finally:
        link.close()
    return status < 500 and status not in (401, 403), f"{conn.host} answered with status {status}"


def _listens(conn: Connection, default_port: int) -> tuple[bool, str]:
    address = (conn.host or "localhost", conn.port or default_port)
    try:
        socket.create_connection(address, timeout=PATIENCE_S).close()
    except OSError as error:
        return False, f"{address[0]}:{address[1]}: {error.strerror or error}"
    return True, f"{address[0]}:{address[1]} listens; whether it is Spark, and lets you in, a task will tell"
