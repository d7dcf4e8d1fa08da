"""Containers as processes of this machine: their output with times, their ends, and the memory that they may take.

Where a pod mounts an ``emptyDir`` or a secret, a directory of this machine stands for it: its path replaces the mount's in the
command, its arguments and the values of its environment.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

MEMORY_EVERY_S = 0.05
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "m": 1e-3}


def quantity(text: str | float) -> float:
    """``512Mi``, ``250m``, ``2``."""
    found = re.fullmatch(r"([0-9.]+)([a-zA-Z]*)", str(text))
    assert found is not None, text
    return float(found[1]) * _UNITS[found[2]]


@dataclass
class Line:
    at_ns: int
    text: bytes  # without its newline

    @property
    def stamp(self) -> str:
        whole, ns = divmod(self.at_ns, 10**9)
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{ns:09}Z"


@dataclass
class Log:
    lines: list[Line] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    def add(self, text: bytes) -> None:
        self.lines.append(Line(time.time_ns(), text))
        self._tell()

    def end(self) -> None:
        self.ended = True
        self._tell()

    def _tell(self) -> None:
        news, self.news = self.news, asyncio.Event()
        news.set()


class Container:
    """One start of a container. ``reason`` is set when others than the process itself have ended it."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.name = str(spec["name"])
        self.spec = spec
        self.log = Log()
        self.reason: str | None = None
        self.peak = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._output = asyncio.StreamReader(limit=2**24)
        self._life: asyncio.Task[int] | None = None

    async def start(self, command: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        self._process = _begun(command, env, folder)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self._output), self._process.stdout)
        self._life = asyncio.create_task(self._live(self._process))

    async def wait(self) -> int:
        """Its exit code, when its output is complete too."""
        assert self._life is not None
        return await asyncio.shield(self._life)

    def signal(self, number: int) -> None:
        """To its first process, as a runtime does; KILL ends all of them. Does nothing after its end: another process may have its
        pid.
        """
        if self._process is not None and self._process.returncode is None:
            (os.killpg if number == signal.SIGKILL else os.kill)(self._process.pid, number)

    def kill(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.signal(signal.SIGKILL)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def _live(self, process: subprocess.Popen[bytes]) -> int:
        others = [asyncio.create_task(self._read())]
        limit = (self.spec.get("resources") or {}).get("limits", {}).get("memory")
        if limit is not None:
            others.append(asyncio.create_task(self._watch_memory(quantity(limit))))
        await _ended(process.pid)
        self.signal(signal.SIGKILL)  # what it has left in its group: with its first process a container ends
        code = process.wait()  # only now its pid, and with it the group's id, is free for others
        for task in others[1:]:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self.log.end()
        return code if code >= 0 else 128 - code

    async def _read(self) -> None:
        while line := await self._output.readline():
            self.log.add(line.removesuffix(b"\n"))

    async def _watch_memory(self, limit: float) -> None:
        while True:
            with contextlib.suppress(psutil.Error):
                first = psutil.Process(self.pid)
                used = sum(process.memory_info().rss for process in (first, *first.children(recursive=True)))
                self.peak = max(self.peak, used)
                if used > limit:
                    self.kill("OOMKilled")
                    return
            await asyncio.sleep(MEMORY_EVERY_S)


def _begun(command: Sequence[str], env: Mapping[str, str], folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=env,
        start_new_session=True,
    )


async def _ended(pid: int) -> None:
    """Returns when this child has ended, and leaves it to be collected."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    descriptor = os.pidfd_open(pid)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def mounts_of(pod: Mapping[str, Any], container: Mapping[str, Any], folder: Path, secrets: Mapping[str, Any]) -> dict[str, Path]:
    """By the path in the container, the directory here that stands for it."""
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    out = {}
    for mount in container.get("volumeMounts") or ():
        here = folder / "volumes" / mount["name"]
        here.mkdir(parents=True, exist_ok=True)
        if "secret" in volumes[mount["name"]]:
            for name, value in secrets[volumes[mount["name"]]["secret"]["secretName"]]["data"].items():
                (here / name).write_bytes(base64.b64decode(value))
        out[mount["mountPath"]] = here
    return out


def environment(pod: Mapping[str, Any], container: Mapping[str, Any], secrets: Mapping[str, Any]) -> dict[str, str]:
    """What it says, and nothing of this process but where programs are."""
    out = {"PATH": os.environ["PATH"], "HOME": "/tmp", "HOSTNAME": pod["metadata"]["name"]}
    for entry in container.get("env") or ():
        source = entry.get("valueFrom") or {}
        if "secretKeyRef" in source:
            held = secrets[source["secretKeyRef"]["name"]]["data"][source["secretKeyRef"]["key"]]
            out[entry["name"]] = base64.b64decode(held).decode()
        elif "fieldRef" in source:
            found: Any = pod
            for name in source["fieldRef"]["fieldPath"].split("."):
                found = found[name]
            out[entry["name"]] = str(found)
        else:
            out[entry["name"]] = str(entry.get("value", ""))
    return out


def secrets_needed(pod: Mapping[str, Any], container: Mapping[str, Any]) -> set[str]:
    """Names of those without which it cannot start."""
    sources = [(entry.get("valueFrom") or {}).get("secretKeyRef") for entry in container.get("env") or ()]
    mounted = {mount["name"] for mount in container.get("volumeMounts") or ()}
    volumes = [
        volume["secret"]["secretName"]
        for volume in pod["spec"].get("volumes") or ()
        if volume["name"] in mounted and "secret" in volume
    ]
    return {source["name"] for source in sources if source} | set(volumes)


def placed(text: str, mounts: Mapping[str, Path]) -> str:
    """Whole paths, and what is below them: not another path in which the same letters stand."""
    for path, here in mounts.items():
        text = re.sub(rf"(?<![\w./-]){re.escape(path)}(?![\w.-])", lambda _, here=here: str(here), text)
    return text
