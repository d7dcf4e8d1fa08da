"""What a control plane does: binds pods, keeps ReplicaSets and Deployments at their replicas, deletes what nobody owns.

The order in which a ReplicaSet deletes is that of Kubernetes 1.32 (``ActivePodsWithRanks``).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.kubernetes.containers import quantity
from tests.kubernetes.errors import Refused
from tests.kubernetes.kubelet import set_condition
from tests.kubernetes.selectors import by_template
from tests.kubernetes.store import DEPLOYMENT, NODE, POD, QUOTA, REPLICA_SET, SECRET, Object, Store

COST = "controller.kubernetes.io/pod-deletion-cost"
HASH = "pod-template-hash"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def is_active(pod: Object) -> bool:
    return pod["status"]["phase"] not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def ready_since(pod: Object) -> datetime | None:
    for each in pod["status"].get("conditions") or ():
        if each["type"] == "Ready" and each["status"] == "True":
            return datetime.fromisoformat(each["lastTransitionTime"])
    return None


# -- admission -----------------------------------------------------------------------------------------------------------


def check_pod(store: Store, namespace: str, pod: Object) -> None:
    """Raises what validation and quotas say; a new pod is pending."""
    containers = pod.get("spec", {}).get("containers") or []
    name = pod["metadata"].get("name", "")
    if not containers:
        raise Refused(422, f'Pod "{name}" is invalid: spec.containers: Required value')
    for position, each in enumerate((*containers, *(pod["spec"].get("initContainers") or ()))):
        if not each.get("name") or not each.get("image"):
            raise Refused(
                422,
                f'Pod "{name}" is invalid: spec.containers[{position}].{"image" if each.get("name") else "name"}: Required value',
            )
    wanted = _asked(pod)
    for quota in store.list(QUOTA, namespace):
        used: Counter[str] = Counter()
        for other in store.list(POD, namespace):
            if other["status"]["phase"] not in ("Succeeded", "Failed"):
                used.update(_asked(other))
        for resource, hard in quota["spec"]["hard"].items():
            if used[resource] + wanted.get(resource, 0) > quantity(hard):
                raise Refused(
                    403,
                    f'pods "{name}" is forbidden: exceeded quota: {quota["metadata"]["name"]}, requested: {resource}='
                    f"{wanted.get(resource, 0):g}, used: {resource}={used[resource]:g}, limited: {resource}={hard}",
                )


def _asked(pod: Object) -> dict[str, float]:
    out: Counter[str] = Counter(pods=1)
    for each in pod["spec"]["containers"]:
        for what, amount in (each.get("resources") or {}).get("requests", {}).items():
            out[f"requests.{what}"] += quantity(amount)
        for what, amount in (each.get("resources") or {}).get("limits", {}).items():
            out[f"limits.{what}"] += quantity(amount)
    return dict(out)


# -- the scheduler of pods -----------------------------------------------------------------------------------------------


def bind(store: Store) -> None:
    nodes = [node for node in store.list(NODE) if _takes(node)]
    on: Counter[str] = Counter()
    pods = store.list(POD)
    for pod in pods:
        if pod["status"]["phase"] not in ("Succeeded", "Failed"):
            on[pod["spec"].get("nodeName", "")] += 1
    waiting = [pod for pod in pods if not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]]
    for pod in sorted(waiting, key=lambda pod: -pod["spec"].get("priority", 0)):
        fit = [
            node for node in nodes if (pod["spec"].get("nodeSelector") or {}).items() <= node["metadata"].get("labels", {}).items()
        ]
        free = [node for node in fit if on[node["metadata"]["name"]] < int(node["status"]["allocatable"]["pods"])]
        if free:
            name = min(free, key=lambda node: on[node["metadata"]["name"]])["metadata"]["name"]
            on[name] += 1
            pod["spec"]["nodeName"] = name
            set_condition(pod, "PodScheduled", True)
            store.replace(POD, {**pod, "metadata": {**pod["metadata"], "resourceVersion": None}})
            store.replace(
                POD, {**store.get(POD, pod["metadata"]["namespace"], pod["metadata"]["name"]), "status": pod["status"]}, status=True
            )
            continue
        _make_room(store, pod, pods)
        before = json.dumps(pod["status"])
        set_condition(pod, "PodScheduled", False, "Unschedulable", f"0/{len(store.list(NODE))} nodes are available.")
        if json.dumps(pod["status"]) != before:
            store.replace(POD, pod, status=True)


def _make_room(store: Store, pod: Object, pods: list[Object]) -> None:
    """Of lower priority, the lowest gives way."""
    mine = pod["spec"].get("priority", 0)
    lower = [
        other for other in pods if is_active(other) and other["spec"].get("nodeName") and other["spec"].get("priority", 0) < mine
    ]
    if lower and not any(is_disrupted(other, "PreemptionByScheduler") for other in pods):
        disrupt(store, min(lower, key=lambda other: other["spec"].get("priority", 0)), "PreemptionByScheduler")


def is_disrupted(pod: Object, reason: str) -> bool:
    return any(each["type"] == "DisruptionTarget" and each["reason"] == reason for each in pod["status"].get("conditions") or ())


def disrupt(store: Store, pod: Object, reason: str, grace_s: int | None = None) -> None:
    """Says why, then deletes it with its time of grace."""
    found = store.get(POD, pod["metadata"]["namespace"], pod["metadata"]["name"])
    set_condition(found, "DisruptionTarget", True, reason)
    store.replace(POD, found, status=True)
    store.delete(POD, found["metadata"]["namespace"], found["metadata"]["name"], grace_s=grace_s)


def _takes(node: Object) -> bool:
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])
    return ready and not node["spec"].get("unschedulable")


# -- ReplicaSets and Deployments ---------------------------------------------------------------------------------------------


def deletion_key(pod: Object, rank: int, now: datetime) -> tuple[Any, ...]:
    """Least first: whom its ReplicaSet deletes first. ``rank`` is how many active pods of the same Deployment are on its node. Ages
    are compared as powers of two of nanoseconds; of pods of about one age that of the lower uid goes, whatever else it is.
    """
    meta, status = pod["metadata"], pod["status"]
    since = ready_since(pod)
    restarts = max((each["restartCount"] for each in status.get("containerStatuses") or ()), default=0)
    return (
        bool(pod["spec"].get("nodeName")),
        _PHASES[status["phase"]],
        since is not None,
        int(meta.get("annotations", {}).get(COST, 0)),
        -rank,
        0 if since is None else _magnitude(now, since),  # ready for less time first, by powers of two
        -restarts,
        _magnitude(now, datetime.fromisoformat(meta["creationTimestamp"])),
        meta["uid"],
    )


def _magnitude(now: datetime, then: datetime) -> int:
    age_ns = (now - then).total_seconds() * 1e9
    return int(math.log2(age_ns)) if age_ns > 0 else -1


def scale(store: Store, replica_set: Object) -> None:
    meta, spec = replica_set["metadata"], replica_set["spec"]
    owned = [pod for pod in store.list(POD, meta["namespace"], by_template(spec["selector"])) if _owner(pod) == meta["uid"]]
    active = [pod for pod in owned if is_active(pod)]
    missing = spec["replicas"] - len(active)
    for _ in range(missing):
        pod = {
            "metadata": {
                "generateName": f"{meta['name']}-",
                "labels": dict(spec["template"]["metadata"].get("labels") or {}),
                "annotations": dict(spec["template"]["metadata"].get("annotations") or {}),
                "ownerReferences": [_reference(replica_set)],
            },
            "spec": json.loads(json.dumps(spec["template"]["spec"])),
            "status": {"phase": "Pending"},
        }
        try:
            check_pod(store, meta["namespace"], pod)
        except Refused as refused:
            set_condition(replica_set, "ReplicaFailure", True, "FailedCreate", refused.message)
            break
        store.create(POD, meta["namespace"], pod)
    if missing < 0:
        ranks = Counter(pod["spec"].get("nodeName") for pod in active)
        now = datetime.now(UTC)
        for pod in sorted(active, key=lambda pod: deletion_key(pod, ranks[pod["spec"].get("nodeName")], now))[:-missing]:
            store.delete(POD, meta["namespace"], pod["metadata"]["name"])
    _tell(store, REPLICA_SET, replica_set, active)


def roll(store: Store, deployment: Object) -> None:
    """One ReplicaSet for its template; those of templates before go to zero."""
    meta, spec = deployment["metadata"], deployment["spec"]
    digest = hashlib.sha256(json.dumps(spec["template"], sort_keys=True).encode()).hexdigest()[:10]
    name = f"{meta['name']}-{digest}"
    labels = {**(spec["template"]["metadata"].get("labels") or {}), HASH: digest}
    of_it = [each for each in store.list(REPLICA_SET, meta["namespace"]) if _owner(each) == meta["uid"]]
    current = next((each for each in of_it if each["metadata"]["name"] == name), None)
    for old in of_it:
        if old["metadata"]["name"] != name and old["spec"]["replicas"]:
            store.replace(REPLICA_SET, {**old, "spec": {**old["spec"], "replicas": 0}})
    if current is None:
        template = {**spec["template"], "metadata": {**spec["template"]["metadata"], "labels": labels}}
        store.create(
            REPLICA_SET,
            meta["namespace"],
            {
                "metadata": {"name": name, "labels": labels, "ownerReferences": [_reference(deployment)]},
                "spec": {"replicas": spec.get("replicas", 1), "selector": {"matchLabels": labels}, "template": template},
                "status": {},
            },
        )
    elif current["spec"]["replicas"] != spec.get("replicas", 1):
        store.replace(REPLICA_SET, {**current, "spec": {**current["spec"], "replicas": spec.get("replicas", 1)}})
    owners = {each["metadata"]["uid"] for each in of_it}
    _tell(
        store,
        DEPLOYMENT,
        deployment,
        [pod for pod in store.list(POD, meta["namespace"]) if _owner(pod) in owners and is_active(pod)],
    )


def collect(store: Store) -> None:
    """Deletes what is owned by what is no more."""
    alive = {obj["metadata"]["uid"] for objects in store.objects.values() for obj in objects.values()}
    for kind in (REPLICA_SET, POD, SECRET):
        for obj in store.list(kind):
            owners = {each["uid"] for each in obj["metadata"].get("ownerReferences") or ()}
            if owners and not owners & alive and "deletionTimestamp" not in obj["metadata"]:
                store.delete(kind, obj["metadata"]["namespace"], obj["metadata"]["name"])


def reconcile(store: Store) -> None:
    for deployment in store.list(DEPLOYMENT):
        roll(store, deployment)
    for replica_set in store.list(REPLICA_SET):
        scale(store, replica_set)
    collect(store)
    bind(store)


def _tell(store: Store, kind: Any, obj: Object, pods: list[Object]) -> None:
    ready = sum(ready_since(pod) is not None for pod in pods)
    found = store.get(kind, obj["metadata"]["namespace"], obj["metadata"]["name"])
    conditions = obj.get("status", {}).get("conditions") or []
    found["status"] = {
        "replicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": found["metadata"]["generation"],
        "conditions": conditions,
    }
    store.replace(kind, found, status=True)


def _owner(obj: Mapping[str, Any]) -> str | None:
    return next((each["uid"] for each in obj["metadata"].get("ownerReferences") or () if each.get("controller")), None)


def _reference(obj: Object) -> dict[str, Any]:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
    }
