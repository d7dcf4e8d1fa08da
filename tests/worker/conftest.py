"""A real API on a real database, and real workers with real processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.api.service import ApiService
from evenflow.core.limits import MAX_INLINE_XCOM
from evenflow.forking.exits import Exit
from evenflow.forking.owned_template import OwnedTemplate
from evenflow.forking.remains import Outrun, end_remains
from evenflow.membership.limits import TEMPLATE_MEMORY
from evenflow.membership.service import Member
from evenflow.wire.large_values import LargeValues
from evenflow.wire.objects import ObjectStorage
from evenflow.worker import limits
from evenflow.worker.service import WorkerService
from tests.tokens import fleet_token
from tests.worker.world import World

StartWorker = Callable[..., Awaitable[WorkerService]]
MODULE = """
from evenflow.forking.template import serve_template

def run(prepared, job, link):
    exec(job["do"])
    return {}, b""

serve_template(lambda config: None, run)
"""
StartTemplate = Callable[[], Awaitable[OwnedTemplate]]


class Heard:
    """What an owner heard of a child."""

    def __init__(self) -> None:
        self.pid = 0
        self.printed = b""
        self.end: Exit | None = None

    def started(self, pid: int) -> None:
        self.pid = pid

    def frame(self, head: bytes, body: bytes) -> None:
        pass

    def output(self, data: bytes) -> None:
        self.printed += data

    def exited(self, end: Exit) -> None:
        self.end = end


@pytest.fixture(autouse=True)
def _quick_beats(quick_beats: None) -> None: ...


@pytest.fixture
def world(api: ApiService, db: psycopg.Connection[Any], tmp_path: Path) -> World:
    return World(db, tmp_path / "logs")


@pytest.fixture
def worker_token(world: World) -> str:
    return fleet_token(world.conn, "worker")


@pytest.fixture
async def start_worker(api: ApiService, worker_token: str, tmp_path: Path) -> AsyncIterator[StartWorker]:
    """Starts workers; those that a test has not stopped are stopped after it."""
    async with AsyncExitStack() as stack:

        async def start(
            *,
            slots: int = 4,
            resume_slots: int = 1,
            template_memory: int = TEMPLATE_MEMORY,
            queues: tuple[str, ...] = ("default",),
            api_url: str = f"http://127.0.0.1:{api.port}",
            **more: Any,
        ) -> WorkerService:
            service = WorkerService(
                Member(name="w", api_url=api_url, token=worker_token, home=tmp_path / "home"),
                slots=slots,
                resume_slots=resume_slots,
                template_memory=template_memory,
                queues=list(queues),
                values=LargeValues(ObjectStorage(str(tmp_path / "xcom")), MAX_INLINE_XCOM),
                **more,
            )
            await service.start()
            stack.push_async_callback(service.stop)
            return service

        yield start


@pytest.fixture
async def worker(start_worker: StartWorker) -> WorkerService:
    return await start_worker()


@pytest.fixture
def outrun(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """As long as it is set, what a try has started forks more quickly than it can be killed."""
    outruns = threading.Event()
    outruns.set()

    def end(marks: set[int]) -> list[int]:
        if outruns.is_set():
            raise Outrun
        return end_remains(marks)

    monkeypatch.setattr(limits, "OUTRUN_PAUSE", 0.01)
    monkeypatch.setattr("evenflow.worker.leftovers.end_remains", end)
    return outruns


@asynccontextmanager
async def worker_process(api: ApiService, token: str, folder: Path) -> AsyncIterator[subprocess.Popen[bytes]]:
    """A worker in a process of its own, which is killed afterwards."""
    environment = {
        **os.environ,
        "EVENFLOW_HOME": str(folder / "home"),
        "EVENFLOW_API_URL": f"http://127.0.0.1:{api.port}",
        "EVENFLOW_TOKEN": token,
    }
    command = [sys.executable, "-m", "evenflow", "worker", "--slots", "2"]
    process = await asyncio.to_thread(subprocess.Popen, command, env=environment)
    try:
        yield process
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)


@pytest.fixture
async def start_template(tmp_path: Path) -> AsyncIterator[StartTemplate]:
    """Starts templates whose children do what they are told; they are closed after the test."""
    (tmp_path / "obedient.py").write_text(MODULE)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    async with AsyncExitStack() as stack:

        async def start() -> OwnedTemplate:
            template = await OwnedTemplate.start("obedient", {}, env=env, load_timeout_s=30)
            stack.push_async_callback(template.close)
            return template

        yield start
