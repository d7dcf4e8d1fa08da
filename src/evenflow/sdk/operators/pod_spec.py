"""The pod of one try for Kubernetes' API: from a template, the task's options, and what Evenflow adds."""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenflow.core.object_names import TryName
from evenflow.errors import BadArgument

BASE, RESULT = "base", "evenflow-result"  # containers, as in evenflow.triggers.pods
KEY, TRY = "evenflow.dev/key", "evenflow.dev/try"
MOST_LABEL = 63  # characters of a label's value, and of a host's name
MOST_RESULT = 1024 * 1024  # bytes that the side-car passes on: as many as are read
_VOLUME = "evenflow-result"
_FOLDERS = ("/evenflow", "/airflow/xcom")  # of a result: result.json, or return.json as in Airflow
# The cluster ends it after all others, and it then prints what they have left. A waiting shell reacts to this at once.
_HAND_ON = (
    f"trap 'cd /evenflow && for f in result.json return.json; do if [ -f $f ]; then head -c {MOST_RESULT} $f; break; fi; done; "
    "exit 0' TERM; while true; do sleep 3600 > /dev/null 2>&1 & wait $!; done"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTerms:
    """A task's options for its pod. Names are those of Kubernetes, in Python's spelling."""

    image: str | None = None
    cmds: Sequence[str] = ()
    arguments: Sequence[str] = ()
    env_vars: Mapping[str, Any] | Sequence[Mapping[str, Any]] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    volumes: Sequence[Mapping[str, Any]] = ()
    volume_mounts: Sequence[Mapping[str, Any]] = ()
    container_resources: Mapping[str, Any] | None = None
    node_selector: Mapping[str, str] | None = None
    tolerations: Sequence[Mapping[str, Any]] = ()
    service_account_name: str | None = None
    image_pull_policy: str | None = None
    result_image: str | None = None  # of the side-car; None: the pod has no result


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTry(TryName):
    """The try of the pod. ``key`` is the same for all tries of its task instance, and unique."""

    key: str


def key_of(once_key: str) -> str:
    return hashlib.sha256(once_key.encode()).hexdigest()[:20]


def pod_name(name: str, of: OfTry) -> str:
    end = f"-{of.key[:12]}-{of.try_number}"
    begin = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[: MOST_LABEL - len(end)].strip("-")
    return (begin or "pod") + end


def pod_of(template: Mapping[str, Any], wanted: PodTerms, name: str, of: OfTry) -> dict[str, Any]:
    """Returns the pod. Raises :class:`BadArgument`."""
    pod: dict[str, Any] = copy.deepcopy(dict(template))
    meta, spec = pod.setdefault("metadata", {}), pod.setdefault("spec", {})
    pod["apiVersion"], pod["kind"] = "v1", "Pod"
    meta.pop("namespace", None)
    meta["name"] = pod_name(name, of)
    meta["labels"] = {**(meta.get("labels") or {}), **wanted.labels, **_labels(of)}
    meta["annotations"] = {**(meta.get("annotations") or {}), **wanted.annotations, **_ids(of)}
    base = _base(spec)
    _fill(base, spec, wanted)
    if not base.get("image"):
        raise BadArgument("the pod has no image: give image=, or a template whose container has one.")
    spec["restartPolicy"] = "Never"
    if "serviceAccountName" not in spec:
        spec.setdefault("automountServiceAccountToken", False)
    if wanted.result_image is not None:
        _add_result(spec, base, wanted.result_image)
    return pod


def env_values(pod: Mapping[str, Any]) -> list[str]:
    """Returns the values of all its containers' variables: some may be secrets, which logs must not show."""
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    return [str(each["value"]) for container in containers for each in container.get("env") or () if each.get("value")]


def _base(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns the container for the work: the one with this name, else the template's first."""
    containers: list[dict[str, Any]] = spec.setdefault("containers", [])
    if not containers:
        containers.append({})
    found = next((each for each in containers if each.get("name") == BASE), containers[0])
    found["name"] = BASE
    return found


def _fill(base: dict[str, Any], spec: dict[str, Any], wanted: PodTerms) -> None:
    said = {
        "image": wanted.image,
        "command": list(wanted.cmds),
        "args": list(wanted.arguments),
        "resources": wanted.container_resources,
        "imagePullPolicy": wanted.image_pull_policy,
    }
    base.update({name: value for name, value in said.items() if value})
    of_pod = {"nodeSelector": wanted.node_selector, "serviceAccountName": wanted.service_account_name}
    spec.update({name: value for name, value in of_pod.items() if value})
    lists: tuple[tuple[dict[str, Any], str, Sequence[Any]], ...] = (
        (base, "env", _env(wanted.env_vars)),
        (base, "volumeMounts", wanted.volume_mounts),
        (spec, "volumes", wanted.volumes),
        (spec, "tolerations", wanted.tolerations),
    )
    for place, name, values in lists:
        if values:
            place[name] = [*(place.get(name) or ()), *map(dict, values)]


def _env(given: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [{"name": name, "value": str(value)} for name, value in given.items()] if isinstance(given, Mapping) else list(given)


def _add_result(spec: dict[str, Any], base: dict[str, Any], image: str) -> None:
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": _VOLUME, "emptyDir": {"sizeLimit": "16Mi"}}]
    mounts = [{"name": _VOLUME, "mountPath": folder} for folder in _FOLDERS]
    base["volumeMounts"] = [*(base.get("volumeMounts") or ()), *mounts]
    sidecar = {
        "name": RESULT,
        "image": image,
        "restartPolicy": "Always",  # this makes it a side-car, which ends after the others
        "command": ["sh", "-c", _HAND_ON],
        "volumeMounts": mounts[:1],
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    spec["initContainers"] = [*(spec.get("initContainers") or ()), sidecar]


def _labels(of: OfTry) -> dict[str, str]:
    people = {"dag": of.dag_id, "task": of.task_id, "run": of.run_id}
    return {
        "app.kubernetes.io/managed-by": "evenflow",
        KEY: of.key,
        TRY: str(of.try_number),
        **{f"evenflow.dev/{name}": _label(value) for name, value in people.items()},
    }


def _ids(of: OfTry) -> dict[str, str]:
    """Returns the full ids, which labels cannot hold."""
    told = {"dag-id": of.dag_id, "task-id": of.task_id, "run-id": of.run_id, "map-index": str(of.map_index)}
    return {f"evenflow.dev/{name}": value for name, value in told.items()}


def _label(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:MOST_LABEL].strip("_.-")
