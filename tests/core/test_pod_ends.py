"""Why pods of tries do not run, or have ended: told apart, in words, with what follows from each (R-EX2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow.core.pods import ends
from evenflow.core.pods.ends import RULES, Cause, CauseRule, Policy, WaitingPod

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(
    phase: str = "Running",
    state: dict[str, Any] | None = None,
    *,
    node: str | None = "n1",
    conditions: list[dict[str, str]] | None = None,
    leaving: bool = False,
    limits: dict[str, str] | None = None,
    **status: str,
) -> dict[str, Any]:
    placed = [] if node is None else [{"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(50)}]
    meta: dict[str, Any] = {"name": "p", "uid": "u", "creationTimestamp": ago(100)}
    return {
        "metadata": meta | ({"deletionTimestamp": ago(0)} if leaving else {}),
        "spec": {"containers": [{"name": "try", "resources": {"limits": limits or {}}}]} | ({"nodeName": node} if node else {}),
        "status": {
            "phase": phase,
            "conditions": [*placed, *(conditions or [])],
            "containerStatuses": [{"name": "try", "image": "i:1", "state": state}] if state else [],
            **status,
        },
    }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def terminated(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, "finishedAt": ago(10)}}


def disrupted(reason: str, message: str = "") -> list[dict[str, str]]:
    return [{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}]


RUNNING: dict[str, Any] = {"running": {"startedAt": ago(40)}}
UNSCHEDULABLE = [
    {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/2 nodes are available.",
        "lastTransitionTime": ago(90),
    }
]


def beside(found: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """With a side-car in this state."""
    found["spec"]["containers"].append({"name": "proxy"})
    found["status"]["containerStatuses"].append({"name": "proxy", "state": state})
    return found


@pytest.mark.parametrize(
    ("found", "cause", "words", "certain"),
    [
        (
            pod("Pending", waiting("ImagePullBackOff", 'Back-off pulling image "i:1"')),
            "image",
            "Image 'i:1' cannot be pulled on node n1: Back-off",
            False,
        ),
        (pod("Pending", waiting("ErrImagePull")), "image", "cannot be pulled on node n1: ErrImagePull.", False),
        (pod("Pending", waiting("InvalidImageName")), "image", "InvalidImageName", False),
        (
            pod("Pending", waiting("CreateContainerConfigError", 'configmap "x" not found')),
            "template",
            'configmap "x" not found.',
            False,
        ),
        (
            pod("Pending", node=None, conditions=UNSCHEDULABLE),
            "unschedulable",
            "No node takes the pod: 0/2 nodes are available.",
            False,
        ),
        (pod("Pending", waiting("ContainerCreating")), "unschedulable", "The pod is not started on node n1.", False),
        (
            pod("Failed", terminated(137, "OOMKilled"), limits={"memory": "512Mi"}),
            "out_of_memory",
            "killed at its limit of 512Mi on node n1.",
            True,
        ),
        (pod("Failed", terminated(137, "OOMKilled")), "out_of_memory", "at its limit, which is that of its node on node n1.", True),
        (pod("Running", terminated(137, "OOMKilled"), limits={"memory": "1Gi"}), "out_of_memory", "1Gi", True),
        (beside(pod("Running", terminated(137, "OOMKilled")), RUNNING), "out_of_memory", "'try' was killed", True),
        (beside(pod("Running", RUNNING), terminated(137, "OOMKilled")), "out_of_memory", "'proxy' was killed", False),
        (pod("Pending", waiting("ContainerCreating"), leaving=True), "deleted", "Somebody deleted the pod on node n1.", False),
        (
            pod("Failed", terminated(137), reason="Evicted", message="The node was low on resource: memory."),
            "evicted",
            "evicted on node n1: The node was low on resource: memory.",
            True,
        ),
        (pod("Failed", terminated(143), conditions=disrupted("EvictionByEvictionAPI")), "evicted", "somebody evicted it", True),
        (
            pod("Failed", terminated(143), conditions=disrupted("TerminationByKubelet", "shutdown")),
            "evicted",
            "its node ended it (shutdown).",
            True,
        ),
        (
            pod("Running", RUNNING, conditions=disrupted("PreemptionByScheduler"), leaving=True),
            "preempted",
            "higher priority",
            False,
        ),
        (pod("Running", RUNNING, conditions=disrupted("DeletionByTaintManager"), leaving=True), "node_lost", "silent", False),
        (pod("Failed", terminated(137), conditions=disrupted("DeletionByPodGC")), "node_lost", "its node is gone.", False),
        (pod("Running", RUNNING, reason="NodeLost"), "node_lost", "lost with its node on node n1", False),
        (
            pod("Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu"),
            "evicted",
            "did not take the pod on node n1: Node",
            True,
        ),
        (pod("Running", RUNNING, leaving=True), "deleted", "Somebody deleted the pod on node n1.", False),
        (pod("Failed", terminated(143), leaving=True), "deleted", "Somebody deleted", True),
        (pod("Failed", reason="DeadlineExceeded"), "exited", "activeDeadlineSeconds", True),
        (
            pod("Failed", terminated(127, "StartError", "exec: evenflow: not found")),
            "template",
            "cannot be started on node n1: exec: evenflow: not found.",
            True,
        ),
        (
            pod("Failed", terminated(2)),
            "exited",
            "Container 'try' ended with exit code 2 on node n1, and the try had not ended.",
            True,
        ),
        (pod("Failed", terminated(137)), "exited", "was killed by signal 9", True),
        (pod("Succeeded", terminated(0, "Completed")), "exited", "The pod ended on node n1, and its try had not.", True),
        (pod("Running", RUNNING), None, "", False),
    ],
)
def test_each_cause_is_told_in_words(found: dict[str, Any], cause: str | None, words: str, certain: bool) -> None:
    """R-EX2: by what the API says of a pod; ``certain`` only where no process of it can run any more."""
    trouble = ends.find_trouble(found)
    if cause is None:
        assert trouble is None
        return
    assert trouble is not None
    assert (str(trouble.cause), trouble.certain) == (cause, certain)
    assert words in trouble.reason
    assert trouble.reason.endswith(".")
    assert ".." not in trouble.reason


@pytest.mark.parametrize(
    ("found", "cause", "certain"),
    [
        (pod("Running", RUNNING), "deleted", False),
        (pod("Pending", waiting("ContainerCreating")), "deleted", False),
        (pod("Pending", node=None), "deleted", True),
        (pod("Running", RUNNING, conditions=[{"type": "Ready", "status": "False", "reason": "NodeNotReady"}]), "node_lost", False),
        (pod("Running", terminated(143), leaving=True), "deleted", True),
        (pod("Running", terminated(143), conditions=disrupted("PreemptionByScheduler"), leaving=True), "preempted", True),
    ],
)
def test_a_pod_that_is_gone_went_for_a_reason(found: dict[str, Any], cause: str, certain: bool) -> None:
    """R-CS7: of one whose processes may run yet it is not certain: its worker's lease decides."""
    end = ends.find_end(found)
    assert (str(end.cause), end.certain) == (cause, certain)


