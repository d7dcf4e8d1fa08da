"""The pod of a try: a template, then the task's override, then Evenflow's own fields.

Without a template a pod is as harmless as possible: not root, no rights to gain, no token of a service account. A template may say
otherwise; a task may not (:mod:`evenflow.core.pods.override`).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenflow.core.pods.options import AIRFLOW, EVENFLOW, PodOptions
from evenflow.core.pods.override import OWN_PREFIX, TRY_CONTAINER, merged, trespass
from evenflow.errors import BadValue, ExtraMissing, SettingsError
from evenflow.kubernetes import limits
from evenflow.kubernetes.client import Object
from evenflow.launcher.executor import KubernetesSettings
from evenflow.launcher.kubernetes import workload
from evenflow.store.serving.launches import Launch, LaunchedCode, PodAsk

MANAGED_BY = "app.kubernetes.io/managed-by"
INSTALLATION, EPOCH, EXECUTOR = "evenflow/installation", "evenflow/epoch", "evenflow/executor"
TOKEN_KEY, WORKLOAD_KEY = "token", "workload"
_TOKEN = "EVENFLOW_TOKEN"
_API_URL = "EVENFLOW_API_URL"
HOME = "/evenflow"
WORKER_MEMORY = 160 * 2**20  # bytes for the worker itself and its loaded DAG file, beside the limit of the try's processes
CPU_REQUEST, MEMORY_REQUEST = "250m", "256Mi"  # if neither template nor task say anything

_NO_RIGHTS = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_DEFAULTS: Mapping[str, Any] = {
    "spec": {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": limits.GRACE_S,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": TRY_CONTAINER,
                "command": ["evenflow"],
                "resources": {"requests": {"cpu": CPU_REQUEST, "memory": MEMORY_REQUEST}},
                "securityContext": _NO_RIGHTS,
            }
        ],
    }
}


@dataclass(frozen=True, slots=True)
class PodMaker:
    """``installation`` is the Evenflow's; ``environment`` is for its workers, unless the template says otherwise. ``runs``: what
    pods run, because their image has it.
    """

    installation: str
    executor: str
    template: Mapping[str, Any]
    environment: Mapping[str, str]
    runs: str = EVENFLOW

    @property
    def selector(self) -> str:
        """Selects all pods of this executor, of any launcher."""
        return f"{INSTALLATION}={label(self.installation)},{EXECUTOR}={label(self.executor)}"

    def name_of(self, launch: Launch) -> str:
        """Returns the same name in every launcher: a try has one pod."""
        whose = hashlib.sha256(f"{self.installation}/{self.executor}".encode()).hexdigest()[:6]
        ours = f"{whose}-{launch.epoch}"
        room = (limits.NAME_CHARS - len(OWN_PREFIX) - len(ours)) // 2 - 1
        parts = [part for part in (_slug(launch.dag_id, room), _slug(launch.task_id, room)) if part]
        return f"{OWN_PREFIX}{'-'.join([*parts, ours])}"

    def pod(self, launch: Launch, ask: PodAsk | None, code: LaunchedCode | None = None) -> Object:
        """``code`` is needed where pods run Airflow. Raises :class:`BadValue`, which names what the task may not say of its pod, or
        that it cannot run in one.
        """
        name, override = self.name_of(launch), (ask and ask.override) or {}
        if flaw := trespass(self.template, override):
            raise BadValue(f"The pod_override of the task {flaw}: ask who runs the cluster.")
        pod = merged(self.template, override)
        of_dag = {"dag-id": launch.dag_id, "run-id": launch.run_id, "task-id": launch.task_id, "try-number": str(launch.try_number)}
        if launch.map_index >= 0:
            of_dag["map-index"] = str(launch.map_index)
        labels = {
            MANAGED_BY: "evenflow",
            INSTALLATION: label(self.installation),
            EXECUTOR: label(self.executor),
            EPOCH: str(launch.epoch),
        }
        metadata = dict(pod.get("metadata") or {})
        own = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {**(metadata.get("labels") or {}), **labels},
                "annotations": {
                    **(metadata.get("annotations") or {}),
                    **{f"evenflow/{key}": value for key, value in of_dag.items()},
                    **({} if code is None else workload.notes_of(code, launch.queue)),
                },
            },
        }
        spec = dict(pod["spec"])
        spec["restartPolicy"] = "Never"
        for kind in ("containers", "initContainers"):
            known = {each["name"] for each in self.template["spec"].get(kind) or ()}
            if spec.get(kind):
                spec[kind] = [each if each["name"] in known else {**each, "securityContext": _NO_RIGHTS} for each in spec[kind]]
        containers = [dict(each) for each in spec["containers"]]
        for container in containers:
            if container["name"] == TRY_CONTAINER:
                secret = f"{name}-{launch.sends}"
                if self.runs == AIRFLOW:
                    self._equip_for_airflow(container, secret, launch, code)
                else:
                    self._equip(container, spec, name, secret, launch)
                if ask is not None:
                    _limit(container, ask)
        return {**own, "spec": {**spec, "containers": containers}}

    def _equip_for_airflow(self, container: Object, secret: str, launch: Launch, code: LaunchedCode | None) -> None:
        if code is None or not code.environment:
            raise BadValue(
                f"Pods of the executor {self.executor} run tasks of Airflow's DAGs, and DAG {launch.dag_id!r} is none. Name "
                "another queue for the task."
            )
        container["args"] = list(workload.ARGUMENTS)
        told = workload.settings(self.environment.get(_API_URL, ""), code)
        said = {entry["name"]: entry for entry in container.get("env") or ()}
        env = {key: {"name": key, "value": value} for key, value in told.items()} | said
        container["env"] = [*env.values(), _of_secret(workload.WORKLOAD, secret, WORKLOAD_KEY)]

    def _equip(self, container: Object, spec: Object, name: str, secret: str, launch: Launch) -> None:
        container["args"] = ["worker", "--try", str(launch.epoch)]
        grace_s = int(spec.get("terminationGracePeriodSeconds", limits.GRACE_S))
        told = {
            **self.environment,
            "EVENFLOW_HOME": HOME,
            "EVENFLOW_QUEUES": launch.queue,
            "EVENFLOW_DRAIN_TIMEOUT": str(max(grace_s - limits.LAST_WORDS_S, 0)),
            "EVENFLOW_METRICS_PORT": "-1",
        }
        said = {entry["name"]: entry for entry in container.get("env") or ()}
        env = {key: {"name": key, "value": value} for key, value in told.items()} | said
        env["EVENFLOW_NAME"] = {"name": "EVENFLOW_NAME", "value": name}
        env[_TOKEN] = _of_secret(_TOKEN, secret, TOKEN_KEY)
        container["env"] = list(env.values())
        mounts = list(container.get("volumeMounts") or ())
        if not any(each["mountPath"] == HOME for each in mounts):
            container["volumeMounts"] = [*mounts, {"name": "evenflow-home", "mountPath": HOME}]
            spec["volumes"] = [*(spec.get("volumes") or ()), {"name": "evenflow-home", "emptyDir": {}}]


def _of_secret(name: str, secret: str, key: str) -> Object:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def _limit(container: Object, ask: PodAsk) -> None:
    """Makes the task's resources the request and the limit of its container."""
    amounts = {}
    if ask.memory is not None:
        amounts["memory"] = f"{math.ceil((ask.memory + WORKER_MEMORY) / 2**20)}Mi"
    if ask.cpu is not None:
        amounts["cpu"] = f"{round(ask.cpu * 1000)}m"
    resources = container.get("resources") or {}
    container["resources"] = {
        **resources,
        "requests": {**(resources.get("requests") or {}), **amounts},
        "limits": {**(resources.get("limits") or {}), **amounts},
    }


