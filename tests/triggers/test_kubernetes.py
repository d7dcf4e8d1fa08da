"""Waiting for a pod: what its API object means, against a server that speaks as the API of Kubernetes does."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from evenflow.triggers import kubernetes
from evenflow.triggers.kubernetes import KubernetesPodTrigger, judge
from tests.triggers.conftest import Asked, Certificate, Server, serving
from tests.triggers.firing import ControlPlane, event_of

TOKEN = "eyJhbGciOi-not-a-real-token"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def pod(phase: str, *containers: dict[str, Any], meta: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    """As the API shows it."""
    return {
        "kind": "Pod",
        "metadata": {"name": "job-1", "uid": "u-1", "creationTimestamp": (NOW - timedelta(minutes=5)).isoformat(), **(meta or {})},
        "spec": {"nodeName": "node-a"},
        "status": {"phase": phase, "containerStatuses": list(containers), **status},
    }


def ended(code: int, reason: str = "", name: str = "base") -> dict[str, Any]:
    return {"name": name, "state": {"terminated": {"exitCode": code, "reason": reason or ("Completed" if code == 0 else "Error")}}}


def going(name: str = "base") -> dict[str, Any]:
    return {"name": name, "state": {"running": {}}}


def stuck(reason: str, message: str = "", name: str = "base") -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}}


DISRUPTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}


@pytest.mark.parametrize(
    ("seen", "status", "said"),
    [
        (pod("Pending"), None, ""),
        (pod("Running", going()), None, ""),
        (pod("Unknown", going()), None, ""),
        (pod("Succeeded", ended(0)), "success", ""),
        (pod("Failed", ended(3)), "failed", "The pod failed: its container 'base' ended with exit code 3."),
        (pod("Failed", ended(0), ended(137, "OOMKilled", "b")), "failed", "its container 'b' ended with exit code 137, OOMKilled."),
        (pod("Failed", reason="DeadlineExceeded", message="Too long."), "failed", "The pod failed (DeadlineExceeded). Too long."),
        (pod("Failed", reason="Evicted", message="Low on memory."), "evicted", "The pod was evicted (Evicted). Low on memory."),
        (pod("Failed", ended(143), conditions=[DISRUPTED]), "evicted", "The pod was evicted (EvictionByEvictionAPI)."),
        (pod("Running", going(), meta={"deletionTimestamp": "x"}), "deleted", "The pod is being deleted before it ended."),
        (
            pod("Running", going(), meta={"deletionTimestamp": "x"}, conditions=[DISRUPTED]),
            "evicted",
            "The pod is being evicted (EvictionByEvictionAPI) before it ended.",
        ),
        (pod("Succeeded", ended(0), meta={"deletionTimestamp": "x"}), "success", ""),
        (pod("Pending", stuck("InvalidImageName", "No such name.")), "not_started", "300 s: InvalidImageName. No such name."),
        (pod("Pending", stuck("ImagePullBackOff")), None, ""),
    ],
)
def test_what_a_pod_means(seen: dict[str, Any], status: str | None, said: str) -> None:
    event = judge(seen, None, None, NOW, "The pod")
    assert (event or {}).get("status") == status
    assert said in (event or {}).get("message", "")


def test_facts() -> None:
    event = judge(pod("Failed", ended(137, "OOMKilled")), None, None, NOW, "The pod")
    assert event is not None
    del event["message"]
    assert event == {
        "status": "failed",
        "phase": "Failed",
        "node": "node-a",
        "container": "base",
        "exit_code": 137,
        "reason": "OOMKilled",
    }


def test_one_container_among_sidecars() -> None:
    """Its end decides, whatever the others do."""
    done, failed = pod("Running", ended(0), going("proxy")), pod("Running", ended(2), going("proxy"))
    assert judge(done, None, None, NOW, "x") is None
    assert (judge(done, "base", None, NOW, "x") or {})["status"] == "success"
    assert (judge(failed, "base", None, NOW, "x") or {})["status"] == "failed"
    assert judge(failed, "proxy", None, NOW, "x") is None


def test_startup_timeout() -> None:
    unplaced = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available."}
    waits = pod("Pending", conditions=[unplaced])
    assert judge(waits, None, 301, NOW, "The pod") is None
    event = judge(waits, None, 299, NOW, "The pod")
    assert event is not None
    assert event["status"] == "not_started"
    assert event["message"] == "The pod has not started after 300 s: Unschedulable: 0/3 nodes are available.."
    assert judge(pod("Running", going()), None, 299, NOW, "The pod") is None


# -- against an API server ---------------------------------------------------------------------------------------------


def plane_of(server: Server) -> ControlPlane:
    uri = f"kubernetes://127.0.0.1:{server.port}/?tls=off&token={TOKEN}&namespace=jobs"
    return ControlPlane({"kubernetes_default": uri})


async def fired(server: Server, *replies: tuple[int, Any], **arguments: Any) -> dict[str, Any]:
    server.replies = list(replies)
    return await event_of(KubernetesPodTrigger(**{"pod_name": "job-1", "poll_interval": 0.1, **arguments}), plane_of(server))


async def test_until_it_has_ended(server: Server) -> None:
    event = await fired(server, (200, pod("Pending")), (503, {}), (200, pod("Running", going())), (200, pod("Succeeded", ended(0))))
    assert (event["status"], event["exit_code"]) == ("success", 0)
    assert {asked.path for asked in server.asked} == {"/api/v1/namespaces/jobs/pods/job-1?resourceVersion=0"}
    assert {asked.headers["Authorization"] for asked in server.asked} == {f"Bearer {TOKEN}"}
    await fired(server, (200, pod("Succeeded", ended(0))), namespace="other")
    assert server.asked[-1].path.startswith("/api/v1/namespaces/other/")


async def test_a_pod_starts_in_time_by_the_clock_of_its_cluster(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-DQ10: that clock stamps the pod, and may differ from the triggerer's by any time."""
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda *_: format_datetime(NOW, usegmt=True))
    starts = (200, pod("Pending")), (200, pod("Succeeded", ended(0)))
    assert (await fired(server, *starts, startup_timeout=301))["status"] == "success"
    event = await fired(server, *starts, startup_timeout=300)
    assert (event["status"], "after 300 s" in event["message"]) == ("not_started", True)


