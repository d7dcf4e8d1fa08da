"""Waiting for a Kubernetes pod, by the answers of the API server. The API is plain HTTP, so no client library is needed."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evenflow.core.hosts import in_url
from evenflow.errors import LookRefused
from evenflow.sdk.secrets.connections import Connection
from evenflow.sdk.triggers import BaseTrigger, TriggerEvent
from evenflow.triggers import limits, web
from evenflow.triggers.polling import FAILED, SUCCESS, Payload, PollingTrigger
from evenflow.triggers.reached import find_connection

DEFAULT_CONNECTION = "kubernetes_default"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")  # every pod finds its own account there
EVICTED_BY = frozenset({"Evicted", "Preempting", "NodeShutdown", "NodeLost", "Terminated", "DeletionByTaintManager"})
NEVER_STARTS = frozenset({"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"})


class KubernetesPodTrigger(PollingTrigger):
    """Fires when a pod has ended; with ``container`` when that container has ended, even if sidecars still run.

    ``uid`` distinguishes the pod from a later one of its name. ``startup_timeout`` is how long after its creation it may be without
    a running container. The connection is ``kubernetes://host:port/?token=...&ca_file=/path``; where ``kubernetes_default`` is not
    defined, the trigger uses the service account of the triggerer's own pod. It needs the right to ``get`` pods.

    The event: ``{"status": ..., "phase", "container", "exit_code", "reason", "node"}``. The status is ``success``, ``failed``,
    ``evicted`` (by its node or the scheduler, so another try may succeed), ``deleted`` (gone, or being deleted, before it ended) or
    ``not_started``; all but the first with a ``message``.
    """

    def __init__(
        self,
        *,
        pod_name: str,
        namespace: str | None = None,
        container: str | None = None,
        uid: str | None = None,
        startup_timeout: float | None = None,
        kubernetes_conn_id: str = DEFAULT_CONNECTION,
        poll_interval: float = limits.POD_EVERY,
        patience: float = limits.PATIENCE,
    ) -> None:
        super().__init__(poll_interval, patience)
        self.pod_name, self.namespace, self.container, self.uid = pod_name, namespace, container, uid
        self.startup_timeout, self.kubernetes_conn_id = startup_timeout, kubernetes_conn_id

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async with web.kept_open():
            async for event in super().run():
                yield event

    async def look(self) -> Payload | None:
        pod, event, now = await self.seen(await cluster_for(self, self.kubernetes_conn_id))
        return event if pod is None else self.judged(pod, now, f"The pod {pod['metadata']['namespace']}/{self.pod_name}")

    def judged(self, pod: Mapping[str, Any], now: datetime, what: str) -> Payload | None:
        return judge(pod, self.container, self.startup_timeout, now, what)

    async def seen(self, cluster: Cluster, *, fresh: bool = False) -> tuple[dict[str, Any] | None, Payload | None, datetime]:
        """Returns the pod, or the event that it is gone, and the time by the clock of the cluster, which stamps its pods. Unless
        ``fresh``, the API server's cache answers, which is at most seconds old and spares the store behind it.
        """
        namespace = self.namespace or cluster.namespace
        what = f"The pod {namespace}/{self.pod_name}"
        path = pods_path(namespace, self.pod_name)
        answer = await web.fetch(cluster.request(path, params={} if fresh else {"resourceVersion": "0"}))
        if answer.status_code == 404:
            message = f"{what} does not exist any more: it was deleted before it was seen to end."
            return None, {"status": "deleted", "phase": None, "message": message}, answer.at
        if not answer.ok:
            raise LookRefused(
                f"{cluster.who} refused to show {what[0].lower() + what[1:]} with status "
                f"{answer.status_code}.{_cure(answer.status_code)}"
            )
        pod = answer.json()
        if not isinstance(pod, dict) or "metadata" not in pod or "status" not in pod:
            raise LookRefused(f"{cluster.who} answered with no pod. Let the connection name the API server of a cluster.")
        if self.uid is not None and pod["metadata"].get("uid") != self.uid:
            message = f"{what} is another one by now: the one waited for was deleted."
            return None, {"status": "deleted", "phase": None, "message": message}, answer.at
        pod["metadata"].setdefault("namespace", namespace)
        return pod, None, answer.at


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    url: str
    who: str
    namespace: str
    headers: Mapping[str, str] = field(repr=False)
    tls: ssl.SSLContext | bool

    def request(self, path: str, method: str = "GET", **more: Any) -> web.WebRequest:
        return web.WebRequest(
            url=self.url + path, who=self.who, method=method, headers=self.headers, tls=self.tls, follow=False, **more
        )


async def cluster_for(trigger: BaseTrigger, conn_id: str) -> Cluster:
    """Returns the cluster of the connection, as ``trigger`` may read it. Raises :class:`LookRefused`."""
    conn = await find_connection(trigger, conn_id)
    if conn is not None:
        return _cluster_of(conn)
    if "KUBERNETES_SERVICE_HOST" in os.environ and conn_id == DEFAULT_CONNECTION:
        return _own_cluster(SERVICE_ACCOUNT, os.environ)
    raise LookRefused(
        f"Connection {conn_id!r} is not defined, and this triggerer runs in no pod whose service account could be used. Type: "
        f"evenflow connections set {conn_id}"
    )


def pods_path(namespace: str, name: str = "") -> str:
    """Returns the path of all pods of a namespace, or of one."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods" + (f"/{quote(name, safe='')}" if name else "")


