"""The cluster for tests behaves as a real one where Evenflow depends on it: only so do its tests prove something."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from typing import Any

import psutil
import pytest

from tests.kubernetes.cluster import Cluster, kubernetes
from tests.kubernetes.controllers import COST, deletion_key
from tests.kubernetes.store import DEPLOYMENT, POD, QUOTA
from tests.waiting import wait_until

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


def pod(name: str, *command: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "base", "image": "busybox", "command": list(command or ("sleep", "60"))}]
    return {
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"restartPolicy": "Never", "containers": containers, **spec},
    }


def deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "w"}
    spec = {"containers": [{"name": "w", "image": "worker", "command": ["sleep", "60"]}]}
    return {
        "metadata": {"name": "w"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def ask(cluster: Cluster, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, Any]:
    connection = HTTPConnection("127.0.0.1", cluster.port, timeout=30)
    connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    is_json = (answer.getheader("Content-Type") or "").startswith("application/json")
    return answer.status, json.loads(text) if is_json else text.decode()


@contextmanager
def watching(cluster: Cluster, path: str) -> Iterator[HTTPResponse]:
    connection = HTTPConnection("127.0.0.1", cluster.port, timeout=30)
    connection.request("GET", path)
    yield connection.getresponse()
    connection.close()


def event(answer: HTTPResponse, *kinds: str) -> dict[str, Any]:
    """The next of these kinds."""
    while True:
        said: dict[str, Any] = json.loads(answer.readline())
        if not kinds or said["type"] in kinds:
            return said


def phase(cluster: Cluster, name: str) -> str:
    found = cluster.pod(name)
    return found["status"]["phase"] if found else "gone"


# -- objects and watches -------------------------------------------------------------------------------------------------


def test_names_are_taken_once_and_stale_writes_are_refused(cluster: Cluster) -> None:
    """R-DQ10 rests on it: of two creations of one name the second is a conflict, and an old version writes nothing."""
    status, made = ask(cluster, "POST", PODS, pod("a"))
    assert status == 201
    assert ask(cluster, "POST", PODS, pod("a"))[1]["reason"] == "AlreadyExists"
    wait_until(lambda: phase(cluster, "a") == "Running")
    made["metadata"]["labels"] = {"app": "y"}
    assert ask(cluster, "PUT", f"{PODS}/a", made)[1]["reason"] == "Conflict"
    assert ask(cluster, "DELETE", f"{PODS}/a", {"preconditions": {"uid": "other"}})[0] == 409
    assert ask(cluster, "POST", PODS, pod("Not-A-Name"))[0] == 422


def test_a_watch_has_no_gap_and_says_when_it_would(cluster: Cluster) -> None:
    """From the version of a list every change comes once; bookmarks move on; behind a forgotten version comes 410, also midway."""
    _, listed = ask(cluster, "GET", PODS)
    version = listed["metadata"]["resourceVersion"]
    ask(cluster, "POST", PODS, pod("a"))
    with watching(cluster, f"{PODS}?watch=1&allowWatchBookmarks=true&resourceVersion={version}&labelSelector=app%3Dx") as answer:
        assert event(answer)["type"] == "ADDED"
        wait_until(lambda: phase(cluster, "a") == "Running")
        assert int(event(answer, "BOOKMARK")["object"]["metadata"]["resourceVersion"]) > int(version)
        ask(cluster, "PATCH", f"{PODS}/a", {"metadata": {"labels": {"app": "y"}}}, MERGE)
        assert event(answer, "DELETED")["object"]["metadata"]["name"] == "a"  # it does not fit any more
    cluster.forget_history()
    with watching(cluster, f"{PODS}?watch=1&resourceVersion={version}") as answer:
        gone = event(answer)
        assert (gone["type"], gone["object"]["code"]) == ("ERROR", 410)


def test_apply_knows_whose_a_field_is(cluster: Cluster) -> None:
    """A field of another manager is a conflict, but by force; what a manager says no more goes."""
    cluster.create(DEPLOYMENT, deployment(0))
    path = f"{DEPLOYMENTS}/w?fieldManager="
    mine = {"metadata": {"annotations": {"a": "1", "b": "1"}}}
    assert ask(cluster, "PATCH", f"{path}one", mine, APPLY)[0] == 200
    assert ask(cluster, "PATCH", f"{path}two", {"metadata": {"annotations": {"a": "2"}}}, APPLY)[1]["reason"] == "Conflict"
    assert ask(cluster, "PATCH", f"{path}two&force=true", {"metadata": {"annotations": {"a": "2"}}}, APPLY)[0] == 200
    assert ask(cluster, "PATCH", f"{path}one", {"metadata": {"annotations": {}}}, APPLY)[1]["metadata"]["annotations"] == {"a": "2"}


def test_a_quota_refuses(cluster: Cluster) -> None:
    cluster.create(QUOTA, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
    assert ask(cluster, "POST", PODS, pod("a"))[0] == 201
    status, said = ask(cluster, "POST", PODS, pod("b"))
    assert (status, said["reason"]) == (403, "Forbidden")
    assert 'pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1' in said["message"]


def test_faults_as_asked_for(cluster: Cluster) -> None:
    """An answer that is lost after the pod was made leaves the pod."""
    cluster.fail("POST", "/pods$", status=429, retry_after_s=1)
    cluster.fail("POST", "/pods$", cut="after")
    assert ask(cluster, "POST", PODS, pod("a"))[0] == 429
    with pytest.raises(RemoteDisconnected):
        ask(cluster, "POST", PODS, pod("a"))
    assert ask(cluster, "POST", PODS, pod("a"))[1]["reason"] == "AlreadyExists"


# -- pods ------------------------------------------------------------------------------------------------------------------


def test_a_pod_runs_and_its_log_is_there(cluster: Cluster) -> None:
    """Its end, its exit code, and ranges of its log by time and size."""
    ask(cluster, "POST", PODS, pod("a", "sh", "-c", "echo one; echo two; exit 3"))
    found = cluster.wait_for_pod(lambda pod: pod["status"]["phase"] == "Failed")
    assert found["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert ask(cluster, "GET", f"{PODS}/a/log")[1] == "one\ntwo\n"
    assert ask(cluster, "GET", f"{PODS}/a/log?tailLines=1")[1] == "two\n"
    assert ask(cluster, "GET", f"{PODS}/a/log?limitBytes=5")[1] == "one\nt"
    assert ask(cluster, "GET", f"{PODS}/a/log?sinceTime=2999-01-01T00:00:00Z")[1] == ""
    assert ask(cluster, "GET", f"{PODS}/a/log?timestamps=true")[1].split()[1] == "one"


def test_a_program_that_is_not_in_the_image_is_told(cluster: Cluster) -> None:
    """A pod of an image without Evenflow has failed, with the name of what was not found."""
    ask(cluster, "POST", PODS, pod("p", "no-such-program"))
    wait_until(lambda: ask(cluster, "GET", f"{PODS}/p")[1]["status"]["phase"] == "Failed")
    (status,) = ask(cluster, "GET", f"{PODS}/p")[1]["status"]["containerStatuses"]
    assert status["state"]["terminated"]["reason"] == "StartError"
    assert "no-such-program" in status["state"]["terminated"]["message"]
    assert ask(cluster, "DELETE", f"{PODS}/p")[0] == 200
    wait_until(lambda: ask(cluster, "GET", f"{PODS}/p")[0] == 404)


def test_a_log_is_followed_to_its_end(cluster: Cluster, tmp_path: Any) -> None:
    ask(cluster, "POST", PODS, pod("a", "sh", "-c", f"echo one; while ! test -e {tmp_path}/go; do sleep 0.02; done; echo two"))
    wait_until(lambda: phase(cluster, "a") == "Running")
    with watching(cluster, f"{PODS}/a/log?follow=true") as answer:
        assert answer.readline() == b"one\n"
        (tmp_path / "go").touch()
        assert answer.read() == b"two\n"


def test_deletion_gives_grace(cluster: Cluster, tmp_path: Any) -> None:
    """TERM first; the object is there, marked, until the process has ended; who takes no notice is killed."""
    ask(
        cluster,
        "POST",
        PODS,
        pod("a", "sh", "-c", f"trap 'touch {tmp_path}/told; exit 0' TERM; echo up; while :; do sleep 0.02; done"),
    )
    ask(cluster, "POST", PODS, pod("b", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.02; done"))
    for name in "ab":
        wait_until(lambda name=name: ask(cluster, "GET", f"{PODS}/{name}/log")[1] == "up\n")
    ask(cluster, "DELETE", f"{PODS}/a", {"gracePeriodSeconds": 30})
    ask(cluster, "DELETE", f"{PODS}/b", {"gracePeriodSeconds": 1})
    assert "deletionTimestamp" in (cluster.pod("b") or {})["metadata"]
    wait_until(lambda: not cluster.objects())
    assert (tmp_path / "told").exists()


def test_a_pod_that_has_ended_gets_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pid may be of another process by then: of a browser of another test, for example."""
    struck: list[int] = []
    with kubernetes() as cluster:
        ask(cluster, "POST", PODS, pod("ended", "true"))
        wait_until(lambda: phase(cluster, "ended") == "Succeeded", "its end")
        pid = cluster.container(cluster.objects()[0]).pid
        monkeypatch.setattr(os, "killpg", lambda group, _: struck.append(group))
        ask(cluster, "DELETE", f"{PODS}/ended?gracePeriodSeconds=0")
        ask(cluster, "POST", PODS, pod("next", "true"))
        wait_until(lambda: phase(cluster, "next") == "Succeeded", "turns of the controllers")
    assert pid not in struck