async def test_deleted_and_made_again(server: Server) -> None:
    event = await fired(server, (200, pod("Running", going())), (404, {}))
    assert event["status"] == "deleted"
    assert event["message"] == "The pod jobs/job-1 does not exist any more: it was deleted before it was seen to end."
    event = await fired(server, (200, pod("Running", going(), meta={"uid": "u-2"})), uid="u-1")
    assert event["status"] == "deleted"
    assert "is another one by now" in event["message"]


async def test_not_allowed(server: Server) -> None:
    event = await fired(server, (403, {"message": "forbidden"}))
    assert event["status"] == "failed"
    assert "refused to show the pod jobs/job-1 with status 403. Let its user or service account get pods there" in event["message"]
    assert TOKEN not in event["message"]


async def test_a_certificate_authority(certificate: Certificate) -> None:
    """Of the cluster's own, as clusters have it; without it nothing is said to whoever answers."""
    asked: list[Asked] = []

    def reply(question: Asked) -> tuple[int, Any]:
        asked.append(question)
        return 200, pod("Succeeded", ended(0))

    with serving(reply, certificate) as port:
        uri = f"kubernetes://127.0.0.1:{port}/?token={TOKEN}"
        event = await event_of(KubernetesPodTrigger(pod_name="p"), ControlPlane({"kubernetes_default": uri}))
        assert "not trusted" in event["message"]
        assert asked == []
        trusted = ControlPlane({"kubernetes_default": f"{uri}&ca_file={certificate.file}"})
        assert (await event_of(KubernetesPodTrigger(pod_name="p"), trusted))["status"] == "success"
    missing = ControlPlane({"kubernetes_default": f"{uri}&ca_file=/nowhere/ca.crt"})
    event = await event_of(KubernetesPodTrigger(pod_name="p"), missing)
    assert "The certificate authority /nowhere/ca.crt of the Kubernetes API server cannot be read" in event["message"]


async def test_something_else_than_an_api_server(server: Server) -> None:
    event = await fired(server, (200, ["hello"]))
    assert event["message"] == (
        "The Kubernetes API server of connection 'kubernetes_default' answered with no pod. Let the connection name the API "
        "server of a cluster."
    )


async def test_a_container_that_is_not_there(server: Server) -> None:
    event = await fired(server, (200, pod("Running", going())), container="main")
    assert event["message"] == "The pod jobs/job-1 has no container 'main'; it has base."


async def test_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    event = await event_of(KubernetesPodTrigger(pod_name="p"))
    assert "Type: evenflow connections set kubernetes_default" in event["message"]
    event = await event_of(KubernetesPodTrigger(pod_name="p", kubernetes_conn_id="c"), ControlPlane({"c": "http://x"}))
    assert "Write kubernetes://HOST:PORT/?token=...&ca_file=/path/ca.crt" in event["message"]


def test_the_service_account_of_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its token is read anew each time, for it is replaced while the pod lives."""
    contexts: list[str] = []

    def trusting(cafile: str) -> ssl.SSLContext:
        contexts.append(cafile)
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    monkeypatch.setattr(ssl, "create_default_context", trusting)
    for name, text in {"token": "one\n", "namespace": "team", "ca.crt": "x"}.items():
        (tmp_path / name).write_text(text)
    environ = {"KUBERNETES_SERVICE_HOST": "cluster.internal", "KUBERNETES_SERVICE_PORT": "6443"}
    cluster = kubernetes._own_cluster(tmp_path, environ)
    assert (cluster.url, cluster.namespace, cluster.headers) == (
        "https://cluster.internal:6443",
        "team",
        {"Authorization": "Bearer one"},
    )
    (tmp_path / "token").write_text("two")
    assert kubernetes._own_cluster(tmp_path, environ).headers == {"Authorization": "Bearer two"}
    assert contexts == [str(tmp_path / "ca.crt")], "the certificates are read once"
