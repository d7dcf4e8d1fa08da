"""The changes that an author may make to the pod of a task, and how they are laid over the template of the cluster's operator.

As in a strategic merge, dicts are merged, lists of named things are merged by name, everything else is replaced, and None removes.
Only the template decides what a pod may do on its node or in its cluster, because an author of a DAG must not grant rights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from evenflow.core.bounds import JsonBytes

TRY_CONTAINER = "try"  # in a pod of a try, the container of the task
OWN_PREFIX = "evenflow-"  # of secrets that hold tokens of tries
SECRETS = "evenflow/secrets"  # annotation of a template: the secrets that a task may name, by patterns; without it all
ANNOTATIONS = "evenflow/annotations"  # the same of annotations
CLAIMS = "evenflow/claims"  # and of claims of volumes
PRIORITIES = "evenflow/priority-classes"  # and of classes of priority
OWN_LABELS = ("evenflow/", "app.kubernetes.io/managed-by")
_RIGHTS = (  # annotations by which a node, a cloud or a network grants more than Kubernetes itself
    "container.apparmor.security.beta.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/", "iam.amazonaws.com/",
    "io.kubernetes.cri-o.", "cdi.k8s.io/", "k8s.v1.cni.cncf.io/", "v1.multus-cni.io/", "vault.hashicorp.com/",
)  # fmt: skip

# The field that names the items of a list, by the name of the list; other lists are replaced.
KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}
_OF_TEMPLATE_ALONE = {
    "serviceAccountName", "serviceAccount", "automountServiceAccountToken", "hostNetwork", "hostPID", "hostIPC", "hostUsers",
    "restartPolicy", "securityContext", "nodeName", "ephemeralContainers", "shareProcessNamespace", "runtimeClassName",
}  # fmt: skip
_CONTAINERS = ("containers", "initContainers")
_OF_TRY_CONTAINER = {"command", "args", "lifecycle"}
_ASKED_BY_NODES = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle")
_OF_NODE = {"hostPort", "hostIP"}  # of a port
_VOLUMES = {"emptyDir", "configMap", "secret", "persistentVolumeClaim", "downwardAPI", "ephemeral", "projected"}


@dataclass(frozen=True, slots=True)
class PodOverride(JsonBytes):
    """``{"metadata": {"labels": ..., "annotations": ...}, "spec": {...}}``."""

    def flaw(self, value: Any) -> str | None:
        return JsonBytes.flaw(self, value) or next(_flaws(value), None)


def merged(template: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the template with the override. Neither argument changes."""
    out = dict(template)
    for name, value in override.items():
        if value is None:
            out.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(out.get(name), Mapping):
            out[name] = merged(out[name], value)
        elif name in KEYS and isinstance(value, list) and isinstance(out.get(name), list):
            out[name] = _merged_list(out[name], value, KEYS[name])
        else:
            out[name] = value
    return out


def trespass(template: Mapping[str, Any], override: Mapping[str, Any]) -> str | None:
    """Returns what an override changes that only the template may, as the end of a sentence about it, or None.

    The template's other containers and its volumes may have rights that no author has. By its labels and annotations others know
    a pod of tries: policies of the network, services, meshes.
    """
    for kind in ("labels", "annotations"):
        own = (template.get("metadata") or {}).get(kind) or {}
        if changed := sorted(own.keys() & (override.get("metadata") or {}).get(kind, {}).keys()):
            return f"changes {changed[0]!r} of the {kind}, which is the template's alone"
    before, after = template.get("spec") or {}, override.get("spec") or {}
    kept = {each["name"] for kind in _CONTAINERS for each in before.get(kind) or ()} - {TRY_CONTAINER}
    barred = {volume["name"] for volume in before.get("volumes") or () if any(_flaws_of_volume(volume))}
    paths = {
        mount.get("mountPath")
        for container in before.get("containers") or ()
        for mount in container.get("volumeMounts") or ()
        if mount.get("name") in barred
    }
    for container in (each for kind in _CONTAINERS for each in after.get(kind) or ()):
        if container["name"] in kept:
            return f"changes the container {container['name']!r}, which is the template's alone"
        for mount in container.get("volumeMounts") or ():
            if mount.get("name") in barred or mount["mountPath"] in paths:
                return f"mounts at {mount['mountPath']!r} what only the template of the executor may mount"
    if (name := _foreign(template, SECRETS, _secrets_in(after))) is not None:
        return f"names the secret {name!r}, which the template of the executor does not let tasks have"
    if (name := _foreign(template, ANNOTATIONS, (override.get("metadata") or {}).get("annotations") or ())) is not None:
        return f"has the annotation {name!r}, which the template of the executor does not let tasks have"
    claims = (volume["persistentVolumeClaim"]["claimName"] for volume in after.get("volumes") or () if _claims(volume))
    if (name := _foreign(template, CLAIMS, claims)) is not None:
        return f"mounts the claim {name!r}, which the template of the executor does not let tasks have"
    if (name := _foreign(template, PRIORITIES, filter(None, [after.get("priorityClassName")]))) is not None:
        return f"has the priority class {name!r}, which the template of the executor does not let tasks have"
    return None


