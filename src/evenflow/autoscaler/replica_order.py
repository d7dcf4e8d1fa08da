"""In which order a ReplicaSet ends its pods: as its controller compares them (``ActivePodsWithRanks``, Kubernetes 1.22 to 1.34).

Costs come fourth. So a pod that is not ready goes before a cheaper one, and an autoscaler that makes a Deployment smaller looks at
the whole order first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from functools import cmp_to_key

from evenflow.kubernetes.client import Object

COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def is_active(pod: Object) -> bool:
    """Whether its ReplicaSet counts it."""
    return pod["status"].get("phase") not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def ready_since(pod: Object) -> datetime | None:
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "True":
            return datetime.fromisoformat(condition["lastTransitionTime"])
    return None


def cost_of(pod: Object) -> int:
    try:
        return int((pod["metadata"].get("annotations") or {}).get(COST, 0))
    except ValueError:
        return 0  # as for its controller


def deletion_order(pods: Iterable[Object], now: datetime) -> list[Object]:
    """The active ones of these, which are all of one Deployment, the first to go first."""
    active = [pod for pod in pods if is_active(pod)]
    on_node = Counter(pod["spec"].get("nodeName") for pod in active)

    def compare(one: Object, other: Object) -> int:
        first, second = _standing(one, on_node), _standing(other, on_node)
        if first != second:
            return -1 if first < second else 1
        pairs = ((ready_since(one), ready_since(other)), (_restarts(other), _restarts(one)), (_created(one), _created(other)))
        for a, b in pairs:
            if a == b or a is None or b is None:
                continue
            if isinstance(a, datetime) and isinstance(b, datetime):
                by_age = _magnitude(now, a) - _magnitude(now, b)  # of about the same age any, by its uid
                return by_age or (-1 if one["metadata"]["uid"] < other["metadata"]["uid"] else 1)
            return -1 if a < b else 1  # type: ignore[operator]
        return 0

    return sorted(active, key=cmp_to_key(compare))


def _standing(pod: Object, on_node: Counter[str | None]) -> tuple[bool, int, bool, int, int]:
    """Bound to a node, its phase, ready, its cost, and how many of its kind are not beside it."""
    node = pod["spec"].get("nodeName")
    return (bool(node), _PHASES.get(pod["status"].get("phase", ""), 0), ready_since(pod) is not None, cost_of(pod), -on_node[node])


def _restarts(pod: Object) -> int:
    return max((status.get("restartCount", 0) for status in pod["status"].get("containerStatuses") or ()), default=0)


def _created(pod: Object) -> datetime:
    return datetime.fromisoformat(pod["metadata"]["creationTimestamp"])


def _magnitude(now: datetime, then: datetime) -> int:
    """Of an age, as a power of two of nanoseconds."""
    age_ns = (now - then).total_seconds() * 1e9
    return int(math.log2(age_ns)) if age_ns > 0 else -1
