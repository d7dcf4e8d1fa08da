"""Quantiles, CPU and memory: of whole process trees, as the operating system accounts for them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import psutil
import psycopg


def quantiles(values: Sequence[float], digits: int = 4) -> dict[str, float] | None:
    """Median, p95, p99 and maximum; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    at = {"median": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(ordered[min(len(ordered) - 1, int(q * len(ordered)))], digits) for name, q in at.items()}


def tree(pid: int) -> list[psutil.Process]:
    """A process and all below it."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cpu_s(processes: Iterable[psutil.Process]) -> float:
    """User and system seconds of these processes and of their children that have been waited for."""
    total = 0.0
    for process in processes:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def pss_mb(processes: Iterable[psutil.Process]) -> float:
    """Proportional set size: shared pages count once over all that share them."""
    total = 0
    for process in processes:
        try:
            total += process.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return total / 1e6


def blocks(conn: psycopg.Connection[Any], backends: Sequence[int]) -> int | None:
    """Blocks that these backends have hit or read since they began; None before PostgreSQL 18, which cannot tell.

    A backend adds to these figures at most once a second, unless it was told to flush them (:func:`flush`).
    """
    if conn.info.server_version < 180000:
        return None
    row = conn.execute(
        "select coalesce(sum(coalesce(hits, 0) + coalesce(reads, 0)), 0)"
        " from unnest(%s::int[]) as b (pid), pg_stat_get_backend_io(b.pid)",
        [list(backends)],
    ).fetchone()
    assert row is not None
    return int(row[0])


def flush(conn: psycopg.Connection[Any]) -> None:
    """Has this connection's backend publish what it has counted."""
    conn.execute("select pg_stat_force_next_flush()")


def wal_bytes(conn: psycopg.Connection[Any]) -> int:
    """WAL that the server has written since its cluster was made."""
    row = conn.execute("select pg_current_wal_insert_lsn() - '0/0'").fetchone()
    assert row is not None
    return int(row[0])


def commits(conn: psycopg.Connection[Any]) -> int:
    """Transactions that this database has committed."""
    row = conn.execute("select xact_commit from pg_stat_database where datname = current_database()").fetchone()
    assert row is not None
    return int(row[0])


def load() -> float:
    """Of the machine, the last minute: what a figure is worth."""
    return round(os.getloadavg()[0], 2)
