"""A broker and a worker of Celery beside an ``evenflow up``, for what runs there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from evenflow.client.rest import RestClient

START_S = 120.0
LOOK_S = 0.1


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class CeleryBeside:
    """A Redis, from the start on, and one worker once it is begun. Its slots are places of Celery's pool."""

    def __init__(self, home: Path, pool: str = "prefork") -> None:
        self._home, self._pool = home, pool
        process, self.broker = _start_redis(home)
        self.processes = [process]

    def begin(self, api_url: str, operator: str, state: Path, slots: int) -> None:
        """Returns when the worker takes messages of the queue of all shapes."""
        asyncio.run(set_executor(api_url, operator))
        command = [sys.executable, "-m", "evenflow", "tokens", "create", "worker", "--name", "bench", "--database"]
        environment = {**os.environ, "EVENFLOW_HOME": str(state)}
        token = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()[-1]
        own = {
            **os.environ,
            "EVENFLOW_HOME": str(self._home / "worker"),
            "EVENFLOW_API_URL": api_url,
            "EVENFLOW_TOKEN": token,
            "EVENFLOW_CELERY_BROKER": self.broker,
        }
        log_file = self._home / "celery.log"
        options = ["-Q", "default", "-c", str(slots), "-P", self._pool, "-l", "info", "--without-mingle", "--without-gossip"]
        with open(log_file, "wb") as log:
            command = [sys.executable, "-m", "celery", "-A", "evenflow.celery_app", "worker", *options]
            self.processes.append(subprocess.Popen(command, env=own, stdout=log, stderr=log, cwd=self._home))
        begin = time.monotonic()
        while " ready." not in log_file.read_text():
            time.sleep(LOOK_S)
            if self.processes[-1].poll() is not None or time.monotonic() - begin > START_S:
                raise RuntimeError(log_file.read_text())

    def trees(self) -> dict[str, list[psutil.Process]]:
        return {
            name: [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            for name, process in zip(("redis", "celery"), self.processes, strict=False)
        }

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            process.wait(60)


@contextlib.contextmanager
def redis(home: Path) -> Iterator[str]:
    """A broker with its files in ``home``; its URL."""
    process, url = _start_redis(home)
    try:
        yield url
    finally:
        process.terminate()
        process.wait(60)


async def set_executor(api_url: str, token: str, **given: Any) -> None:
    """The queue of all shapes is Celery's."""
    async with RestClient(api_url, token) as api:
        await api.set_executor("bench", kind="celery", queues=["default"], **given)


def _start_redis(home: Path) -> tuple[subprocess.Popen[bytes], str]:
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(home)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL), f"redis://127.0.0.1:{port}/0"
