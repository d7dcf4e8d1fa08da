"""Quantiles, CPU and memory: of whole process trees, as the operating system accounts for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import psutil


def quantiles(values: Sequence[float], digits: int = 4) -> dict[str, float] | None:
    """Median, p95, p99 and maximum; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    pick = lambda q: round(ordered[min(len(ordered) - 1, int(q * len(ordered)))], digits)  # noqa: E731
    return {"median": pick(0.5), "p95": pick(0.95), "p99": pick(0.99), "max": round(ordered[-1], digits)}


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