def _claims(volume: Mapping[str, Any]) -> bool:
    return volume.get("persistentVolumeClaim") is not None


def _foreign(template: Mapping[str, Any], list_of: str, names: Iterable[str]) -> str | None:
    """Returns the first of the names that is in no pattern of this list of the template, if the template has it."""
    allowed = ((template.get("metadata") or {}).get("annotations") or {}).get(list_of)
    if allowed is None:
        return None
    patterns = str(allowed).replace(",", " ").split()
    return next((name for name in names if not any(fnmatchcase(name, pattern) for pattern in patterns)), None)


def _merged_list(before: list[Any], more: list[Any], key: str) -> list[Any]:
    out = list(before)
    places = {each[key]: place for place, each in enumerate(out) if isinstance(each, Mapping) and key in each}
    for each in more:
        place = places.get(each.get(key)) if isinstance(each, Mapping) else None
        if place is None:
            out.append(each)
        else:
            out[place] = merged(out[place], each)
    return out


# -- what is wrong with an override, as the end of a sentence about it -------------------------------------------------------


def _flaws(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield 'is no dict such as {"spec": {"nodeSelector": {"disk": "ssd"}}}'
        return
    for name in value.keys() - {"metadata", "spec"}:
        yield f"has {name!r}; it says metadata and spec, as a pod does"
    for part in ("metadata", "spec"):
        if not isinstance(value.get(part, {}), dict):
            yield f"has a {part} that is no dict"
            return
    yield from _flaws_of_metadata(value.get("metadata", {}))
    yield from _flaws_of_spec(value.get("spec", {}))


def _flaws_of_metadata(metadata: dict[str, Any]) -> Iterator[str]:
    for name, texts in metadata.items():
        if name not in ("labels", "annotations"):
            yield f"has {name!r} in its metadata; there are labels and annotations, the rest is Evenflow's"
        elif not isinstance(texts, dict) or not all(isinstance(text, str) for text in (*texts, *texts.values())):
            yield f"has {name} that are no dict from strings to strings"
        else:
            for key in texts:
                if key.startswith(OWN_LABELS):
                    yield f"has {key!r} in its {name}, which is Evenflow's own: choose another name"
                if key.startswith(_RIGHTS):
                    yield f"has {key!r} in its {name}, which only the template of the executor may say: ask who runs the cluster"


def _flaws_of_spec(spec: dict[str, Any]) -> Iterator[str]:
    for name in sorted(spec.keys() & _OF_TEMPLATE_ALONE):
        yield f"has {name!r}, which only the template of the executor may say: ask who runs the cluster"
    for name, key in KEYS.items():
        items = spec.get(name)
        if items is not None and not (isinstance(items, list) and all(isinstance(each, dict) and key in each for each in items)):
            yield f"has {name} that are no list of dicts, each with its {key}" + _hint(name)
            return
    if "containers" in spec and not spec["containers"]:
        yield f"has no containers; leave them out to keep that of the task{_hint('containers')}"
    if not isinstance(spec.get("priorityClassName") or "", str):
        yield f"has a priorityClassName that is no string: {spec['priorityClassName']!r:.80}"
    grace_s = spec.get("terminationGracePeriodSeconds", 0)
    if grace_s is not None and (isinstance(grace_s, bool) or not isinstance(grace_s, int) or grace_s < 0):
        yield f"has a terminationGracePeriodSeconds that is no whole number of seconds: {grace_s!r:.80}"
    for kind in _CONTAINERS:
        for container in spec.get(kind) or ():
            yield from _flaws_of_container(container)
    for volume in spec.get("volumes") or ():
        yield from _flaws_of_volume(volume)


def _hint(name: str) -> str:
    return f" (that of the task is {TRY_CONTAINER!r})" if name == "containers" else ""


def _flaws_of_container(container: dict[str, Any]) -> Iterator[str]:
    where = f"in container {container['name']!r}"
    if "securityContext" in container:
        yield f"has 'securityContext' {where}, which only the template of the executor may say: ask who runs the cluster"
    for name in ("volumeMounts", "ports"):
        items = container.get(name) or []
        if not isinstance(items, list) or not all(isinstance(each, dict) and KEYS[name] in each for each in items):
            yield f"has {name} {where} that are no list of dicts, each with its {KEYS[name]}"
        elif name == "ports" and any(each.get(key) for each in items for key in _OF_NODE):
            yield f"takes a port of its node {where}, which only the template of the executor may say: ask who runs the cluster"
    for name in _ASKED_BY_NODES:
        if _names_host(container.get(name)):
            yield f"has a {name} {where} that asks another host from its node: leave out its host"
    resources = container.get("resources") or {}
    if not isinstance(resources, dict) or not all(isinstance(part or {}, (dict, list)) for part in resources.values()):
        yield f'has resources {where} that are no dict such as {{"limits": {{"memory": "4Gi"}}}}'
    for name in ("env", "envFrom"):
        if not isinstance(container.get(name) or [], list):
            yield f"has {name} {where} that is no list of dicts"
            return
    if container["name"] == TRY_CONTAINER:
        for name in sorted(container.keys() & _OF_TRY_CONTAINER):
            yield f"has {name!r} {where}: what runs there is Evenflow's; its image may be another one that has Evenflow"
    for entry in container.get("env") or ():
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            yield f"has an entry of env {where} that is no dict with a name"
            return
        if entry["name"].startswith("EVENFLOW_") and not entry["name"].startswith(("EVENFLOW_CONN_", "EVENFLOW_VAR_")):
            yield f"sets {entry['name']} {where}: settings of Evenflow are the template's"
    for entry in (*(container.get("env") or ()), *(container.get("envFrom") or ())):
        for name in _secrets_in(entry):
            if flaw := _flaw_of_secret(name):
                yield f"{flaw} {where}"


def _names_host(handler: Any) -> bool:
    """Returns whether its node would send a request to a host that it names: the node reaches what no pod reaches."""
    return isinstance(handler, dict) and (bool(handler.get("host")) or any(map(_names_host, handler.values())))


def _flaws_of_volume(volume: dict[str, Any]) -> Iterator[str]:
    kinds = volume.keys() - {"name"}
    for kind in sorted(kinds - _VOLUMES):
        yield f"has a volume of the kind {kind!r}, which only the template may say; it may be: {', '.join(sorted(_VOLUMES))}"
    claim = volume.get("persistentVolumeClaim")
    if claim is not None and not (isinstance(claim, dict) and isinstance(claim.get("claimName"), str) and claim["claimName"]):
        yield f"has a volume with a persistentVolumeClaim that names none; write {{'claimName': 'NAME'}}: {claim!r:.80}"
    projected = volume.get("projected")
    sources = projected.get("sources", ()) if isinstance(projected, dict) else ()
    if any(isinstance(each, dict) and "serviceAccountToken" in each for each in sources):
        yield "has a volume with a token of a service account, which only the template of the executor may say"
    for name in _secrets_in(volume):
        if flaw := _flaw_of_secret(name):
            yield flaw


def _flaw_of_secret(name: str) -> str | None:
    """Returns what is wrong with a secret that is named. Without a name, more of one that the template names would be shown."""
    if not name:
        return "names keys of a secret and not the secret"
    return f"names the secret {name!r}, which is Evenflow's own," if name.startswith(OWN_PREFIX) else None


def _secrets_in(value: Any) -> Iterator[str]:
    """Yields names of secrets, wherever they occur; an empty one where a part of a secret is meant, and no name is said."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name in ("secretKeyRef", "secretRef", "secret") and isinstance(part, dict):
                yield from [str(part[key] or "") for key in ("name", "secretName") if key in part] or [""]
            yield from _secrets_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from _secrets_in(part)
