"""A node's agent: it starts the containers of the pods that are bound to it, tells how they are, and ends them."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kubernetes.containers import Container, Log, environment, mounts_of, placed, secrets_needed
from tests.kubernetes.errors import Refused
from tests.kubernetes.store import POD, SECRET, Object, Store, stamp

_IMAGE = re.compile(r"[a-z0-9][a-z0-9._/:@-]*")


@dataclass
class Images:
    """``missing`` cannot be pulled; ``commands`` are what images run when a pod says none; ``slow`` are pulled when it is set."""

    missing: set[str] = field(default_factory=set)
    commands: dict[str, list[str]] = field(default_factory=dict)
    pulled: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.pulled.set()


class PodRun:
    """One pod on its node."""

    def __init__(
        self, store: Store, pod: Object, images: Images, folder: Path, linger: Callable[[], float], cut_off: asyncio.Event
    ) -> None:
        self._store, self._images, self._folder, self._linger, self._cut_off = store, images, folder, linger, cut_off
        self.namespace, self.name, self.uid = pod["metadata"]["namespace"], pod["metadata"]["name"], pod["metadata"]["uid"]
        self._pod = pod
        self.containers: dict[str, Container] = {}
        self.logs: dict[str, list[Log]] = {}
        self._restarts: dict[str, int] = {}
        self._states: dict[str, dict[str, Any]] = {}
        self._ended = False
        self._grace_s, self._grace_over = math.inf, asyncio.Event()
        self._end_as: dict[str, Any] | None = None  # of a pod that its node ends: phase, reason, message
        self.task = asyncio.create_task(self._live())

    # -- from outside

    def terminate(self, grace_s: int) -> None:
        """TERM to all, after ``grace_s`` KILL, then the object goes. A later call may shorten that."""
        if grace_s < self._grace_s:
            self._grace_s = grace_s
            asyncio.get_running_loop().call_later(grace_s, self._grace_over.set)
        if getattr(self, "_terminating", None) is None:
            self._terminating = asyncio.create_task(self._terminate())

    def evict(self, reason: str, message: str) -> None:
        """By the node itself: the object stays, failed."""
        self._end_as = {"phase": "Failed", "reason": reason, "message": message}
        self._signal(signal.SIGKILL)

    def kill(self) -> None:
        """Without a word, as a machine that fails."""
        self.task.cancel()
        self._signal(signal.SIGKILL)

    async def gone(self) -> None:
        """After :meth:`kill`."""
        await asyncio.gather(self.task, *(container.wait() for container in self.containers.values()), return_exceptions=True)

    # -- its life

    async def _live(self) -> None:
        spec = self._pod["spec"]
        sidecars: list[asyncio.Task[int]] = []
        try:
            for each in spec.get("initContainers") or ():
                if not await self._pull(each):
                    return
                container = await self._begin(each)
                if each.get("restartPolicy") == "Always":
                    sidecars.append(asyncio.create_task(self._end_of(container)))
                elif await self._end_of(container):
                    self._over("Failed")
                    return
            for each in spec["containers"]:
                if not await self._pull(each):
                    return
            codes = await asyncio.gather(*(self._run(each) for each in spec["containers"]))
            for each in spec.get("initContainers") or ():
                if each["name"] in self.containers:
                    self.containers[each["name"]].signal(signal.SIGTERM)
            if sidecars:
                _, left = await asyncio.wait(sidecars, timeout=spec.get("terminationGracePeriodSeconds", 30))
                for each in spec.get("initContainers") or () if left else ():
                    self.containers[each["name"]].kill("Error")
                await asyncio.gather(*sidecars)
            self._over("Failed" if any(codes) else "Succeeded")
        finally:
            self._ended = True

    async def _pull(self, spec: dict[str, Any]) -> bool:
        """Whether it is there; a pod whose image is not waits for ever."""
        image, name = spec["image"], spec["name"]
        if not _IMAGE.fullmatch(image):
            self._wait(name, "InvalidImageName", f'Failed to apply default image tag "{image}": couldn\'t parse image name')
        elif image in self._images.missing and spec.get("imagePullPolicy") == "Never":
            self._wait(name, "ErrImageNeverPull", f'Container image "{image}" is not present with pull policy of Never')
        elif image in self._images.missing:
            self._wait(name, "ErrImagePull", f'failed to pull and unpack image "{image}": not found')
            self._wait(name, "ImagePullBackOff", f'Back-off pulling image "{image}"')
        else:
            if not self._images.pulled.is_set():
                self._wait(name, "ContainerCreating", "")
                await self._images.pulled.wait()
            return True
        await asyncio.Event().wait()
        return False

    async def _run(self, spec: dict[str, Any]) -> int:
        while True:
            code = await self._end_of(await self._begin(spec))
            if self._pod["spec"].get("restartPolicy", "Always") == "Never" or self._is_ending() or self._end_as:
                return code
            self._restarts[spec["name"]] = self._restarts.get(spec["name"], 0) + 1

    async def _secrets(self, spec: dict[str, Any]) -> dict[str, Any]:
        """All of the namespace, when those are there that the container needs."""
        while True:
            version = self._store.version
            secrets = {obj["metadata"]["name"]: obj for obj in self._store.list(SECRET, self.namespace)}
            missing = sorted(secrets_needed(self._pod, spec) - secrets.keys())
            if not missing:
                return secrets
            self._wait(spec["name"], "CreateContainerConfigError", f'secret "{missing[0]}" not found')
            version = max(version, self._store.version)
            await self._store.changed(version, 1.0)

    async def _begin(self, spec: dict[str, Any]) -> Container:
        secrets = await self._secrets(spec)
        mounts = mounts_of(self._pod, spec, self._folder, secrets)
        command = [
            *(spec.get("command") or self._images.commands.get(spec["image"], ["sleep", "infinity"])),
            *(spec.get("args") or ()),
        ]
        env = {name: placed(value, mounts) for name, value in environment(self._pod, spec, secrets).items()}
        container = self.containers[spec["name"]] = Container(spec)
        self.logs.setdefault(spec["name"], []).append(container.log)
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            await container.start([placed(word, mounts) for word in command], env, self._folder)
        except OSError as error:
            said = f'exec: "{command[0]}": {error.strerror}'
            end = {"exitCode": 128, "reason": "StartError", "message": said, "finishedAt": stamp()}
            self._states[spec["name"]] = {"terminated": end}
            self._over("Failed")
            await asyncio.Event().wait()  # it is ended by whoever deletes it
        self._states[spec["name"]] = {"running": {"startedAt": stamp()}}
        self._tell()
        return container

    async def _end_of(self, container: Container) -> int:
        began = self._states[container.name]["running"]["startedAt"]
        code = await container.wait()
        reason = container.reason or ("Completed" if code == 0 else "Error")
        self._states[container.name] = {
            "terminated": {
                "exitCode": code,
                "reason": reason,
                "startedAt": began,
                "finishedAt": stamp(),
                "containerID": f"local://{container.pid}",
            }
        }
        self._tell()
        return code

    async def _terminate(self) -> None:
        self._signal(signal.SIGTERM)
        if self.containers and not self._ended:
            over = asyncio.create_task(self._grace_over.wait())
            await asyncio.wait([self.task, over], return_when=asyncio.FIRST_COMPLETED)
            over.cancel()
            if not self._ended:
                self._signal(signal.SIGKILL)
                await asyncio.wait([self.task], timeout=5)
        self.task.cancel()
        if linger := self._linger():
            await asyncio.sleep(linger)
        if not self._cut_off.is_set():
            with contextlib.suppress(Refused):
                found = self._store.get(POD, self.namespace, self.name)
                if found["metadata"]["uid"] == self.uid and not found["metadata"].get("finalizers"):
                    self._store.remove(POD, found)

    def _signal(self, number: int) -> None:
        for container in self.containers.values():
            container.signal(number)

    # -- what it tells

    def _is_ending(self) -> bool:
        return getattr(self, "_terminating", None) is not None

    def _wait(self, name: str, reason: str, message: str) -> None:
        self._states[name] = {"waiting": {"reason": reason, "message": message}}
        self._tell()

    def _over(self, phase: str) -> None:
        self._tell(self._end_as or {"phase": phase})

    def _tell(self, end: dict[str, Any] | None = None) -> None:
        """Of a node that is cut off nobody hears."""
        found = self._store.find(POD, self.namespace, self.name)
        if found is None or found["metadata"]["uid"] != self.uid or self._cut_off.is_set():
            return
        spec, status = found["spec"], found["status"]
        for field_name, specs in (
            ("initContainerStatuses", spec.get("initContainers") or ()),
            ("containerStatuses", spec["containers"]),
        ):
            status[field_name] = [self._status(each) for each in specs]
        own = [self._states.get(each["name"], {}) for each in spec["containers"]]
        ready = (
            all("running" in state for state in own) and found["metadata"].get("annotations", {}).get("tests/not-ready") != "true"
        )
        if any("running" in state or "terminated" in state for state in own) and status["phase"] == "Pending":
            status["phase"], status["startTime"] = "Running", stamp()
        set_condition(found, "Ready", ready, "" if ready else "ContainersNotReady")
        if end is not None:
            status.update(end)
            if end.get("reason") == "Evicted":
                set_condition(found, "DisruptionTarget", True, "TerminationByKubelet", end["message"])
        self._store.replace(POD, found, status=True)

    def _status(self, spec: dict[str, Any]) -> dict[str, Any]:
        state = self._states.get(spec["name"], {"waiting": {"reason": "PodInitializing"}})
        return {
            "name": spec["name"],
            "image": spec["image"],
            "imageID": "" if "waiting" in state else f"sha256:{spec['image']}",
            "ready": "running" in state,
            "started": "waiting" not in state,
            "restartCount": self._restarts.get(spec["name"], 0),
            "state": state,
            "lastState": {},
        }


def set_condition(obj: Object, kind: str, true: bool, reason: str = "", message: str = "") -> None:
    conditions = obj.setdefault("status", {}).setdefault("conditions", [])
    before = next((each for each in conditions if each["type"] == kind), None)
    status = str(true)
    since = before["lastTransitionTime"] if before is not None and before["status"] == status else stamp()
    if before is not None:
        conditions.remove(before)
    conditions.append({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