def test_every_cause_has_a_rule_and_a_meaning() -> None:
    assert RULES.keys() == set(Cause)
    assert all(rule.meaning.endswith(".") for rule in RULES.values())


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("cause", list(Cause))
def test_a_policy_counts_when_the_patience_is_over(cause: Cause, policy: Policy) -> None:
    """Whatever cause and policy; what says no time when it began is at once."""
    rules = {**RULES, cause: CauseRule(policy, 60.0, "")}
    young = ends.PodTrouble(cause, "x", since=NOW - timedelta(seconds=59))
    old = ends.PodTrouble(cause, "x", since=NOW - timedelta(seconds=60))
    assert ends.judge(young, rules, NOW) is None
    assert ends.judge(old, rules, NOW) is policy
    assert ends.judge(ends.PodTrouble(cause, "x"), rules, NOW) is policy


def test_an_image_that_can_never_be_pulled_is_told_at_once() -> None:
    hopeless, hopeful = (ends.find_trouble(pod("Pending", waiting(reason))) for reason in ("InvalidImageName", "ErrImagePull"))
    assert hopeless is not None
    assert hopeful is not None
    assert ends.judge(hopeless, RULES, NOW) is Policy.FAIL
    assert ends.judge(hopeful, RULES, NOW) is None


@pytest.mark.parametrize(
    ("status", "message", "cause"),
    [
        (403, 'pods "a" is forbidden: exceeded quota: q, requested: pods=1', Cause.QUOTA),
        (403, 'pods is forbidden: User "x" cannot create resource "pods"', Cause.REFUSED),
        (400, 'admission webhook "policy.example" denied the request: no latest tags', Cause.REFUSED),
        (422, 'Pod "a" is invalid: spec.containers[0].image: Required value', Cause.TEMPLATE),
        (404, 'namespaces "team" not found', Cause.TEMPLATE),
        (401, "Unauthorized", None),
        (500, "etcdserver: request timed out", None),
        (429, "too many requests", None),
        (409, "the object is being modified", None),
    ],
)
def test_why_a_cluster_does_not_make_a_pod(status: int, message: str, cause: Cause | None) -> None:
    """R-EX2: quota is waited for, a wrong pod fails, and what is the cluster's trouble is tried again."""
    assert ends.refusal_cause(status, "", message) is cause
    if cause is not None:
        assert message in ends.refusal_reason(cause, message)


