"""The kinds of service that an installation needs."""

from __future__ import annotations

from collections.abc import Iterable

NEEDED = ("api", "scheduler", "processor", "worker")  # kinds of service that an installation cannot work without


def missing_kinds(healthy: Iterable[str], *, triggers: int) -> list[str]:
    """Returns the needed kinds of service that are missing among the ``healthy`` ones. ``triggers`` is the number of deferred
    tasks' triggers, which need a triggerer. An autoscaler counts as workers, because it starts them when they are needed.
    """
    there = set(healthy)
    if "autoscaler" in there:
        there.add("worker")
    return [kind for kind in (*NEEDED, *(("triggerer",) if triggers else ())) if kind not in there]
