"""Why the pod of a try does not run, or has ended: the causes, their words for people, and what follows from each.

Pure: a pod is the JSON of its cluster's API, and the time is an argument. A policy decides about the try. *fail*: it has failed,
and its task may have retries left; *elsewhere*: another pod replaces it, as after the loss of any worker
(``infrastructure_retries``); *wait*: the same try is sent again after a growing pause. A cause that may pass by itself has a
patience, after which the policy applies.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from evenflow.core.ending import TRY_LATER
from evenflow.core.hosts import host_of, is_loopback
from evenflow.core.pods.override import TRY_CONTAINER

Pod = Mapping[str, Any]


class Cause(StrEnum):
    IMAGE = "image"
    UNSCHEDULABLE = "unschedulable"
    OUT_OF_MEMORY = "out_of_memory"
    EVICTED = "evicted"
    PREEMPTED = "preempted"
    NODE_LOST = "node_lost"
    DELETED = "deleted"
    QUOTA = "quota"
    REFUSED = "refused"
    TEMPLATE = "template"
    EXITED = "exited"
    SILENT = "silent"


class Policy(StrEnum):
    FAIL = "fail"
    ELSEWHERE = "elsewhere"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class CauseRule:
    policy: Policy
    patience_s: float  # in which the cause may pass by itself
    meaning: str


RULES: Mapping[Cause, CauseRule] = MappingProxyType(
    {
        Cause.IMAGE: CauseRule(Policy.FAIL, 120.0, "An image cannot be pulled, or its name is none."),
        Cause.UNSCHEDULABLE: CauseRule(Policy.FAIL, 600.0, "No node takes the pod, or it is not started there."),
        Cause.OUT_OF_MEMORY: CauseRule(Policy.FAIL, 0.0, "A container was ended at its limit of memory."),
        Cause.EVICTED: CauseRule(Policy.ELSEWHERE, 0.0, "Its node, or somebody who drained that, sent it away."),
        Cause.PREEMPTED: CauseRule(Policy.ELSEWHERE, 0.0, "It gave way to a pod of a higher priority."),
        Cause.NODE_LOST: CauseRule(Policy.ELSEWHERE, 0.0, "Its node is gone, or silent."),
        Cause.DELETED: CauseRule(Policy.ELSEWHERE, 0.0, "Somebody deleted it."),
        Cause.QUOTA: CauseRule(Policy.WAIT, 0.0, "The namespace has no room for it by its quota."),
        Cause.REFUSED: CauseRule(Policy.FAIL, 0.0, "The cluster does not admit it: its rights, a policy, an admission webhook."),
        Cause.TEMPLATE: CauseRule(
            Policy.FAIL, 120.0, "It is no valid pod, or names what is not there: its template or an override is wrong."
        ),
        Cause.EXITED: CauseRule(Policy.ELSEWHERE, 0.0, "It ended, and did not say what became of its try."),
        Cause.SILENT: CauseRule(Policy.ELSEWHERE, 300.0, "It runs, and has not asked for its try: it may not reach the API."),
    }
)


@dataclass(frozen=True, slots=True)
class PodTrouble:
    """``since``: when the trouble began, if the pod says so; ``certain``: the pod's processes have surely ended."""

    cause: Cause
    reason: str
    since: datetime | None = None
    certain: bool = False


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A pod whose try is not claimed: what it ``says`` of itself, the command ``look`` that shows more, and whether it ``lasts`` so
    long that this is trouble of its executor.
    """

    pod: str
    says: str
    look: str
    lasts: bool


TOLD_AFTER_S = 5.0  # from the making of a pod until people are told why its try is not claimed: most begin earlier
LASTS_S = 60.0  # until that is trouble of its executor: a new node, or a large image, takes as long
MAX_SAID = 500  # characters of what a waiting pod says: it stands in one line of a table

_IMAGE = {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable"}
_HOPELESS = {"InvalidImageName", "ErrImageNeverPull"}
_NOT_STARTED = {"ContainerCannotRun", "StartError", "CreateContainerError", "RunContainerError", "CreateContainerConfigError"}
_DISRUPTIONS = {
    "PreemptionByScheduler": (Cause.PREEMPTED, "it gave way to a pod of a higher priority"),
    "EvictionByEvictionAPI": (Cause.EVICTED, "somebody evicted it, as a drain of its node does"),
    "TerminationByKubelet": (Cause.EVICTED, "its node ended it"),
    "DeletionByTaintManager": (Cause.NODE_LOST, "its node has been silent, or does not bear it any more"),
    "DeletionByPodGC": (Cause.NODE_LOST, "its node is gone"),
}
_NODE_ENDED = {"Evicted": Cause.EVICTED, "Shutdown": Cause.EVICTED, "Terminated": Cause.EVICTED, "NodeShutdown": Cause.EVICTED}
_NODE_LOST = {"NodeLost", "NodeUnreachable"}
_NOT_ADMITTED = {"OutOfcpu", "OutOfmemory", "OutOfpods", "NodeAffinity", "UnexpectedAdmissionError", "PreemptContainer"}


def find_trouble(pod: Pod) -> PodTrouble | None:
    """Returns what is wrong with a pod, or with the last known state of a pod that is gone, or None."""
    return _of_end(pod) or _of_wait(pod)


def find_end(pod: Pod) -> PodTrouble:
    """Returns why a pod is gone."""
    found = _of_end(pod)
    if found is not None:
        return found
    node = _node(pod)
    if _condition(pod, "Ready", "False") is not None and _reason_of(pod, "Ready") == "NodeNotReady":
        return PodTrouble(Cause.NODE_LOST, f"The pod was lost with its node{node}.")
    return PodTrouble(Cause.DELETED, f"Somebody deleted the pod{node}.", certain=_try_has_ended(pod))


def has_ended(pod: Pod) -> bool:
    """Returns whether all containers of a pod have ended, or have not begun as far as its node has said."""
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return True
    states = [each.get("state") or {} for each in status.get("containerStatuses") or ()]
    return not any("running" in state for state in states) and (bool(states) or not pod["spec"].get("nodeName"))


def is_news(pod: Pod) -> bool:
    """Returns whether a pod says more than that it waits or runs."""
    trouble = find_trouble(pod)
    return trouble is not None and trouble.cause is not Cause.UNSCHEDULABLE


def gave_back(pod: Pod) -> bool:
    """Returns whether the pod's worker has ended without its try, so that another worker may have the try."""
    ends = [(each.get("state") or {}).get("terminated") or {} for each in _statuses(pod) if each["name"] == TRY_CONTAINER]
    return is_finished(pod) and any(end.get("exitCode") == TRY_LATER for end in ends)


