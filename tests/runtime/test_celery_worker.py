"""A worker of Celery as a child of ``evenflow up``: what it says, how it ends, and how it is told to."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from evenflow.api.service import ApiService
from evenflow.core.executors import CELERY
from evenflow.errors import ServiceFailed
from evenflow.forking.exits import Exit
from evenflow.runtime.readiness import ReadinessSocket
from evenflow.runtime.up.celery_worker import CeleryProcess, CeleryWorkers, celery_job
from evenflow.store.serving import executors
from tests.executors.brokers import Redis
from tests.tokens import fleet_token
from tests.waiting import until, wait_until
from tests.world import Unscheduled, at_once

SCRIPT = """
import os, signal, sys, time
def told(signum, frame):
    print("told", signal.Signals(signum).name, flush=True)
    if signum == signal.SIGQUIT: sys.exit(3)
signal.signal(signal.SIGTERM, told)
signal.signal(signal.SIGQUIT, told)
print("begun", flush=True)
while True: signal.pause()
"""
ENDS_BEFORE_ITS_CHILD = """
import subprocess, sys
print("child", subprocess.Popen(["sleep", "60"], start_new_session=len(sys.argv) > 1).pid, flush=True)
if len(sys.argv) == 1:
    import signal
    signal.pause()
"""

ENDS_WHEN_TOLD = """
import signal, sys
signal.signal(signal.SIGUSR1, lambda *told: sys.exit())
print("begun", flush=True)
signal.pause()
"""
IS_SURVIVED = """
import os, pathlib, signal, sys, time
parent = os.getpid()
if os.fork(): signal.pause()
os.setsid()
print(os.getpid(), flush=True)
while os.getppid() == parent: time.sleep(0.01)
print("late", flush=True)
pathlib.Path(sys.argv[1]).touch()
signal.pause()
"""


class Heard:
    def __init__(self) -> None:
        self.text = ""
        self.end: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()

    def started(self, pid: int) -> None: ...

    def frame(self, head: bytes, body: bytes) -> None: ...

    def output(self, data: bytes) -> None:
        self.text += data.decode()

    def exited(self, end: Exit) -> None:
        self.end.set_result(end)


async def _begin(script: str, *arguments: str) -> tuple[CeleryProcess, Heard]:
    heard = Heard()
    job = {"command": [sys.executable, "-c", script, *arguments], "environment": dict(os.environ)}
    process = await CeleryWorkers().begin(job, heard)
    await until(lambda: heard.text.endswith("\n"), "it to begin")
    return process, heard


async def test_a_second_word_to_end_is_a_cold_shutdown() -> None:
    """R-AS8: the first one lets it finish what it has."""
    process, heard = await _begin(SCRIPT)
    process.send_signal(signal.SIGTERM)
    await until(lambda: "told SIGTERM\n" in heard.text, "it to hear the first")
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(heard.end, 20) == Exit(3)
    assert heard.text.endswith("told SIGQUIT\n")
    process.send_signal(signal.SIGTERM)


async def test_its_end_is_heard_though_what_it_has_started_still_has_its_output() -> None:
    """R-EX2: as the worker beside one that was killed."""
    _, heard = await _begin(ENDS_BEFORE_ITS_CHILD, "and ends")
    assert await asyncio.wait_for(heard.end, 20) == Exit(0)
    left = psutil.Process(int(heard.text.split()[-1]))
    assert left.is_running()
    left.kill()


async def test_what_is_said_at_the_moment_of_its_end_is_read_once(tmp_path: Path) -> None:
    """Both are there when the loop looks, as on a busy machine."""
    process, heard = await _begin(IS_SURVIVED, str(tmp_path / "said"))
    survivor, flaws = psutil.Process(int(heard.text)), list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda loop, told: flaws.append(told))
    process.send_signal(signal.SIGKILL)
    wait_until((tmp_path / "said").exists, "what it is survived by to speak")
    assert await asyncio.wait_for(heard.end, 20) == Exit(-signal.SIGKILL)
    assert heard.text.endswith("late\n")
    survivor.kill()
    assert flaws == []


async def test_who_kills_it_kills_its_pool() -> None:
    process, heard = await _begin(ENDS_BEFORE_ITS_CHILD)
    place = int(heard.text.split()[-1])
    process.send_signal(signal.SIGKILL)
    assert await asyncio.wait_for(heard.end, 20) == Exit(-signal.SIGKILL)
    await until(lambda: not psutil.pid_exists(place) or psutil.Process(place).status() == psutil.STATUS_ZOMBIE, "its pool to end")


async def test_one_that_has_ended_unseen_may_be_told_to_end_and_killed() -> None:
    """Its pid stays its own until its end is seen."""
    process, heard = await _begin(ENDS_WHEN_TOLD)
    left = psutil.Process(process._process.pid)
    left.send_signal(signal.SIGUSR1)
    wait_until(lambda: left.status() == psutil.STATUS_ZOMBIE, "its end, which the loop does not see")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGKILL)
    assert await asyncio.wait_for(heard.end, 20) == Exit(0)


async def test_what_cannot_be_started_is_a_service_that_failed() -> None:
    with pytest.raises(ServiceFailed, match="cannot be started"):
        await CeleryWorkers().begin({"command": ["/nonexistent/celery"], "environment": {}}, Heard())


@pytest.mark.system
async def test_it_says_that_it_is_live_for_as_long_as_it_is(api: ApiService, db: psycopg.Connection[Any], tmp_path: Path) -> None:
    """R-AS6, R-HA5: who says so no more is taken for one that hangs, and ended with what it has; and it ends when it is told to."""
    told: dict[str, Any] = {"name": "batch", "kind": CELERY, "queues": ["etl"], "slots": 9, "options": {}, "by": "test"}
    assert at_once(executors.set_executor(Unscheduled(db).awaited, **told))
    broker, readiness, heard = Redis(tmp_path / "redis"), ReadinessSocket(), Heard()
    await asyncio.to_thread(broker.start)
    own = {"HOME": str(tmp_path / "home"), "API_URL": f"http://127.0.0.1:{api.port}", "CELERY_BROKER": broker.url}
    try:
        job = celery_job("celery@h-1", ["etl"], 2, os.environ, TOKEN=fleet_token(db, "worker"), **own)
        process = await CeleryWorkers().begin({**job, "environment": {**job["environment"], **readiness.environment}}, heard)
        await until(lambda: readiness.ready.is_set() or heard.end.done(), "it to be ready", within_s=120)
        for _ in range(2):
            said = readiness.live_at
            await until(lambda said=said: readiness.live_at != said, lambda: heard.text, within_s=60)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(heard.end, 60) == Exit(0), heard.text
    finally:
        readiness.close()
        await asyncio.to_thread(broker.end)


def test_it_has_settings_of_a_worker_and_no_secret_of_others() -> None:
    """R-SE1: nothing secret is in its command either."""
    environ = {
        "PATH": "/bin",
        "EVENFLOW_DATABASE_URL": "postgresql://secret",
        "EVENFLOW_SECRET_KEYS_FILE": "/keys",
        "EVENFLOW_TOKEN": "operator",
        "EVENFLOW_TOKEN_FILE": "/token",
        "EVENFLOW_TLS_CA": "/ca",
    }
    job = celery_job("celery@h-1", ["a", "b"], 4, environ, TOKEN="worker", CELERY_BROKER="redis://:pw@h/0")
    assert job["environment"] == {
        "PATH": "/bin",
        "EVENFLOW_TLS_CA": "/ca",
        "EVENFLOW_TOKEN": "worker",
        "EVENFLOW_CELERY_BROKER": "redis://:pw@h/0",
    }
    words = " ".join(job["command"])
    assert "-Q a,b -c 4" in words
    assert "-n celery@h-1" in words
    assert not {"pw", "postgresql", "operator"} & set(words.split())
