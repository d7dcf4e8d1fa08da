"""Deployments of Kubernetes as fleets: their pods are workers, and the cluster chooses which of them go (R-AS4).

A Deployment takes a number and costs, never names. So the pods that are to go get costs below all others. Before the number is
lowered, the autoscaler finds the pods that the ReplicaSet would end by its real order, in which costs come fourth. Afterwards it
finds the pods that have gone, once the controllers have acted. Each look reads everything anew, so nothing depends on what a look
has missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from evenflow.autoscaler.limits import CONFLICTS, MARK_ALONGSIDE
from evenflow.autoscaler.replica_order import COST, cost_of, deletion_order, is_active, ready_since
from evenflow.autoscaler.target import Replica, Sight, UnfitTarget
from evenflow.core.limits import INT32_MIN
from evenflow.core.scaling.fleet_options import NO_STATEFUL_SETS, POD
from evenflow.errors import ClusterRefused, SettingsError
from evenflow.kubernetes.client import KubernetesClient, Object
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving.scaling import FleetRow

LEAST_COST = INT32_MIN  # and the rank: below all that people set, and below the 0 of pods without one
OURS_BELOW = INT32_MIN // 2  # costs that only Evenflow writes


@dataclass(frozen=True, slots=True)
class DeploymentPlace:
    """Where a fleet is. ``worker`` is the name of a worker with that of its pod left out."""

    namespace: str
    deployment: str
    worker: tuple[str, str]

    @property
    def apps(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}"

    @property
    def path(self) -> str:
        return f"{self.apps}/deployments/{self.deployment}"

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def worker_of(self, pod: Object) -> str:
        return f"{self.worker[0]}{pod['metadata']['name']}{self.worker[1]}"

    def pod_of(self, worker: str) -> str:
        return worker.removeprefix(self.worker[0]).removesuffix(self.worker[1])


class KubernetesTarget:
    """``connect`` is called once, when the first such fleet is looked at."""

    def __init__(self, connect: Callable[[], Awaitable[KubernetesClient]]) -> None:
        self._connect = connect
        self._client: KubernetesClient | None = None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def sight(self, conn: AsyncConn, fleet: FleetRow) -> Sight:
        client, place = await self._reach(fleet)
        deployment = await self._deployment(client, place)
        labels = selector_text(deployment["spec"]["selector"])
        lists = (client.list_all(path, labels=labels) for path in (f"{place.apps}/replicasets", place.pods))
        (sets, _), (found, _) = await asyncio.gather(*lists)
        sets = [each for each in sets if _owner(each) == deployment["metadata"]["uid"]]
        owners = {each["metadata"]["uid"] for each in sets}
        pods = [pod for pod in found if _owner(pod) in owners and pod["status"].get("phase") not in ("Succeeded", "Failed")]
        size = int(deployment["spec"].get("replicas", 1))
        order = deletion_order(pods, client.now)
        return Sight(
            [Replica(place.worker_of(pod), leaving=not is_active(pod), is_ready=ready_since(pod) is not None) for pod in pods],
            size,
            is_settled=_is_settled(deployment, sets, size) and len(order) <= size,
            order=tuple(place.worker_of(pod) for pod in order),
            marked=frozenset(place.worker_of(pod) for pod in order if cost_of(pod) < OURS_BELOW),
        )

    async def mark(self, fleet: FleetRow, ranks: Mapping[str, int]) -> None:
        await self._annotate(fleet, {name: str(LEAST_COST + rank) for name, rank in ranks.items()})

    async def unmark(self, fleet: FleetRow, names: Collection[str]) -> None:
        await self._annotate(fleet, dict.fromkeys(names))

    async def resize(self, fleet: FleetRow, replicas: int, still_acts: Callable[[], Awaitable[None]], *, again: bool) -> int:
        """The write names the version that was read before the check that this autoscaler acts: it is refused if another autoscaler
        or any other client has written since. A write of the present number would make no new version. So against an earlier
        attempt one pod more is asked for, which goes when the load allows it.
        """
        client, place = await self._reach(fleet)
        for attempt in range(1, CONFLICTS + 1):
            scale = await client.get(f"{place.path}/scale")
            if scale is None:
                raise await self._missing(client, place)
            there = int(scale["spec"].get("replicas", 0))
            if there != fleet.replicas or (there == replicas and not again):
                return there
            set_to = replicas + 1 if there == replicas else replicas
            await still_acts()
            version = {"resourceVersion": scale["metadata"]["resourceVersion"]}
            try:
                await client.patch(f"{place.path}/scale", {"metadata": version, "spec": {"replicas": set_to}})
            except ClusterRefused as refused:
                if refused.status != 409 or attempt == CONFLICTS:
                    raise
            else:
                return set_to
        raise AssertionError("the last attempt has returned or raised")

    async def write(self, conn: AsyncConn, fleet: FleetRow, replicas: int, leaving: Collection[str]) -> None: ...

    async def _reach(self, fleet: FleetRow) -> tuple[KubernetesClient, DeploymentPlace]:
        if self._client is None:
            try:
                self._client = await self._connect()
            except SettingsError as error:
                raise UnfitTarget(str(error)) from error
        namespace = fleet.options.get("namespace") or self._client.address.namespace
        before, _, after = str(fleet.options.get("worker", POD)).partition(POD)
        return self._client, DeploymentPlace(
            quote(namespace, safe=""), quote(str(fleet.options["deployment"]), safe=""), (before, after)
        )

    async def _deployment(self, client: KubernetesClient, place: DeploymentPlace) -> Object:
        found = await client.get(place.path)
        if found is None:
            raise await self._missing(client, place)
        return found

    async def _missing(self, client: KubernetesClient, place: DeploymentPlace) -> UnfitTarget:
        try:
            stateful = await client.get(f"{place.apps}/statefulsets/{place.deployment}")
        except ClusterRefused:
            stateful = None  # this account may not even ask
        if stateful is not None:
            return UnfitTarget(f"{place.deployment} in namespace {place.namespace} is none of Deployments: {NO_STATEFUL_SETS}.")
        return UnfitTarget(f"There is no Deployment {place.deployment} in namespace {place.namespace}.")

    async def _annotate(self, fleet: FleetRow, costs: Mapping[str, str | None]) -> None:
        """None takes a cost away. A pod that has gone has none."""
        client, place = await self._reach(fleet)
        room = asyncio.Semaphore(MARK_ALONGSIDE)

        async def one(worker: str, cost: str | None) -> None:
            async with room:
                try:
                    await client.patch(
                        f"{place.pods}/{quote(place.pod_of(worker), safe='')}", {"metadata": {"annotations": {COST: cost}}}
                    )
                except ClusterRefused as refused:
                    if refused.status != 404:
                        raise

        await asyncio.gather(*(one(worker, cost) for worker, cost in costs.items()))


def selector_text(selector: Mapping[str, Any]) -> str:
    """A selector of labels as a query says it."""
    parts = [f"{label}={value}" for label, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        label, values = each["key"], ",".join(each.get("values") or ())
        match each["operator"]:
            case "In":
                parts.append(f"{label} in ({values})")
            case "NotIn":
                parts.append(f"{label} notin ({values})")
            case "Exists":
                parts.append(label)
            case "DoesNotExist":
                parts.append(f"!{label}")
    return ",".join(parts)


def _is_settled(deployment: Object, sets: Collection[Object], size: int) -> bool:
    """The controllers have seen the number that there is to be, and no roll-out is under way."""
    seen = [each["status"].get("observedGeneration", 0) >= each["metadata"].get("generation", 0) for each in (deployment, *sets)]
    return all(seen) and [number for each in sets if (number := each["spec"].get("replicas", 0))] == [size] * bool(size)


def _owner(obj: Object) -> str | None:
    return next((each["uid"] for each in obj["metadata"].get("ownerReferences") or () if each.get("controller")), None)
