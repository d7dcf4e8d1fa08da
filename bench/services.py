"""Services as they are started one by one, for benchmarks of what one of them costs."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

DEADLINE_S = 600.0


def environment(home: Path, folder: Path, url: str) -> dict[str, str]:
    """Of services on this database, with an API on a port of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("EVENFLOW_")},
        "EVENFLOW_HOME": str(home),
        "EVENFLOW_DAGS": str(folder),
        "EVENFLOW_API_PORT": str(port),
        "EVENFLOW_API_URL": f"http://127.0.0.1:{port}",
        "EVENFLOW_DATABASE_URL": url,
        "EVENFLOW_LOG_LEVEL": "warning",
    }


def token(kind: str, environment: dict[str, str], *options: str) -> str:
    """Of a fleet of this kind, or of an operator."""
    command = [sys.executable, "-m", "evenflow", "tokens", "create", kind, *options, "--database", "--json"]
    made = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return str(json.loads(made.stdout)["token"])


@contextlib.contextmanager
def service(kind: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """``evenflow KIND``, ended with the context."""
    process = subprocess.Popen([sys.executable, "-m", "evenflow", kind], env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def until_listening(port: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise SystemExit("the API did not start")


def until(database: psycopg.Connection[Any], query: str, enough: Callable[[int], bool]) -> None:
    """Returns when the one number that the query answers is ``enough``."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        row = database.execute(query.encode()).fetchone()
        assert row is not None
        if enough(row[0]):
            return
        time.sleep(0.05)
    raise SystemExit(f"not after {DEADLINE_S:g} s: {query}")