def is_finished(pod: Pod) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_leaving(pod: Pod) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def made_s_ago(pod: Pod, now: datetime) -> float:
    at = _time(pod["metadata"].get("creationTimestamp"))
    return 0.0 if at is None else (now - at).total_seconds()


def finished_s_ago(pod: Pod, now: datetime) -> float:
    """Returns the seconds since the last of its containers ended; without such a time, since the pod was made."""
    terminated = [(each.get("state") or {}).get("terminated") or {} for each in _statuses(pod)]
    ended = [_time(each.get("finishedAt")) for each in terminated]
    at = max(filter(None, ended), default=None)
    return made_s_ago(pod, now) if at is None else (now - at).total_seconds()


def judge(finding: PodTrouble, rules: Mapping[Cause, CauseRule], now: datetime) -> Policy | None:
    """Returns the policy that applies, or None while the cause may still pass."""
    rule = rules[finding.cause]
    waited_s = (now - finding.since).total_seconds() if finding.since is not None else rule.patience_s
    return rule.policy if waited_s >= rule.patience_s else None


def refusal_cause(status: int, reason: str, message: str) -> Cause | None:
    """Returns why a cluster refuses a pod, or None if the cluster itself is in trouble and may make it later."""
    if status == 403 and "exceeded quota" in message:
        return Cause.QUOTA
    if status in (400, 404, 413, 422):
        return Cause.REFUSED if "admission webhook" in message or "denied the request" in message else Cause.TEMPLATE
    return Cause.REFUSED if status in (403, 405) else None


def refusal_reason(cause: Cause, message: str) -> str:
    begin = {
        Cause.QUOTA: "The namespace has no room for the pod",
        Cause.TEMPLATE: "The cluster says that the pod is not valid: correct its template or pod_override",
    }.get(cause, "The cluster does not admit the pod")
    return f"{begin}: {message.rstrip('.')}."


