"""``KubernetesPod``: a pod does the work of a task, which waits for it without a process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Literal, NoReturn, get_args

from evenflow.errors import BadArgument, LookUnanswered, PodFailed, PodFailedForGood
from evenflow.sdk.context import Context, get_current_context
from evenflow.sdk.operator import BaseOperator
from evenflow.sdk.operators.built_in_triggers import SHORTEST_PAUSE_S, built_in, checked, look
from evenflow.sdk.operators.pod_spec import OfTry, PodTerms, env_values, key_of, pod_of
from evenflow.sdk.references import Reference

STARTS, RUNS, END = (f"evenflow.triggers.pods:{name}" for name in ("PodStarts", "PodRuns", "PodsEnd"))
DEFAULT_CONNECTION = "kubernetes_default"
STARTUP_S = 600.0  # to be placed on a node, and to have its images pulled
POLL_S = 5.0
SETTLES_S = 3.0  # after an early end: a request of the ended process may be on its way
RESULT_IMAGE = "busybox:stable"
OnFinish = Literal["delete_pod", "delete_succeeded_pod", "keep_pod"]
_ONCE = "pod"


class KubernetesPod(BaseOperator):
    """Runs a pod, is deferred until its container ``base`` has ended, and deletes it.

    The arguments describe the pod, on top of ``pod_template_dict``. While it runs, its log becomes that of the task. With
    ``do_xcom_push`` the result is the JSON that it writes to ``/evenflow/result.json``, or to ``/airflow/xcom/return.json``; a
    side-car of ``result_image`` passes it on. A try has one pod, named after the try, and none begins before those of earlier tries
    are gone. The pod has no token of Evenflow, and none of its cluster without ``service_account_name``.
    """

    operator_name = "kubernetes_pod"
    preloaded = ("evenflow.triggers.pods", "aiohttp")
    template_fields: ClassVar[Sequence[str]] = (
        "image",
        "cmds",
        "arguments",
        "env_vars",
        "labels",
        "annotations",
        "name",
        "namespace",
        "container_resources",
        "volumes",
        "volume_mounts",
        "node_selector",
        "pod_template_dict",
    )

    def __init__(
        self,
        *,
        task_id: str,
        image: str | None = None,
        cmds: Sequence[str] = (),
        arguments: Sequence[Any] = (),
        name: str | None = None,
        namespace: str | None = None,
        env_vars: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        volumes: Sequence[Mapping[str, Any]] = (),
        volume_mounts: Sequence[Mapping[str, Any]] = (),
        container_resources: Mapping[str, Any] | None = None,
        node_selector: Mapping[str, str] | None = None,
        tolerations: Sequence[Mapping[str, Any]] = (),
        service_account_name: str | None = None,
        image_pull_policy: str | None = None,
        pod_template_dict: Mapping[str, Any] | None = None,
        get_logs: bool = True,
        do_xcom_push: bool = False,
        result_image: str = RESULT_IMAGE,
        on_finish_action: OnFinish = "delete_pod",
        startup_timeout: timedelta | float = STARTUP_S,
        poll_interval: timedelta | float = POLL_S,
        kubernetes_conn_id: str = DEFAULT_CONNECTION,
        **options: Any,
    ) -> None:
        super().__init__(task_id=task_id, do_xcom_push=do_xcom_push, **options)
        where = f"Task {task_id!r}"
        for what, value in (("cmds", cmds), ("arguments", arguments)):
            if isinstance(value, str):
                raise BadArgument(f"{where}: {what} must be a list, not {value!r:.80}. Write {what}=[{value!r:.80}].")
        if image is None and pod_template_dict is None:
            raise BadArgument(f"{where}: give image=, or pod_template_dict= with one.")
        if on_finish_action not in get_args(OnFinish):
            raise BadArgument(f"{where}: on_finish_action is one of {', '.join(get_args(OnFinish))}, not {on_finish_action!r}.")
        self.image, self.cmds, self.arguments, self.name, self.namespace = image, cmds, arguments, name, namespace
        self.env_vars, self.labels, self.annotations = env_vars, labels or {}, annotations or {}
        self.volumes, self.volume_mounts, self.container_resources = volumes, volume_mounts, container_resources
        self.node_selector, self.tolerations, self.service_account_name = node_selector, tolerations, service_account_name
        self.image_pull_policy, self.result_image = image_pull_policy, result_image
        self.pod_template_dict = pod_template_dict
        self.get_logs, self.on_finish_action, self.kubernetes_conn_id = get_logs, on_finish_action, kubernetes_conn_id
        self.startup_timeout = _seconds(where, "startup_timeout", startup_timeout, 1.0)
        self.poll_interval = _seconds(where, "poll_interval", poll_interval, SHORTEST_PAUSE_S)

    # -- a try waits until the pods of earlier tries are gone, starts its own, waits for it, and ends it

    def execute(self, context: Context) -> NoReturn:
        """Waits before anything is started: from its first wait on, a try that is ended is cleaned up, whatever happened to its
        process.
        """
        self._pod(context)
        self.defer(trigger=self._ends(context, spares=True), method_name="begin")

    def begin(self, context: Context, event: Mapping[str, Any]) -> NoReturn:
        checked(event)
        pod = self._pod(context)
        starts = built_in(STARTS, spec=pod, namespace=self.namespace, kubernetes_conn_id=self.kubernetes_conn_id)
        started = look(starts, context, "started")
        if started["status"] != "success":
            self._end(context)
            raise (PodFailedForGood if started["status"] == "refused" else PodFailed)(started["message"])
        where = {"namespace": started["namespace"], "pod_name": pod["metadata"]["name"], "uid": started["uid"]}
        print(f"Pod {where['namespace']}/{where['pod_name']} is started.", flush=True)
        self.defer(trigger=self._runs(where, env_values(pod)), method_name="finish", kwargs=where)

    def finish(self, context: Context, event: Mapping[str, Any], **where: str) -> Any:
        failure: PodFailed | None = None
        result = None
        if event["status"] != "success":
            failure = PodFailed(_why(event))
        elif self.task_settings.do_xcom_push:
            try:
                result = self._result(context, event, where)
            except ValueError as error:
                failure = PodFailed(f"The pod wrote no JSON as its result: {error}.")
        if self.on_finish_action == "keep_pod" or (self.on_finish_action == "delete_succeeded_pod" and failure is not None):
            print(f"Pod {where['namespace']}/{where['pod_name']} is kept (on_finish_action={self.on_finish_action!r}).")
        elif not self._end(context):
            kept = {"failure": None if failure is None else str(failure), "result": result}
            self.defer(trigger=self._ends(context, all_of_it=True), method_name="ended", kwargs=kept)
        return self.ended(context, {"status": "success"}, None if failure is None else str(failure), result)

    def ended(self, context: Context, event: Mapping[str, Any], failure: str | None, result: Any) -> Any:
        """Called once the cluster has answered that it deletes the pod."""
        if failure is not None:
            raise PodFailed(failure)
        checked(event)
        return result

    def on_kill(self) -> None:
        """Deletes what any try of this task instance has started, and waits for its end."""
        context = get_current_context()
        event = look(self._ends(context, all_of_it=True, spares=True, settles=SETTLES_S), context, "ended")
        print(
            "The pod has been deleted." if event["status"] == "success" else f"The pod may still run: {event['message']}",
            flush=True,
        )

    # -- inside

    def _of_try(self, context: Context) -> OfTry:
        ti = context["ti"]
        return OfTry(
            key=key_of(context.once_key(_ONCE)),
            try_number=ti.try_number,
            dag_id=ti.dag_id,
            task_id=ti.task_id,
            run_id=ti.run_id,
            map_index=ti.map_index,
        )

    def _pod(self, context: Context) -> dict[str, Any]:
        wanted = PodTerms(
            image=self.image,
            cmds=self.cmds,
            arguments=[str(argument) for argument in self.arguments],
            env_vars=self.env_vars,
            labels=self.labels,
            annotations=self.annotations,
            volumes=self.volumes,
            volume_mounts=self.volume_mounts,
            container_resources=self.container_resources,
            node_selector=self.node_selector,
            tolerations=self.tolerations,
            service_account_name=self.service_account_name,
            image_pull_policy=self.image_pull_policy,
            result_image=self.result_image if self.task_settings.do_xcom_push else None,
        )
        of = self._of_try(context)
        try:
            return pod_of(self.pod_template_dict or {}, wanted, self.name or f"{of.dag_id}-{of.task_id}", of)
        except BadArgument as error:
            raise BadArgument(f"Task {self.task_id!r}: {error}") from None

    def _ends(self, context: Context, *, all_of_it: bool = False, spares: bool = False, settles: float = 0.0) -> Any:
        """Returns the trigger that ends the pods of other tries, or all; it ``spares`` ended ones if these are to be kept."""
        of = self._of_try(context)
        keep = None if all_of_it else self._pod(context)["metadata"]["name"]
        return built_in(
            END,
            key=of.key,
            namespace=self.namespace,
            keep=keep,
            spares_ended=spares and self.on_finish_action != "delete_pod",
            settles=settles,
            kubernetes_conn_id=self.kubernetes_conn_id,
        )

    def _runs(self, where: Mapping[str, str], values: list[str]) -> Any:
        return built_in(
            RUNS,
            **where,
            startup_timeout=self.startup_timeout,
            get_logs=self.get_logs,
            result=self.task_settings.do_xcom_push,
            env_values=values,
            kubernetes_conn_id=self.kubernetes_conn_id,
            poll_interval=self.poll_interval,
        )

    def _end(self, context: Context) -> bool:
        """Asks the cluster to delete its pods. Returns whether it has answered."""
        try:
            look(self._ends(context, all_of_it=True), context, "asked_to_end")
        except LookUnanswered as error:
            print(f"The pod is deleted as soon as the cluster answers: {error}", flush=True)
            return False
        return True

    def _result(self, context: Context, event: Mapping[str, Any], where: Mapping[str, str]) -> Any:
        """Returns the result. Raises :class:`ValueError` for what is not JSON."""
        text = event.get("result") or ""
        if event.get("result_is_large"):
            text = look(self._runs(where, []), context, "large_result").decode()
        return json.loads(text) if text.strip() else None


def _why(event: Mapping[str, Any]) -> str:
    last = [line for line in event.get("log_end") or () if line.strip()]
    return str(event["message"]) + (f" Its log ends: {' | '.join(last)}" if last else "")


def _seconds(where: str, name: str, given: Any, least: float) -> float:
    value = given.total_seconds() if isinstance(given, timedelta) else given
    if isinstance(value, Reference) or not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= least:
        raise BadArgument(f"{where}: {name} must be a timedelta or at least {least:g} seconds, not {given!r:.80}.")
    return float(value)
