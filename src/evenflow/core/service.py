"""Which kinds of service there have to be."""

from __future__ import annotations

from collections.abc import Iterable

NEEDED = ("api", "scheduler", "processor", "worker")  # kinds of service without one of which nothing goes on


def missing_kinds(healthy: Iterable[str], *, triggers: int) -> list[str]:
    """Kinds of service that are needed and of which none is among the ``healthy`` ones. ``triggers``, of deferred tasks that a
    triggerer is to look after, need one. An autoscaler brings workers as they are needed.
    """
    there = set(healthy)
    if "autoscaler" in there:
        there.add("worker")
    return [kind for kind in (*NEEDED, *(("triggerer",) if triggers else ())) if kind not in there]
