"""Tries of a queue whose executor makes pods."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from evenflow.api.vault import Vault
from evenflow.core.executors import KUBERNETES
from evenflow.launcher.executor import KubernetesSettings
from evenflow.launcher.executors import LauncherSettings, make_executor
from evenflow.launcher.service import LauncherService
from evenflow.runtime.tokens import LaunchTokens
from evenflow.store.db.notify import DISPATCH
from evenflow.store.serving import executors
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.store import Object
from tests.waiting import until
from tests.worker.world import World
from tests.world import at_once

QUEUE = "pods"
StartLauncher = Callable[..., Awaitable[LauncherService]]


def write_template(folder: Path, *, grace_s: int = 30, **environment: str) -> Path:
    """Of pods that run this very Python."""
    file = folder / "pod.yaml"
    container = {"name": "try", "image": "evenflow", "command": [sys.executable, "-P", "-m", "evenflow"]}
    env = [{"name": name, "value": value} for name, value in environment.items()]
    spec = {"hostNetwork": True, "terminationGracePeriodSeconds": grace_s, "containers": [{**container, "env": env}]}
    file.write_text(json.dumps({"kind": "Pod", "spec": spec}))  # which is YAML, too
    return file


def launcher_of(database_url: str, folder: Path, cluster: str, template: Path, api_url: str, name: str) -> LauncherService:
    settings = KubernetesSettings(
        cluster=cluster,
        template=str(template),
        tokens=LaunchTokens(database_url, Vault(folder / "secrets.key")),
        environment={"EVENFLOW_API_URL": api_url},
    )
    make = partial(make_executor, settings=LauncherSettings(kubernetes=settings))
    return LauncherService(database_url, name=name, make=make)


class PodWorld(World):
    """``pods`` is a queue of the executor ``k8s``."""

    def executor(self, **options: str) -> None:
        told: dict[str, Any] = {"kind": KUBERNETES, "queues": [QUEUE], "slots": 100, "options": options, "by": "test"}
        assert at_once(executors.set_executor(self.awaited, name="k8s", **told))

    def pod(self, body: str, *, head: str = "", **spec: Any) -> int:
        """A try of a task with this function body that a pod is to be made for."""
        epoch = self.task(body, head=head, queue=QUEUE, **spec)
        self.notify(DISPATCH)
        return epoch

    async def lost(self, epoch: int) -> str:
        """The reason, as soon as the try is reported as lost."""
        found = await until(lambda: [told for kind, told in self.reports(epoch) if kind == "lost"], f"the loss of {epoch}")
        return str(found[0]["reason"])

    def over(self, epoch: int) -> None:
        """As a scheduler has it when it has applied the end of a try."""
        self.end(epoch)


def of_epoch(cluster: Cluster, epoch: int) -> list[Object]:
    return [pod for pod in cluster.objects() if pod["metadata"]["labels"].get("evenflow/epoch") == str(epoch)]


def pods_told(cluster: Cluster) -> list[str]:
    """All that its pods have written, those that are gone too."""
    runs = cluster.do(
        lambda: [(run.name, name, log.lines) for run in cluster._runs.values() for name, logs in run.logs.items() for log in logs]
    )
    return [f"{pod}/{container}: {line.text.decode(errors='replace')}" for pod, container, lines in runs for line in lines]


async def running(world: PodWorld, cluster: Cluster, epoch: int) -> Object:
    """The pod of a try that has begun there."""
    await until(lambda: [kind for kind, _ in world.reports(epoch) if kind == "started"], f"the start of {epoch}", within_s=60)
    return of_epoch(cluster, epoch)[0]
