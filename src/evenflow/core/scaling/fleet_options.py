"""The options of a fleet, by kind of target."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from typing import Any

from evenflow.core.executors import CELERY, NATIVE
from evenflow.core.likeness import did_you_mean
from evenflow.core.limits import MAX_NAME_CHARS
from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.errors import BadValue

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9.]*[a-z0-9])?")  # of an object of Kubernetes, which gets into paths of its API
POD = "{pod}"  # in the name of a worker
NO_STATEFUL_SETS = (
    "a StatefulSet ends its pods in the order of their numbers, the highest first, whatever they run, so whoever makes it smaller "
    "ends work; let a Deployment run the workers"
)
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "native": {},
    "celery": {},
    "kubernetes": {
        "deployment": "the Deployment whose pods are the workers",
        "namespace": "its namespace; that of the autoscaler if none is said",
        "worker": f"the names of workers, {POD} in it stands for that of the pod: {POD} if nothing is said",
    },
}


SERVED: Mapping[str, frozenset[str]] = {"native": frozenset({NATIVE}), "celery": frozenset({CELERY})}  # by target
KEPT_BY_UP = frozenset(SERVED)  # targets whose workers ``evenflow up`` starts, with queues and slots of its own


def serves(target: str, kind: str) -> bool:
    """Returns whether workers of such a fleet get the tries of a queue whose executor is of this ``kind`` (R-AS2). Where each try
    gets a pod, no fleet serves; a Deployment may have native workers or Celery's.
    """
    return kind in SERVED.get(target, (NATIVE, CELERY))


def up_again(target: str, policy: ScalingPolicy, queues: Collection[str]) -> str:
    """Returns what to type on a host, so that its fleet has these bounds and queues."""
    of = "" if target == "native" else f" --autoscale-target {target}"
    return f"EVENFLOW_QUEUES={shlex.quote(','.join(queues))} evenflow up --autoscale {policy.min}..{policy.max}{of}"


def served_in_vain(target: str, served: Collection[str], kind: str, owned: Collection[str]) -> str | None:
    """Returns a queue that a fleet has and an executor of this ``kind``, if workers of the fleet would get none of its tries."""
    return None if serves(target, kind) else min(set(served).intersection(owned), default=None)


def check_target(target: str, options: Mapping[str, Any]) -> None:
    """Raises :class:`BadValue` when the target does not exist, or cannot serve a fleet with these options."""
    known = OPTIONS.get(target)
    if known is None:
        raise BadValue(f"The target of a fleet is one of {', '.join(OPTIONS)}, not {target!r}.{did_you_mean(target, OPTIONS)}")
    if "statefulset" in options:
        raise BadValue(f"A fleet cannot be a StatefulSet: {NO_STATEFUL_SETS}.")
    for name, value in options.items():
        if name not in known:
            told = ", ".join(known) or "no options"
            raise BadValue(f"The target {target!r} has no option {name!r}; it has: {told}.{did_you_mean(name, known)}")
        if not isinstance(value, str) or not value:
            raise BadValue(f"The option {name!r} of a target is a text, not {value!r}.")
        if name in ("deployment", "namespace") and not _NAME.fullmatch(value):
            raise BadValue(
                f"The option {name!r} of a target is a name as Kubernetes has them (small letters, digits, -), not {value!r:.300}."
            )
    if target == "kubernetes" and "deployment" not in options:
        raise BadValue("A fleet on Kubernetes needs the name of its Deployment: --of-target.deployment NAME")
    if len(options.get("worker", POD)) > MAX_NAME_CHARS:
        raise BadValue(f"The option 'worker' of a target has at most {MAX_NAME_CHARS} characters.")
    if POD not in options.get("worker", POD):
        raise BadValue(f"The option 'worker' of a target has {POD} in it, or all workers had one name.")
