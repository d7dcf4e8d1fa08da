"""A cluster on this machine, for tests: an API server on loopback, its controllers, and nodes whose pods are processes.

Everything lives in one event loop in a thread of its own; what a test calls here is carried out there.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from tests.kubernetes import controllers
from tests.kubernetes.containers import Container, Log
from tests.kubernetes.kubelet import Images, PodRun, set_condition
from tests.kubernetes.server import Api, Asked, Fault, make_node, serve
from tests.kubernetes.store import NODE, POD, Kind, Object, Store
from tests.waiting import wait_until

T = TypeVar("T")
NAMESPACE = "default"


class Cluster:
    def __init__(
        self, nodes: tuple[str, ...] = ("node-a", "node-b"), *, pods_per_node: int = 110, token: str | None = None
    ) -> None:
        self.store, self.images, self.token = Store(), Images(), token
        self.api = Api(self.store, self._logs, token)
        self.linger_s = 0.0  # that a node takes to say that a pod has ended
        self.port = 0
        self._nodes = nodes
        self._pods_per_node = pods_per_node
        self._runs: dict[str, PodRun] = {}
        self._cut_off = {name: asyncio.Event() for name in nodes}
        self._folder = Path(tempfile.mkdtemp(prefix="evenflow-pods-"))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None
        self._controlling: asyncio.Task[None] | None = None

    # -- its life

    def start(self) -> None:
        self._thread.start()
        self.call(self._start())

    def stop(self) -> None:
        """All processes of its pods end with it."""
        self.call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def stop_api(self) -> None:
        """Nobody answers; nodes go on."""
        self.call(self._stop_api())

    def start_api(self) -> None:
        """At the same port."""
        self.call(self._start_api())

    async def _start(self) -> None:
        for name in self._nodes:
            self.store.create(NODE, "", make_node(name, self._pods_per_node, {"kubernetes.io/hostname": name}))
        await self._start_api()
        self._controlling = asyncio.create_task(self._control())

    async def _start_api(self) -> None:
        self._runner, self.port = await serve(self.api.handle, self.port)

    async def _stop_api(self) -> None:
        self.cut_watches()
        assert self._runner is not None
        await self._runner.cleanup()

    async def _stop(self) -> None:
        assert self._controlling is not None
        self._controlling.cancel()
        for run in self._runs.values():
            run.kill()
        await asyncio.gather(*(run.gone() for run in self._runs.values()))
        await self._stop_api()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _control(self) -> None:
        version = 0
        while True:
            await self.store.changed(version, 60)
            version = self.store.version
            controllers.reconcile(self.store)
            self._serve_nodes()

    def _serve_nodes(self) -> None:
        for pod in self.store.list(POD):
            uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
            if node is None or self._cut_off[node].is_set():
                continue
            if uid not in self._runs and pod["status"]["phase"] not in ("Succeeded", "Failed"):
                self._runs[uid] = PodRun(
                    self.store, pod, self.images, self._folder / uid, lambda: self.linger_s, self._cut_off[node]
                )
            if "deletionTimestamp" in pod["metadata"] and uid in self._runs:
                self._runs[uid].terminate(pod["metadata"]["deletionGracePeriodSeconds"])
        known = {obj["metadata"]["uid"] for obj in self.store.objects[POD].values()}
        for uid in self._runs.keys() - known:  # deleted without grace
            self._runs[uid].terminate(0)

    def _logs(self, uid: str, node: str, container: str) -> list[Log] | None:
        if node in self._cut_off and self._cut_off[node].is_set():
            return None
        return self._runs[uid].logs.get(container, []) if uid in self._runs else []

    def call(self, what: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(30)

    def do(self, function: Callable[[], T]) -> T:
        async def done() -> T:
            if self._controlling is not None and self._controlling.done():
                self._controlling.result()  # what has ended it
            return function()

        return self.call(done())

    # -- for tests: what there is

    @property
    def uri(self) -> str:
        token = f"&token={self.token}" if self.token else ""
        return f"kubernetes://127.0.0.1:{self.port}/?tls=off&namespace={NAMESPACE}{token}"

    @property
    def asked(self) -> list[Asked]:
        return self.api.asked

    def objects(self, kind: Kind = POD) -> list[Object]:
        return self.do(lambda: self.store.list(kind))

    def pod(self, name: str) -> Object | None:
        return self.do(lambda: self.store.find(POD, NAMESPACE, name))

    def create(self, kind: Kind, obj: Object) -> Object:
        return self.do(lambda: self.store.create(kind, NAMESPACE, obj))

    def replace(self, kind: Kind, obj: Object, *, status: bool = False) -> Object:
        return self.do(lambda: self.store.replace(kind, obj, status=status))

    def wait_for_pod(self, fits: Callable[[Object], object] = bool) -> Object:
        """The first that fits."""
        return wait_until(lambda: next((pod for pod in self.objects() if fits(pod)), None), lambda: f"a pod, of {self.objects()}")

    def container(self, pod: Object, name: str = "") -> Container:
        """Its newest start."""
        run = self._runs[pod["metadata"]["uid"]]
        return run.containers[name or pod["spec"]["containers"][0]["name"]]

    # -- for tests: what happens

    def fail(
        self, method: str, path: str, *, times: int = 1, status: int | None = None, cut: str = "", retry_after_s: int | None = None
    ) -> Fault:
        """The next requests that fit are answered with ``status``, or cut off ``before`` or ``after`` they are carried out."""
        fault = Fault(method, path, times, status, cut, retry_after_s)
        self.do(lambda: self.api.faults.append(fault))
        return fault

    @contextmanager
    def hold(self, method: str, path: str) -> Iterator[Fault]:
        """The next request that fits is carried out when this is left; it has come when no more ``times`` are left of it."""
        fault = Fault(method, path, 1, held=asyncio.Event())
        self.do(lambda: self.api.faults.append(fault))
        try:
            yield fault
        finally:
            assert fault.held is not None
            self.do(fault.held.set)

    def cut_watches(self) -> None:
        for task in list(self.api.watches):
            self._loop.call_soon_threadsafe(task.cancel)

    def forget_history(self) -> None:
        """Who watches from a version before this one is told 410."""
        self.do(self.store.compact)

    def run_out_of_memory(self, pod: Object, container: str = "") -> None:
        self.do(lambda: self.container(pod, container).kill("OOMKilled"))

    def evict_by_node(self, pod: Object, message: str = "The node was low on resource: memory.") -> None:
        self.do(lambda: self._runs[pod["metadata"]["uid"]].evict("Evicted", message))

    def disrupt(self, pod: Object, reason: str, grace_s: int | None = None) -> None:
        """``PreemptionByScheduler``, ``EvictionByEvictionAPI``, ...: marked, then deleted."""
        self.do(lambda: controllers.disrupt(self.store, pod, reason, grace_s))

    def lose_node(self, node: str, *, die: bool = True) -> None:
        """It is silent from now on, and with ``die`` its processes end."""

        def lose() -> None:
            self._cut_off[node].set()
            found = self.store.get(NODE, "", node)
            found["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
            self.store.replace(NODE, found, status=True)
            for pod in self.store.list(POD, None, lambda pod: pod["spec"].get("nodeName") == node):
                set_condition(pod, "Ready", False, "NodeNotReady")
                self.store.replace(POD, pod, status=True)
                if die and pod["metadata"]["uid"] in self._runs:
                    self._runs[pod["metadata"]["uid"]].kill()

        self.do(lose)

    def evict_from_lost(self, node: str) -> None:
        """As minutes after: its pods are marked for deletion, and stay, for nobody there says that they have ended."""

        def mark() -> None:
            for pod in self.store.list(POD, None, lambda pod: pod["spec"].get("nodeName") == node):
                controllers.disrupt(self.store, pod, "DeletionByTaintManager")

        self.do(mark)

    def remove_node(self, node: str) -> None:
        """Its object goes, and the pods that nobody can end any more go with it."""

        def remove() -> None:
            self.store.delete(NODE, "", node)
            for pod in self.store.list(POD, None, lambda pod: pod["spec"].get("nodeName") == node):
                set_condition(pod, "DisruptionTarget", True, "DeletionByPodGC")
                self.store.remove(POD, self.store.replace(POD, pod, status=True))

        self.do(remove)

    def not_ready(self, pod: Object) -> None:
        def mark() -> None:
            found = self.store.get(POD, NAMESPACE, pod["metadata"]["name"])
            set_condition(found, "Ready", False, "ContainersNotReady")
            self.store.replace(POD, found, status=True)

        self.do(mark)


@contextmanager
def kubernetes(*nodes: str, pods_per_node: int = 110, token: str | None = None) -> Iterator[Cluster]:
    cluster = Cluster(nodes or ("node-a", "node-b"), pods_per_node=pods_per_node, token=token)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()