# -- of a pod that has ended, or is ending -----------------------------------------------------------------------------


def _of_end(pod: Pod) -> PodTrouble | None:
    status = pod.get("status") or {}
    ended, node, said = _try_has_ended(pod), _node(pod), status.get("reason", "")
    memory = _out_of_memory(pod)
    if memory is not None:
        return PodTrouble(Cause.OUT_OF_MEMORY, memory, certain=ended)
    disruption = _condition(pod, "DisruptionTarget", "True")
    if said in _NODE_ENDED:
        return PodTrouble(_NODE_ENDED[said], f"The pod was evicted{node}: {_words(status.get('message') or said)}.", certain=True)
    if disruption is not None:
        cause, words = _DISRUPTIONS.get(
            disruption.get("reason", ""), (Cause.EVICTED, disruption.get("reason") or "it was disrupted")
        )
        more = f" ({_words(disruption['message'])})" if disruption.get("message") else ""
        return PodTrouble(cause, f"The pod was ended{node}: {words}{more}.", certain=ended and cause is not Cause.NODE_LOST)
    if said in _NODE_LOST:
        return PodTrouble(Cause.NODE_LOST, f"The pod was lost with its node{node}.")
    if said in _NOT_ADMITTED:
        return PodTrouble(
            Cause.EVICTED, f"The node did not take the pod{node}: {_words(status.get('message') or said)}.", certain=True
        )
    if is_leaving(pod):
        return PodTrouble(Cause.DELETED, f"Somebody deleted the pod{node}.", certain=ended)
    return _of_exit(pod, node) if is_finished(pod) else None


def _try_has_ended(pod: Pod) -> bool:
    """Returns whether no process of the try can run any more. A container that waits may run by now: its node says so later."""
    if is_finished(pod) or not pod["spec"].get("nodeName"):
        return True
    return any(each["name"] == TRY_CONTAINER and "terminated" in (each.get("state") or {}) for each in _statuses(pod))


def _of_exit(pod: Pod, node: str) -> PodTrouble:
    status = pod["status"]
    if status.get("reason") == "DeadlineExceeded":
        return PodTrouble(Cause.EXITED, f"The pod was ended{node}: its activeDeadlineSeconds are over.", certain=True)
    for container in _statuses(pod):
        end = (container.get("state") or {}).get("terminated")
        if end is None or not end.get("exitCode"):
            continue
        said = f": {_words(end['message'])}" if end.get("message") else ""
        if end.get("reason") in _NOT_STARTED:
            return PodTrouble(Cause.TEMPLATE, f"Container {container['name']!r} cannot be started{node}{said}.", certain=True)
        how = (
            f"was killed by signal {end['exitCode'] - 128}" if end["exitCode"] > 128 else f"ended with exit code {end['exitCode']}"
        )
        return PodTrouble(
            Cause.EXITED, f"Container {container['name']!r} {how}{node}, and the try had not ended{said}.", certain=True
        )
    return PodTrouble(Cause.EXITED, f"The pod ended{node}, and its try had not.", certain=True)


def _out_of_memory(pod: Pod) -> str | None:
    for container in _statuses(pod):
        end = (container.get("state") or {}).get("terminated") or {}
        if end.get("reason") == "OOMKilled":
            name = str(container["name"])
            return f"Out of memory: container {name!r} was killed at its limit{_limit(pod, name)}{_node(pod)}."
    return None


def _limit(pod: Pod, name: str) -> str:
    spec = pod["spec"]
    for each in (*(spec.get("initContainers") or ()), *spec["containers"]):
        if each["name"] == name and (limit := ((each.get("resources") or {}).get("limits") or {}).get("memory")):
            return f" of {limit}"
    return ", which is that of its node"


# -- of a pod that is to run -------------------------------------------------------------------------------------------


