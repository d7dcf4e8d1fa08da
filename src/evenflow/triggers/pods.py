"""Pods that a task has started, from their creation to their end: each step is a look that may be repeated.

A pod is identified by its labels: the key of its task instance, and the try. So a lost answer does no harm: a repeated request
finds the pod under its name, and adopts it when the labels name the same try.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from evenflow.errors import LookRefused, LookUnanswered
from evenflow.sdk.triggers import TriggerEvent
from evenflow.triggers import limits, web
from evenflow.triggers.kubernetes import DEFAULT_CONNECTION, Cluster, KubernetesPodTrigger, cluster_for, pods_path
from evenflow.triggers.pod_log import PodLog, read_log
from evenflow.triggers.polling import FAILED, SUCCESS, Payload, PollingTrigger

BASE, RESULT = "base", "evenflow-result"  # containers: the one that works, and the side-car that passes on its result
KEY, TRY = "evenflow.dev/key", "evenflow.dev/try"
REFUSED = "refused"  # status of an event: the same request would be refused again


class PodStarts(PollingTrigger):
    """Creates the pod of ``spec`` once, however often it is asked to. The event has its ``namespace`` and ``uid``."""

    def __init__(
        self,
        *,
        spec: Mapping[str, Any],
        namespace: str | None,
        kubernetes_conn_id: str = DEFAULT_CONNECTION,
        poll_interval: float = limits.POD_CREATE_EVERY,
        patience: float = limits.POD_CREATE_PATIENCE,
    ) -> None:
        super().__init__(poll_interval, patience)
        self.spec, self.namespace, self.kubernetes_conn_id = spec, namespace, kubernetes_conn_id

    async def look(self) -> Payload | None:
        cluster = await cluster_for(self, self.kubernetes_conn_id)
        namespace, name = self.namespace or cluster.namespace, self.spec["metadata"]["name"]
        answer = await web.fetch(cluster.request(pods_path(namespace), "POST", body=self.spec))
        if answer.status_code == 409:
            return await self._there(cluster, namespace, name)
        if not answer.ok:
            said = _message(answer)
            status = FAILED if "exceeded quota" in said else REFUSED
            return {"status": status, "message": f"{cluster.who} refused the pod {namespace}/{name}: {said}"}
        return {"status": SUCCESS, "namespace": namespace, "uid": answer.json()["metadata"]["uid"]}

    async def _there(self, cluster: Cluster, namespace: str, name: str) -> Payload | None:
        """Returns the event for an existing pod of this name: of an earlier request of this try, or a foreign one."""
        answer = await web.fetch(cluster.request(pods_path(namespace, name)))
        if not answer.ok:
            return None  # it is gone by now
        meta = answer.json()["metadata"]
        theirs, ours = meta.get("labels") or {}, self.spec["metadata"]["labels"]
        if any(theirs.get(label) != ours[label] for label in (KEY, TRY)):
            return {"status": REFUSED, "message": f"There is another pod {namespace}/{name}, which this task has not started."}
        if meta.get("deletionTimestamp"):
            return None  # an earlier one that is being deleted
        return {"status": SUCCESS, "namespace": namespace, "uid": meta["uid"]}

    async def started(self) -> Payload:
        """Returns the event, after waiting in this process."""
        return await self._poll()


class PodRuns(KubernetesPodTrigger):
    """Fires when the container ``base`` has ended, like :class:`KubernetesPodTrigger`. Meanwhile it prints that container's output,
    with ``get_logs``. The event has the end of the log as ``log_end``, and with ``result`` what the side-car passed on, if that is
    small; else ``result_is_large``. ``env_values`` are arguments so that secret ones are masked.
    """

    def __init__(
        self,
        *,
        pod_name: str,
        namespace: str,
        uid: str,
        startup_timeout: float | None,
        get_logs: bool,
        result: bool,
        env_values: list[str],
        kubernetes_conn_id: str = DEFAULT_CONNECTION,
        poll_interval: float = limits.POD_LOG_EVERY,
        patience: float = limits.PATIENCE,
    ) -> None:
        super().__init__(
            pod_name=pod_name,
            namespace=namespace,
            container=BASE,
            uid=uid,
            startup_timeout=startup_timeout,
            kubernetes_conn_id=kubernetes_conn_id,
            poll_interval=poll_interval,
            patience=patience,
        )
        self.get_logs, self.result, self.env_values = get_logs, result, env_values
        self._what = f"The pod {namespace}/{pod_name}"
        self._log = PodLog(namespace, pod_name, BASE)
        self._log_fails = False
        self._base_ended: float | None = None

    async def run(self) -> AsyncIterator[TriggerEvent]:
        if self.get_logs:
            print(f"-- {self._what[0].lower() + self._what[1:]} has been started; what follows is its log from the beginning --")
        async with web.kept_open():
            yield TriggerEvent(await self._poll())

    async def look(self) -> Payload | None:
        cluster = await cluster_for(self, self.kubernetes_conn_id)
        pod, event, now = await self.seen(cluster)
        if pod is None:  # the API server's cache may not know it yet
            pod, event, now = await self.seen(cluster, fresh=True)
        if pod is None:
            return event and self._told(event)
        event = self.judged(pod, now, self._what)
        await self._tell_log(cluster, looks=1 if event is None else limits.POD_LOG_LOOKS_AT_END)
        if event is None or (event["status"] == SUCCESS and self.result and not self._result_is_there(pod)):
            return None
        if event["status"] == SUCCESS and self.result:
            event |= await self._small_result(cluster)
        return self._told(event)

    async def large_result(self) -> bytes:
        """Returns the whole result. Raises :class:`LookUnanswered`, and :class:`LookRefused` for one that is too large."""
        cluster = await cluster_for(self, self.kubernetes_conn_id)
        most = limits.POD_RESULT
        found = await read_log(cluster, str(self.namespace), self.pod_name, RESULT, most + 1)
        if found is None:
            raise LookRefused(f"{self._what} is gone, and its result with it.")
        if len(found) > most:
            raise LookRefused(
                f"{self._what} left a result of more than {most:,} bytes. Write what is large to storage, and its path."
            )
        return found

    def _told(self, event: Payload) -> Payload:
        return {**event, "log_end": list(self._log.last)}

    async def _tell_log(self, cluster: Cluster, looks: int) -> None:
        """Prints new output. If the node is silent and the log cannot be read, the pod has still not ended."""
        if not self.get_logs:
            return
        try:
            for _ in range(looks):
                if not await self._log.tell(cluster):
                    break
            self._log_fails = False
        except (LookUnanswered, LookRefused) as error:
            if not self._log_fails:
                print(f"-- its log cannot be read at present: {error} --")
            self._log_fails = True

    def _result_is_there(self, pod: Mapping[str, Any]) -> bool:
        """Returns whether the side-car has passed the result on, or never will. It ends after the container that works."""
        if self._base_ended is None:
            self._base_ended = time.monotonic()
        statuses = {each["name"]: each for each in pod["status"].get("initContainerStatuses") or ()}
        if statuses.get(RESULT, {}).get("state", {}).get("terminated"):
            return True
        return time.monotonic() - self._base_ended > limits.POD_RESULT_WITHIN

    async def _small_result(self, cluster: Cluster) -> Payload:
        found = await read_log(cluster, str(self.namespace), self.pod_name, RESULT, limits.POD_RESULT_IN_EVENT + 1)
        if found is None:
            return {"result": ""}
        if len(found) > limits.POD_RESULT_IN_EVENT:
            return {"result_is_large": True}
        return {"result": found.decode(errors="replace")}


class PodsEnd(PollingTrigger):
    """Deletes the pods of a task instance, except the one of ``keep``, and with ``spares_ended`` those whose work is over. Fires
    when they are gone.
    """

    def __init__(
        self,
        *,
        key: str,
        namespace: str | None,
        keep: str | None = None,
        spares_ended: bool = False,
        settles: float = 0.0,
        kubernetes_conn_id: str = DEFAULT_CONNECTION,
        poll_interval: float = limits.POD_END_EVERY,
        patience: float = limits.POD_END_PATIENCE,
    ) -> None:
        super().__init__(poll_interval, patience)
        self.key, self.namespace, self.keep, self.settles = key, namespace, keep, float(settles)
        self.spares_ended, self.kubernetes_conn_id = spares_ended, kubernetes_conn_id
        self._began: float | None = None
        self._found = False

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async with web.kept_open():
            yield TriggerEvent(await self._poll())

    async def look(self) -> Payload | None:
        """Looks for pods to end. For ``settles`` seconds a requested pod may still appear, unless some were found."""
        if self._began is None:
            self._began = time.monotonic()
        left = await self.asked_to_end()
        self._found = self._found or bool(left)
        if left or (not self._found and time.monotonic() - self._began < self.settles):
            return None
        return {"status": SUCCESS}

    async def asked_to_end(self) -> list[str]:
        """Asks each remaining pod to end, and returns their names."""
        cluster = await cluster_for(self, self.kubernetes_conn_id)
        namespace = self.namespace or cluster.namespace
        answer = await web.fetch(cluster.request(pods_path(namespace), params={"labelSelector": f"{KEY}={self.key}"}))
        if not answer.ok:
            raise LookRefused(f"{cluster.who} refused to list pods of {namespace}: {_message(answer)}")
        left = []
        for pod in answer.json().get("items") or ():
            meta = pod["metadata"]
            is_over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
            if meta["name"] == self.keep or (self.spares_ended and is_over):
                continue
            left.append(str(meta["name"]))
            if not meta.get("deletionTimestamp"):
                options = {"preconditions": {"uid": meta["uid"]}}
                gone = await web.fetch(cluster.request(pods_path(namespace, meta["name"]), "DELETE", body=options))
                if not gone.ok and gone.status_code not in (404, 409):
                    raise LookRefused(f"{cluster.who} refused to delete pod {namespace}/{meta['name']}: {_message(gone)}")
        return left

    async def ended(self) -> Payload:
        """Returns the event, after waiting in this process."""
        return await self._poll()


def _message(answer: web.Answer) -> str:
    """Returns the API server's message, and what to do if that is known."""
    try:
        said = str(answer.json().get("message") or "")
    except (LookRefused, AttributeError):
        said = ""
    rights = " Let its user or service account create, get, list and delete pods there, and get pods/log."
    text = said or f"status {answer.status_code}"
    return text[: limits.POD_MESSAGE] + (rights if answer.status_code in (401, 403) and "quota" not in said else "")