def test_what_a_container_leaves_ends_with_it(cluster: Cluster) -> None:
    ask(cluster, "POST", PODS, pod("leaves", "sh", "-c", "sleep 60 & echo $!"))
    wait_until(lambda: phase(cluster, "leaves") == "Succeeded", "its end")
    left = int(ask(cluster, "GET", f"{PODS}/leaves/log")[1])
    wait_until(lambda: not psutil.pid_exists(left), "the end of what it has left")


def test_a_sidecar_ends_after_the_others(cluster: Cluster) -> None:
    """It starts before them, shares their volume, and gets TERM when they have ended."""
    ends = "trap 'cat /share/result; exit 0' TERM; touch /share/up; while :; do sleep 0.02; done"
    mount = {"volumeMounts": [{"name": "share", "mountPath": "/share"}]}
    sidecar = {"name": "s", "image": "busybox", "restartPolicy": "Always", "command": ["sh", "-c", ends], **mount}
    works = "while ! test -e /share/up; do sleep 0.02; done; echo 42 > /share/result"
    made = pod("a", "sh", "-c", works, initContainers=[sidecar], volumes=[{"name": "share", "emptyDir": {}}])
    made["spec"]["containers"][0] |= mount
    ask(cluster, "POST", PODS, made)
    wait_until(lambda: phase(cluster, "a") == "Succeeded")
    assert ask(cluster, "GET", f"{PODS}/a/log?container=s")[1] == "42\n"


