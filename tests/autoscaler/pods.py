"""Fleets whose workers are pods of a cluster: a worker is there while its pod runs, and is told to end with it."""

from __future__ import annotations

from typing import Any

from evenflow.autoscaler.kubernetes import KubernetesTarget
from evenflow.autoscaler.replica_order import COST
from evenflow.autoscaler.target import FleetTarget
from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.kubernetes.address import find_cluster
from evenflow.kubernetes.client import KubernetesClient
from evenflow.kubernetes.limits import ANSWER_S
from tests.autoscaler.world import EAGER, Fleets
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.store import DEPLOYMENT, POD, Kind, Object
from tests.waiting import wait_until

PATIENCE_S = 0.5


def deployment(replicas: int, name: str = "workers") -> Object:
    """Of pods that end as soon as they are told to."""
    labels = {"app": name}
    spec = {"containers": [{"name": "worker", "image": "worker", "command": ["sleep", "600"]}]}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def targets_of(uri: str, *, answer_s: float = ANSWER_S) -> dict[str, FleetTarget]:
    async def connect() -> KubernetesClient:
        return KubernetesClient(await find_cluster(uri, {}), patience_s=min(PATIENCE_S, answer_s), answer_s=answer_s)

    return {"kubernetes": KubernetesTarget(connect)}


class PodFleets(Fleets):
    """Of the Deployment ``deployed``."""

    def __init__(self, *args: Any, cluster: Cluster, deployed: str = "workers", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cluster, self.deployed = cluster, deployed

    def deploy(self, replicas: int) -> None:
        self.cluster.create(DEPLOYMENT, deployment(replicas, self.deployed))
        self.settle()

    def fleet(self, policy: ScalingPolicy = EAGER, name: str = "", queues: tuple[str, ...] = ("default",), **given: Any) -> None:
        super().fleet(policy, name, queues, **{"target": "kubernetes", "options": {"deployment": self.deployed}, **given})

    def targets(self) -> dict[str, FleetTarget]:
        return targets_of(self.cluster.uri)

    # -- the cluster

    def _owned(self, kind: Kind) -> list[Object]:
        """The Deployment, or its pods."""
        name = self.deployed
        return [
            found
            for found in self.cluster.objects(kind)
            if found["metadata"]["name"] == name or (found["metadata"].get("labels") or {}).get("app") == name
        ]

    @property
    def asked(self) -> int:
        """Pods that there are to be."""
        [found] = self._owned(DEPLOYMENT)
        return int(found["spec"]["replicas"])

    def pods(self) -> list[str]:
        """Those that are not on their way out."""
        return sorted(pod["metadata"]["name"] for pod in self._owned(POD) if "deletionTimestamp" not in pod["metadata"])

    def costs(self) -> dict[str, int]:
        """What is told of them."""
        told = {pod["metadata"]["name"]: (pod["metadata"].get("annotations") or {}).get(COST) for pod in self._owned(POD)}
        return {name: int(cost) for name, cost in told.items() if cost is not None}

    def settle(self) -> None:
        """The controllers have done all that they were told, and workers are there in just the pods that run."""

        def is_settled() -> bool:
            pods = self._owned(POD)
            return len(pods) == self.asked and all(pod["status"]["phase"] == "Running" for pod in pods)

        wait_until(is_settled, lambda: f"{self.asked} pods, not {self._owned(POD)}")
        self.obey()

    def obey(self) -> None:
        there = self.pods()
        for name in there:
            if self.alive(name) is None:
                self.worker(name)
        self.conn.execute(
            "update service set state = 'stopped' where kind = 'worker' and state in ('active', 'draining') and not name = any(%s)",
            [there],
        )