def secret_name(pod: Object) -> str | None:
    """Returns the secret's name for the token of its try, or None for a foreign pod."""
    for container in pod["spec"]["containers"]:
        for entry in container.get("env") or ():
            if entry["name"] in (_TOKEN, workload.WORKLOAD):
                return str(((entry.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name") or "") or None
    return None


def secret_data(pod: Object, epoch: int, token: str) -> dict[str, str]:
    """Returns what the secret of this pod has: the token, in the form that what it runs needs."""
    named = {entry["name"] for container in pod["spec"]["containers"] for entry in container.get("env") or ()}
    return {WORKLOAD_KEY: workload.workload_of(pod, epoch, token)} if workload.WORKLOAD in named else {TOKEN_KEY: token}


def epoch_of(pod: Object) -> int | None:
    text = str((pod["metadata"].get("labels") or {}).get(EPOCH, ""))
    return int(text) if text.isdecimal() else None


def label(text: str) -> str:
    """Returns a value for a label, which is short, with few characters; a digest distinguishes texts that do not fit."""
    kept = re.sub(r"[^A-Za-z0-9_.-]", "-", text).strip("-_.")
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return text if kept == text and 0 < len(text) <= limits.NAME_CHARS else f"{kept[:40].strip('-_.')}-{digest}".strip("-")


def _slug(text: str, most: int) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:most].strip("-")


def read_template(options: PodOptions, file: str) -> dict[str, Any]:
    """Returns the template of the executor, or else of the launcher, over the defaults. Raises :class:`SettingsError`, which says
    what is wrong.
    """
    path = options.template or file
    given = _loaded(Path(path)) if path else {}
    _check(given, path)
    pod = merged(_DEFAULTS, {key: given[key] for key in ("metadata", "spec") if key in given})
    try_container = next(each for each in pod["spec"]["containers"] if each["name"] == TRY_CONTAINER)
    if options.runs == AIRFLOW and try_container["command"] == ["evenflow"]:
        try_container["command"] = ["python"]
    if options.image:
        try_container["image"] = options.image
    if not try_container.get("image"):
        raise SettingsError(
            f"The pods of this executor have no image: the template says none for container {TRY_CONTAINER!r}. Name one with "
            "evenflow executors set NAME --option.image IMAGE"
        )
    if options.service_account:
        pod["spec"]["serviceAccountName"] = options.service_account
    return pod


def with_address(template: Mapping[str, Any], settings: KubernetesSettings, runs: str) -> Mapping[str, str]:
    """Returns the environment of pods of this template, with the address of the API unless the template has it. Raises
    :class:`SettingsError` when nothing says where pods reach it.
    """
    told, spec = settings.environment, template["spec"]
    if _API_URL in told:
        return told
    if spec.get("hostNetwork") and settings.url_here:
        return {**told, _API_URL: settings.url_here}
    container = next(each for each in spec["containers"] if each["name"] == TRY_CONTAINER)
    said = {entry["name"] for entry in container.get("env") or ()}
    if (workload.API_URL if runs == AIRFLOW else _API_URL) not in said and not container.get("envFrom"):
        raise SettingsError(
            "Nothing says where pods reach the API, and 127.0.0.1 is in a pod the pod itself. Start this launcher again after "
            f"export {_API_URL}=https://evenflow-api:8974, with the name or address of your API's host."
        )
    return told


def _loaded(path: Path) -> Any:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"The template of pods cannot be read: {error}.") from None
    if len(text) > limits.TEMPLATE_BYTES:
        raise SettingsError(f"The template of pods {path} has {len(text):,} bytes; the limit is {limits.TEMPLATE_BYTES:,}.")
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except ValueError as error:
            raise SettingsError(f"The template of pods {path} is no JSON: {error}.") from None
    try:
        import yaml
    except ImportError as error:
        raise ExtraMissing("A template of pods in YAML", "kubernetes", error) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)  # without its content: not everybody who may name a file may read it
        line = "" if mark is None else f" in line {mark.line + 1}"
        raise SettingsError(f"The template of pods {path} is no YAML{line}: {getattr(error, 'problem', '')}.") from None


def _check(given: Any, path: str) -> None:
    """Raises :class:`SettingsError`."""
    what = f"The template of pods {path}"
    if not isinstance(given, dict) or given.get("kind", "Pod") != "Pod":
        raise SettingsError(f"{what} is no pod: it has kind: Pod, metadata and spec.")
    if unknown := given.keys() - {"apiVersion", "kind", "metadata", "spec"}:
        raise SettingsError(f"{what} has {sorted(unknown)[0]!r}: a pod has kind, metadata and spec.")
    if not isinstance(given.get("metadata") or {}, dict) or not isinstance(given.get("spec") or {}, dict):
        raise SettingsError(f"{what} has a metadata or a spec that is no mapping.")
    for name in ("containers", "initContainers", "volumes"):
        items = (given.get("spec") or {}).get(name, [])
        if not isinstance(items, list) or not all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in items):
            raise SettingsError(f"{what} has {name} that are no list of things with names; that of the task is {TRY_CONTAINER!r}.")