def judge(pod: Mapping[str, Any], container: str | None, startup_timeout: float | None, now: datetime, what: str) -> Payload | None:
    """Returns the event for a pod as the API shows it, or None: not yet."""
    status = pod.get("status", {})
    phase = status.get("phase", "Unknown")
    statuses = {each["name"]: each for each in status.get("containerStatuses", [])}
    if container is not None and statuses and container not in statuses:
        raise LookRefused(f"{what} has no container {container!r}; it has {', '.join(sorted(statuses))}.")
    ended = _ended_container(statuses, container)
    facts: Payload = {
        "phase": phase,
        "node": pod.get("spec", {}).get("nodeName"),
        **(ended or {"container": None, "exit_code": None}),
    }
    facts["reason"] = status.get("reason") or facts.get("reason")
    if phase == "Succeeded" or (ended is not None and container is not None and ended["exit_code"] == 0):
        return {"status": SUCCESS, **facts}
    evicted = _evicted_by(status)
    if phase == "Failed" or (ended is not None and container is not None):
        if evicted:
            return {
                "status": "evicted",
                **facts,
                "reason": evicted,
                "message": f"{what} was evicted ({evicted}). {_said(status)}".strip(),
            }
        return {"status": FAILED, **facts, "message": f"{what} failed{_how(facts)}. {_said(status)}".strip()}
    if pod["metadata"].get("deletionTimestamp"):
        kind, why = ("evicted", f"is being evicted ({evicted})") if evicted else ("deleted", "is being deleted")
        return {"status": kind, **facts, "reason": evicted or facts["reason"], "message": f"{what} {why} before it ended."}
    return _stuck(statuses, facts, pod, startup_timeout, now, what)


def _stuck(
    statuses: Mapping[str, Any], facts: Payload, pod: Mapping[str, Any], startup_timeout: float | None, now: datetime, what: str
) -> Payload | None:
    """Returns the event of a pod that will not start, or has not started in time."""
    if facts["phase"] != "Pending":
        return None
    waiting = [each["state"]["waiting"] for each in statuses.values() if each.get("state", {}).get("waiting")]
    never = next((each for each in waiting if each.get("reason") in NEVER_STARTS), None)
    age = (now - datetime.fromisoformat(pod["metadata"]["creationTimestamp"])).total_seconds()
    if never is None and (startup_timeout is None or age < startup_timeout):
        return None
    why = never or next(iter(waiting), {"reason": _unscheduled(pod["status"])})
    message = f"{what} has not started after {age:.0f} s: {why.get('reason') or 'no reason is given'}. {why.get('message') or ''}"
    return {"status": "not_started", **facts, "reason": why.get("reason"), "message": message.strip()[:1000]}