def test_why_pods_fail(cluster: Cluster) -> None:
    """Images, memory by a real limit, eviction by the node and by the API, each in its own words."""
    cluster.images.missing.add("nothing:1")
    small = pod("small", "python3", "-c", "x = b'x' * 2**28; input()")
    small["spec"]["containers"][0]["resources"] = {"limits": {"memory": "64Mi"}}
    unknown = pod("unknown")
    unknown["spec"]["containers"][0]["image"] = "nothing:1"
    for each in (small, unknown, pod("pressed"), pod("drained")):
        assert ask(cluster, "POST", PODS, each)[0] == 201
    end = cluster.wait_for_pod(lambda pod: pod["metadata"]["name"] == "small" and pod["status"]["phase"] == "Failed")
    assert end["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"
    cluster.wait_for_pod(
        lambda pod: (
            pod["status"].get("containerStatuses", [{}])[0].get("state", {}).get("waiting", {}).get("reason") == "ImagePullBackOff"
        )
    )
    wait_until(lambda: phase(cluster, "pressed") == "Running" and phase(cluster, "drained") == "Running")
    cluster.evict_by_node(cluster.pod("pressed") or {})
    cluster.wait_for_pod(lambda pod: pod["status"].get("reason") == "Evicted")
    cluster.api.disruptions_allowed = False
    assert ask(cluster, "POST", f"{PODS}/drained/eviction", {})[0] == 429
    cluster.api.disruptions_allowed = True
    assert ask(cluster, "POST", f"{PODS}/drained/eviction", {})[0] == 201
    wait_until(lambda: phase(cluster, "drained") == "gone")


def test_a_node_is_lost(cluster: Cluster) -> None:
    """Its pods stay, marked, and nobody has their logs, until the node is removed."""
    ask(cluster, "POST", PODS, pod("a"))
    found = cluster.wait_for_pod(lambda pod: pod["status"]["phase"] == "Running")
    node = found["spec"]["nodeName"]
    cluster.lose_node(node)
    assert ask(cluster, "GET", f"{PODS}/a/log")[0] == 500
    cluster.evict_from_lost(node)
    assert "deletionTimestamp" in (cluster.pod("a") or {})["metadata"]
    cluster.remove_node(node)
    assert cluster.objects() == []


def test_priority_makes_room() -> None:
    with kubernetes("node-a", pods_per_node=1) as cluster:
        ask(cluster, "POST", PODS, pod("low"))
        wait_until(lambda: phase(cluster, "low") == "Running")
        ask(cluster, "POST", PODS, pod("high", priority=10))
        wait_until(lambda: phase(cluster, "high") == "Running")
        assert phase(cluster, "low") == "gone"


# -- ReplicaSets -----------------------------------------------------------------------------------------------------------


def test_a_deployment_is_kept_at_its_replicas(cluster: Cluster) -> None:
    """Up, a pod that ends is replaced, and down by the cost that its pods say."""
    cluster.create(DEPLOYMENT, deployment(3))
    wait_until(lambda: [phase(cluster, each["metadata"]["name"]) for each in cluster.objects()] == ["Running"] * 3)
    names = sorted(each["metadata"]["name"] for each in cluster.objects())
    for name, cost in zip(names, ("5", "-3", "7"), strict=True):
        ask(cluster, "PATCH", f"{PODS}/{name}", {"metadata": {"annotations": {COST: cost}}}, MERGE)
    assert ask(cluster, "PATCH", f"{DEPLOYMENTS}/w/scale", {"spec": {"replicas": 2}}, MERGE)[0] == 200
    wait_until(lambda: sorted(each["metadata"]["name"] for each in cluster.objects()) == [names[0], names[2]])
    ask(cluster, "DELETE", f"{PODS}/{names[0]}?gracePeriodSeconds=0")
    wait_until(lambda: len({each["metadata"]["name"] for each in cluster.objects()} - {names[0]}) == 2)
    ask(cluster, "DELETE", f"{DEPLOYMENTS}/w")
    wait_until(lambda: cluster.objects(POD) == [])


def test_who_goes_first() -> None:
    """R-AS4: in this order a ReplicaSet deletes, each rule only where all before it see no difference."""
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def key(
        *,
        node: str | None = "n",
        phase: str = "Running",
        ready_s: int | None = 9_000,
        cost: int = 0,
        rank: int = 1,
        age_s: int = 9_000,
        restarts: int = 0,
    ) -> tuple[Any, ...]:
        since = None if ready_s is None else (now - timedelta(seconds=ready_s)).isoformat()
        condition = {"type": "Ready", "status": str(since is not None), "lastTransitionTime": since}
        return deletion_key(
            {
                "metadata": {
                    "annotations": {COST: str(cost)},
                    "creationTimestamp": (now - timedelta(seconds=age_s)).isoformat(),
                    "uid": "u",
                },
                "spec": {"nodeName": node},
                "status": {"phase": phase, "conditions": [condition], "containerStatuses": [{"restartCount": restarts}]},
            },
            rank,
            now,
        )

    ordered = [
        key(node=None, cost=99),
        key(phase="Pending", ready_s=None, cost=98),
        key(ready_s=None, cost=97),
        key(cost=-2, rank=1),
        key(cost=-1, rank=2),
        key(rank=3, ready_s=9_000),
        key(ready_s=10, restarts=0),
        key(restarts=4, age_s=9_000),
        key(age_s=10),
        key(),
    ]
    mixed = random.Random(7).sample(ordered, len(ordered))
    assert sorted(mixed) == ordered
    assert key(ready_s=5_000) == key(ready_s=8_000)  # of one power of two: as good as equal
