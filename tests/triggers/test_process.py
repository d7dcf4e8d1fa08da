"""Waiting for processes: what can be known of one that is nobody's child, and what cannot."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from evenflow.errors import BadArgument, LookRefused
from evenflow.triggers.process import ProcessTrigger, identity_of, recording_exit
from tests.triggers.firing import event_of
from tests.waiting import wait_until


@pytest.fixture
def orphan() -> Iterator[Any]:
    """Starts ``sh -c script`` as nobody's child, as a task does that ends before it, and tells its id."""
    started: list[psutil.Process] = []

    def start(command: list[str]) -> int:
        launch = f"{' '.join(map(_quoted, command))} > /dev/null 2>&1 & echo $!"
        pid = int(subprocess.run(["sh", "-c", launch], capture_output=True, text=True, check=True, start_new_session=True).stdout)
        started.append(psutil.Process(pid))
        return pid

    yield start
    for process in started:
        if process.is_running():  # it, and no later one with its pid
            with suppress(ProcessLookupError):
                os.killpg(os.getpgid(process.pid), signal.SIGKILL)


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)


def until(gate: Path, then: str) -> list[str]:
    return ["sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.02; done; {then}"]


async def test_exit_code(orphan: Any, tmp_path: Path) -> None:
    gate, file = tmp_path / "gate", tmp_path / "exit code"
    pid = orphan(recording_exit(until(gate, "exit 3"), file))
    trigger = ProcessTrigger(**identity_of(pid), exit_file=file, poll_interval=0.1)
    waiting = asyncio.create_task(event_of(trigger))
    assert await trigger.look() is None
    gate.touch()
    assert await waiting == {"status": "failed", "exit_code": 3, "message": "The command ended with exit code 3."}
    file.write_text("0\n")
    assert await event_of(ProcessTrigger(exit_file=file)) == {"status": "success", "exit_code": 0}


async def test_killed_before_it_could_write(orphan: Any, tmp_path: Path) -> None:
    gate, file = tmp_path / "gate", tmp_path / "exit"
    pid = orphan(recording_exit(until(gate, "true"), file))
    trigger = ProcessTrigger(**identity_of(pid), exit_file=file, poll_interval=0.1)
    os.killpg(os.getpgid(pid), signal.SIGKILL)
    event = await event_of(trigger)
    assert (event["status"], event["exit_code"]) == ("failed", None)
    assert event["message"].startswith(f"Process {pid} is gone and has not written {file}: it was killed")


async def test_without_a_file_nobody_knows_the_code(orphan: Any, tmp_path: Path) -> None:
    pid = orphan(until(tmp_path / "gate", "exit 3"))
    trigger = ProcessTrigger(**identity_of(pid), poll_interval=0.1)
    assert await trigger.look() is None
    (tmp_path / "gate").touch()
    assert await event_of(trigger) == {"status": "ended", "exit_code": None}


def test_a_zombie_has_ended() -> None:
    with subprocess.Popen(["true"]) as child:
        identity = identity_of(child.pid)
        wait_until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
        assert asyncio.run(event_of(ProcessTrigger(**identity))) == {"status": "ended", "exit_code": None}


async def test_an_id_that_is_used_again() -> None:
    mine = identity_of(os.getpid())
    assert await ProcessTrigger(**mine).look() is None
    assert await event_of(ProcessTrigger(**{**mine, "started_at": mine["started_at"] - 60})) == {
        "status": "ended",
        "exit_code": None,
    }


async def test_another_host(tmp_path: Path) -> None:
    there: dict[str, Any] = {"pid": 7, "started_at": 1.0, "host": "elsewhere"}
    event = await event_of(ProcessTrigger(**there))
    assert event["status"] == "failed"
    assert "Process 7 runs on host 'elsewhere', and this triggerer on" in event["message"]
    shared = ProcessTrigger(**there, exit_file=tmp_path / "exit")
    assert await shared.look() is None, "on a shared disk its file will come"
    (tmp_path / "exit").write_text("0")
    assert await event_of(shared) == {"status": "success", "exit_code": 0}


async def test_a_file_with_something_else(tmp_path: Path) -> None:
    (tmp_path / "exit").write_text("done")
    event = await event_of(ProcessTrigger(exit_file=tmp_path / "exit"))
    assert "has 'done' and no exit code" in event["message"]


def test_arguments_are_checked() -> None:
    with pytest.raises(BadArgument, match="pid= or exit_file="):
        ProcessTrigger()
    with pytest.raises(BadArgument, match="identity_of"):
        ProcessTrigger(pid=1)
    with subprocess.Popen(["true"]) as child:
        child.wait()
    with pytest.raises(LookRefused, match="There is no process"):
        identity_of(child.pid)