def test_silence_is_of_a_pod_that_runs() -> None:
    silent = ends.silence_of(pod("Running", {"running": {"startedAt": ago(400)}}))
    assert silent is not None
    assert ends.judge(silent, RULES, NOW) is Policy.ELSEWHERE
    assert ends.silence_of(pod("Pending")) is None
    assert ends.silence_of(pod("Running", RUNNING, leaving=True)) is None


def test_silence_begins_when_the_container_of_the_try_does() -> None:
    """A pod's startTime is when its node took it: before images are pulled, and before its init containers have run. Its worker is
    not silent before it is there, however long they take.
    """
    pulled = ends.silence_of(pod("Running", RUNNING, startTime=ago(1_000)))
    assert pulled is not None
    assert ends.judge(pulled, RULES, NOW) is None
    for state in (waiting("ContainerCreating"), terminated(0, "Completed")):
        assert ends.silence_of(beside(pod("Running", state, startTime=ago(1_000)), RUNNING)) is None
    assert ends.silence_of(pod("Running", startTime=ago(1_000))) is None, "its node has told of no container so far"


def test_what_people_are_told_of_a_pod_whose_try_is_not_claimed() -> None:
    """R-ST10: what it says of itself, and what to type; of a new one nothing, and one that waits for long is trouble."""
    refused = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}
    waits = ends.waiting_of(pod("Pending", node=None, conditions=[refused]), NOW)
    assert waits == WaitingPod("p", "No node takes the pod: 0/2 nodes are available.", "kubectl describe pod p", lasts=True)
    pulling = ends.waiting_of(pod("Pending", waiting("ImagePullBackOff", "not found")), NOW)
    assert pulling is not None
    assert pulling.says == "Image 'i:1' cannot be pulled on node n1: not found."
    silent = pod("Running", RUNNING)
    silent["metadata"] |= {"creationTimestamp": ago(20), "namespace": "team"}
    told = ends.waiting_of(silent, NOW)
    assert told is not None
    assert (told.look, told.lasts) == ("kubectl logs p --namespace team", False)
    silent["metadata"]["creationTimestamp"] = ago(1)
    assert ends.waiting_of(silent, NOW) is None
    assert ends.waiting_of(pod("Running", RUNNING, leaving=True), NOW) is None


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            "http://127.0.0.1:8974",
            "not reach the API at http://127.0.0.1:8974, which is the pod itself: start launchers with an EV",
        ),
        ("https://evenflow-api:8974", "it may not reach the API at https://evenflow-api:8974, or the token may be refused there."),
    ],
)
def test_a_silent_pod_names_the_address_that_it_was_given(url: str, said: str) -> None:
    silent = pod("Running", RUNNING)
    silent["spec"]["containers"][0]["env"] = [{"name": "EVENFLOW_API_URL", "value": url}]
    trouble = ends.silence_of(silent)
    assert trouble is not None
    assert said in trouble.reason


def test_who_gave_its_try_back_and_for_how_long_a_pod_has_ended() -> None:
    assert ends.gave_back(pod("Failed", terminated(75)))
    assert not ends.gave_back(pod("Failed", terminated(1)))
    assert ends.finished_s_ago(pod("Failed", terminated(1)), NOW) == 10
    assert ends.finished_s_ago(pod("Failed"), NOW) == 100