def _unscheduled(status: Mapping[str, Any]) -> str | None:
    scheduled: Mapping[str, Any] = next((each for each in status.get("conditions", []) if each.get("type") == "PodScheduled"), {})
    return f"{scheduled['reason']}: {scheduled.get('message', '')}" if scheduled.get("reason") else None


def _ended_container(statuses: Mapping[str, Any], container: str | None) -> dict[str, Any] | None:
    """Returns the wanted container if it has ended; without one, the first that failed, else any that has ended."""
    ended = [
        {"container": name, "exit_code": end.get("exitCode"), "reason": end.get("reason")}
        for name, each in statuses.items()
        if (end := each.get("state", {}).get("terminated")) and container in (None, name)
    ]
    return next((each for each in ended if each["exit_code"]), next(iter(ended), None))


def _evicted_by(status: Mapping[str, Any]) -> str | None:
    """Returns why the cluster itself ended it. Since 1.26 a condition says so; the reason of the pod does in every release."""
    target: Mapping[str, Any] = next((each for each in status.get("conditions", []) if each.get("type") == "DisruptionTarget"), {})
    if target.get("status") == "True":
        return str(target.get("reason") or "DisruptionTarget")
    return status["reason"] if status.get("reason") in EVICTED_BY else None


def _how(facts: Mapping[str, Any]) -> str:
    if facts.get("exit_code") is None:
        return f" ({facts['reason']})" if facts.get("reason") else ""
    reason = f", {facts['reason']}" if facts.get("reason") not in (None, "Error") else ""
    return f": its container {facts['container']!r} ended with exit code {facts['exit_code']}{reason}"


def _said(status: Mapping[str, Any]) -> str:
    return str(status.get("message") or "")[:500]


def _cluster_of(conn: Connection) -> Cluster:
    if conn.scheme != "kubernetes" or not conn.host:
        raise LookRefused(
            f"Connection {conn.conn_id!r} is no cluster. Write kubernetes://HOST:PORT/?token=...&ca_file=/path/ca.crt, or with "
            "tls=off for a `kubectl proxy` on this host."
        )
    plain = conn.extra.get("tls") == "off"
    return Cluster(
        url=f"{'http' if plain else 'https'}://{in_url(conn.host)}:{conn.port or (8001 if plain else 443)}",
        who=f"The Kubernetes API server of connection {conn.conn_id!r}",
        namespace=conn.extra.get("namespace", "default"),
        headers={"Authorization": f"Bearer {conn.extra['token']}"} if "token" in conn.extra else {},
        tls=True if plain or "ca_file" not in conn.extra else _trusting(conn.extra["ca_file"]),
    )


def _own_cluster(account: Path, environ: Mapping[str, str]) -> Cluster:
    """Returns the pod's own cluster. Each look reads the token, because Kubernetes replaces it within the hour."""
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        token = (account / "token").read_text(encoding="ascii").strip()
        namespace = (account / "namespace").read_text(encoding="ascii").strip()
    except OSError as error:
        raise LookRefused(
            f"The service account of this pod cannot be read ({error.strerror}: {error.filename}). Let the pod have one, with "
            "automountServiceAccountToken: true, or define a connection."
        ) from None
    return Cluster(
        url=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        who="The Kubernetes API server of this cluster",
        namespace=namespace,
        headers={"Authorization": f"Bearer {token}"},
        tls=_trusting(str(account / "ca.crt")),
    )


def _trusting(ca_file: str) -> ssl.SSLContext:
    try:
        return _context(ca_file, os.stat(ca_file).st_mtime_ns)
    except OSError as error:
        raise LookRefused(
            f"The certificate authority {ca_file} of the Kubernetes API server cannot be read: {error.strerror}."
        ) from None


@lru_cache(maxsize=16)
def _context(ca_file: str, changed_ns: int) -> ssl.SSLContext:
    """Makes a context once for each file and content: reading it takes a millisecond."""
    return ssl.create_default_context(cafile=ca_file)


def _cure(status: int) -> str:
    if status in (401, 403):
        return " Let its user or service account get pods there: a Role with verbs: [get], resources: [pods], and a RoleBinding."
    return ""
