"""Makes pods: one for each try, its token beside it. :mod:`.care` looks after them.

A pod is made first, then the secret with its token, which belongs to the pod and goes with it. A death between the two leaves a pod
that waits for its secret; any launcher finds the pod, and makes it. A taken name means that the pod exists already.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from evenflow.core.pods import ends
from evenflow.core.pods.ends import Policy, WaitingPod
from evenflow.core.pods.options import AIRFLOW, read_options
from evenflow.errors import BadValue, ClusterRefused, ClusterUnavailable, ExecutorUnavailable, SettingsError
from evenflow.killpoints import KillPoint, reached
from evenflow.kubernetes import limits
from evenflow.kubernetes.address import find_cluster
from evenflow.kubernetes.client import KubernetesClient, Object
from evenflow.kubernetes.pacing import RequestPace
from evenflow.launcher import observations as seen
from evenflow.launcher.executor import KubernetesSettings, LaunchFailure, LaunchLedger
from evenflow.launcher.kubernetes.care import PodCare
from evenflow.launcher.kubernetes.template import (
    MANAGED_BY,
    PodMaker,
    epoch_of,
    read_template,
    secret_data,
    secret_name,
    with_address,
)
from evenflow.launcher.limits import ALONE_S
from evenflow.store.serving.executors import LaunchedExecutor
from evenflow.store.serving.launches import Launch, LaunchedCode, PodAsk
from evenflow.telemetry.observing import observe

_NOT_MADE = "the cluster did not make its pod"


@dataclass(frozen=True, slots=True)
class _Site:
    """Where and how pods are made."""

    client: KubernetesClient
    maker: PodMaker
    care: PodCare
    pods: str
    secrets: str


class KubernetesExecutor:
    """Made from a row of the table of executors. Raises :class:`SettingsError` when its template is wrong, or nothing says to pods
    where the API is.
    """

    def __init__(self, row: LaunchedExecutor, ledger: LaunchLedger, settings: KubernetesSettings) -> None:
        self._name, self._ledger, self._settings = row.name, ledger, settings
        self._options = read_options(row.options)
        self._template = read_template(self._options, settings.template)
        self._environment = with_address(self._template, settings, self._options.runs)
        self._opening = asyncio.Lock()
        self._open: _Site | None = None
        self._roomless: dict[int, tuple[float, WaitingPod]] = {}  # by epoch, until when this is told of tries without room

    async def _site(self) -> _Site:
        async with self._opening:
            if self._open is None:
                try:
                    address = await find_cluster(self._settings.cluster, os.environ)
                except SettingsError as error:
                    raise ExecutorUnavailable(str(error)) from error
                options, rate = self._options, self._options.requests_per_s
                client = KubernetesClient(address, pace=RequestPace(rate, 2 * rate))
                installation = await self._settings.tokens.installation()
                maker = PodMaker(installation, self._name, self._template, self._environment, options.runs)
                path = f"/api/v1/namespaces/{options.namespace or address.namespace}"
                pods, secrets = f"{path}/pods", f"{path}/secrets"
                grace_s = int(self._template["spec"].get("terminationGracePeriodSeconds", limits.GRACE_S))
                care = PodCare(self._name, client, pods, maker.selector, options, self._ledger, self._make_secret, grace_s)
                self._open = _Site(client, maker, care, pods, secrets)
        return self._open

    async def launch(self, tries: Sequence[Launch]) -> Mapping[int, LaunchFailure]:
        epochs = [each.epoch for each in tries]
        site, asks = await self._site(), await self._ledger.pods(epochs)
        codes = await self._ledger.codes(epochs) if site.maker.runs == AIRFLOW else {}
        made = await asyncio.gather(*(self._launch(site, each, asks.get(each.epoch), codes.get(each.epoch)) for each in tries))
        return {each.epoch: failure for each, failure in zip(tries, made, strict=True) if failure is not None}

    async def reconcile(self, tries: Sequence[Launch]) -> Mapping[int, LaunchFailure]:
        """Returns those without a pod. With an old list it knows nothing, and returns none."""
        care = (await self._site()).care
        if not care.knows_all:
            return {}
        there = care.epochs
        return {each.epoch: LaunchFailure("it has no pod") for each in tries if each.epoch not in there}

    @property
    def waiting(self) -> Mapping[int, WaitingPod]:
        if self._open is None:
            return {}
        now = asyncio.get_running_loop().time()
        self._roomless = {epoch: told for epoch, told in self._roomless.items() if told[0] > now}
        told = {epoch: pod for epoch, (_, pod) in islice(self._roomless.items(), limits.WAITING_TOLD)}
        return {**told, **self._open.care.waiting}

    async def watch(self) -> None:
        await (await self._site()).care.run()

    async def close(self) -> None:
        if self._open is not None:
            await self._open.client.close()

    async def _launch(self, site: _Site, launch: Launch, ask: PodAsk | None, code: LaunchedCode | None) -> LaunchFailure | None:
        """One author's mistake ends that try, and must not stop the others."""
        try:
            pod = site.maker.pod(launch, ask, code)
        except BadValue as error:
            await self._ledger.end({launch.epoch: str(error)}, failed=True)
            return None
        except Exception as error:
            if ask is None or not ask.override:
                raise  # no pod of this template can be made
            await self._ledger.end({launch.epoch: f"No pod can be made of its pod_override: {error!r:.200}"}, failed=True)
            return None
        try:
            made = await self._make(site, pod)
            if made is None:
                return LaunchFailure("the pod that it had is still there", alone=True)
            reached(KillPoint.POD_MADE)
            await self._make_secret(made, launch.queue)
            reached(KillPoint.POD_EQUIPPED)
        except ClusterUnavailable as error:
            return LaunchFailure(str(error))
        except ClusterRefused as refused:
            return await self._refused(launch, pod, refused)
        self._roomless.pop(launch.epoch, None)
        return None

    async def _make(self, site: _Site, pod: Object) -> Object | None:
        """Returns the pod of the try; None while another pod of its name is being deleted."""
        try:
            return await site.client.create(site.pods, pod)
        except ClusterRefused as refused:
            if refused.reason != "AlreadyExists":
                raise
        there = await site.client.get(f"{site.pods}/{pod['metadata']['name']}")
        is_it = (
            there is not None and not ends.is_leaving(there) and not ends.is_finished(there) and epoch_of(there) == epoch_of(pod)
        )
        return there if is_it else None

    async def _make_secret(self, pod: Object, queue: str) -> None:
        """Makes the secret, also for a pod of another launcher."""
        site, meta, name, epoch = await self._site(), pod["metadata"], secret_name(pod), epoch_of(pod)
        if name is None or epoch is None:
            return
        token = await self._settings.tokens.for_worker_of(epoch, queue, meta["name"])
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "labels": {MANAGED_BY: "evenflow"}, "ownerReferences": [owner]},
            "immutable": True,
            "data": {key: base64.b64encode(text.encode()).decode() for key, text in secret_data(pod, epoch, token).items()},
        }
        try:
            await site.client.create(site.secrets, secret)
        except ClusterRefused as refused:
            if refused.reason != "AlreadyExists":
                raise

    async def _refused(self, launch: Launch, pod: Object, refused: ClusterRefused) -> LaunchFailure | None:
        cause = ends.refusal_cause(refused.status, refused.reason, str(refused))
        name = pod["metadata"]["name"]
        if cause is None:  # all who see the executor are told, and the pod has the name of its DAG
            return LaunchFailure(f"{_NOT_MADE}: {str(refused).replace(name, 'NAME')}")
        reason = ends.refusal_reason(cause, str(refused))
        observe(seen.pod_refused(self._name, str(cause), launch.epoch, reason), self._ledger.meter)
        match self._options.rules[cause].policy:
            case Policy.WAIT:
                until = asyncio.get_running_loop().time() + 2 * ALONE_S
                self._roomless[launch.epoch] = (until, ends.refused_of(name, reason, self._options.namespace))
                return LaunchFailure(reason, alone=True)
            case Policy.ELSEWHERE:
                return LaunchFailure(reason, again=False)
            case Policy.FAIL:
                await self._ledger.end({launch.epoch: reason}, failed=True)
        return None