def _of_wait(pod: Pod) -> PodTrouble | None:
    placed = _condition(pod, "PodScheduled", "True")
    since = _time((placed or {}).get("lastTransitionTime") or pod["metadata"].get("creationTimestamp"))
    for container in _statuses(pod):
        waits = (container.get("state") or {}).get("waiting") or {}
        reason, said = waits.get("reason", ""), _words(waits.get("message") or waits.get("reason") or "")
        if reason in _IMAGE:
            begun = None if reason in _HOPELESS else since
            return PodTrouble(Cause.IMAGE, f"Image {container.get('image')!r} cannot be pulled{_node(pod)}: {said}.", since=begun)
        if reason in _NOT_STARTED:
            return PodTrouble(
                Cause.TEMPLATE, f"Container {container['name']!r} cannot be started{_node(pod)}: {said}.", since=since
            )
    if (pod.get("status") or {}).get("phase", "Pending") != "Pending":
        return None
    refused = _condition(pod, "PodScheduled", "False")
    if refused is not None:
        began = _time(refused.get("lastTransitionTime")) or since
        return PodTrouble(
            Cause.UNSCHEDULABLE, f"No node takes the pod: {_words(refused.get('message') or 'no reason is told')}.", since=began
        )
    return PodTrouble(Cause.UNSCHEDULABLE, f"The pod is not started{_node(pod)}.", since=since)


def silence_of(pod: Pod) -> PodTrouble | None:
    """Returns the trouble of a running pod whose try is not claimed. It begins with the container of the try, because images may be
    pulled and init containers may run for long before that, and other containers may run beside it.
    """
    if (pod.get("status") or {}).get("phase") != "Running" or is_leaving(pod):
        return None
    runs = next((each["state"]["running"] for each in _statuses(pod) if _is_try_that_runs(each)), None)
    if runs is None:
        return None
    said = f"its log says why: it may not reach the API{_address(pod)}, or the token may be refused there"
    since = _time(runs.get("startedAt") or pod["metadata"].get("creationTimestamp"))
    return PodTrouble(Cause.SILENT, f"The pod runs{_node(pod)} and has not asked for its try; {said}.", since=since)


def waiting_of(pod: Pod, now: datetime) -> WaitingPod | None:
    """Returns what people are to know of a pod whose try is not claimed, or None of a new one and of one that is leaving."""
    age_s, trouble = made_s_ago(pod, now), find_trouble(pod) or silence_of(pod)
    if trouble is None or is_leaving(pod) or age_s < TOLD_AFTER_S:
        return None
    meta = pod["metadata"]
    namespace = ["--namespace", meta["namespace"]] if meta.get("namespace") else []
    look = ["logs", meta["name"]] if trouble.cause is Cause.SILENT else ["describe", "pod", meta["name"]]
    return WaitingPod(str(meta["name"]), trouble.reason[:MAX_SAID], shlex.join(["kubectl", *look, *namespace]), age_s >= LASTS_S)


def refused_of(pod: str, reason: str, namespace: str) -> WaitingPod:
    """Returns what people are to know of a try whose pod a cluster does not make for now."""
    look = ["kubectl", "get", "resourcequota", *(["--namespace", namespace] if namespace else [])]
    return WaitingPod(pod, reason[:MAX_SAID], shlex.join(look), lasts=True)


def _address(pod: Pod) -> str:
    """Returns where the worker of a pod looks for the API, as far as the pod says it itself."""
    env = [entry for each in pod["spec"]["containers"] if each["name"] == TRY_CONTAINER for entry in each.get("env") or ()]
    url = next((str(entry.get("value") or "") for entry in env if entry["name"] == "EVENFLOW_API_URL"), "")
    if not url:
        return ""
    own = ", which is the pod itself: start launchers with an EVENFLOW_API_URL that pods reach" if _is_own(url) else ""
    return f" at {url}{own}"


def _is_own(url: str) -> bool:
    return all(is_loopback(host_of(each)) for each in url.split(","))


# -- reading -----------------------------------------------------------------------------------------------------------


def _statuses(pod: Pod) -> list[Mapping[str, Any]]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _is_try_that_runs(status: Mapping[str, Any]) -> bool:
    return status["name"] == TRY_CONTAINER and "running" in (status.get("state") or {})


def _condition(pod: Pod, kind: str, value: str) -> Mapping[str, Any] | None:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind and each["status"] == value), None)


def _reason_of(pod: Pod, kind: str) -> str:
    return str((_condition(pod, kind, "False") or {}).get("reason", ""))


def _node(pod: Pod) -> str:
    name = pod["spec"].get("nodeName")
    return f" on node {name}" if name else ""


def _words(text: str) -> str:
    return " ".join(str(text).split()).rstrip(".")


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
