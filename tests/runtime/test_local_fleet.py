"""The host of a fleet: which workers it starts and ends, and when."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.errors import SettingsError
from evenflow.runtime.readiness import ReadinessSocket
from evenflow.runtime.up import child, local_fleet
from evenflow.runtime.up.celery_worker import CeleryWorkers
from evenflow.runtime.up.child import Child
from evenflow.runtime.up.local_fleet import LocalFleet
from evenflow.runtime.up.service_log import Line
from evenflow.store.serving import scaling
from evenflow.store.serving.executors import set_executor
from tests.waiting import WAIT_FOR_LOCKS, until
from tests.world import Unscheduled, at_once

WORKER = """
import os, signal, socket, sys, time
name, folder = sys.argv[1:]
open(f"{folder}/{name} began", "w").close()
while not os.path.exists(f"{folder}/go"):
    time.sleep(0.01)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
    told.sendto(b"READY=1", "\\0" + os.environ["NOTIFY_SOCKET"][1:])
open(f"{folder}/{name} is ready", "w").close()
signal.pause()
"""


class Notices:
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def log(self, service: str, line: Line) -> None: ...


@pytest.fixture
def world(db: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch) -> Unscheduled:
    monkeypatch.setattr(local_fleet, "LOOK_S", 0.05)
    monkeypatch.setattr(local_fleet, "STARTS", 1)
    return Unscheduled(db)


@asynccontextmanager
async def hosted(
    url: str,
    folder: Path,
    screen: Notices,
    start_within_s: float = 60.0,
    target: str = "native",
    fails: Sequence[Exception] = (),
    origin: CeleryWorkers | None = None,
) -> AsyncIterator[LocalFleet]:
    """Its workers are ready when the file ``go`` is there. ``fails``: what the first ones raise that are made."""
    failing = list(fails)

    def make(name: str) -> Child:
        if failing:
            raise failing.pop()
        job = {"command": [sys.executable, "-c", WORKER, name, str(folder)], "environment": dict(os.environ)}
        return Child(name, origin or CeleryWorkers(), job, folder / f"{name}.log", screen, start_within_s=start_within_s)

    told: dict[str, Any] = {"target": target, "policy": ScalingPolicy(), "queues": ["default"], "at_most_s": 30.0}
    fleet = LocalFleet(url, make_child=make, screen=screen, **told)
    await fleet.start()
    try:
        yield fleet
    finally:
        await fleet.stop()


def named(folder: Path, what: str) -> list[str]:
    return sorted(path.name.removesuffix(f" {what}").rpartition("-")[2] for path in folder.glob(f"* {what}"))


def under_way() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks()}


async def test_they_start_some_at_a_time_and_who_is_not_wanted_any_more_does_not(
    world: Unscheduled, database_url: str, tmp_path: Path
) -> None:
    """R-AS7: twenty that start at once are all late, and the first tasks wait for them."""
    async with hosted(database_url, tmp_path, Notices()) as fleet:
        at_once(scaling.add_native(world.awaited, fleet.name, 3))
        await until(lambda: named(tmp_path, "began") == ["1"], "the first to begin")
        at_once(scaling.end_native(world.awaited, fleet.name, [f"{fleet.name}-2"]))
        await until(lambda: len(at_once(scaling.list_native(world.awaited, fleet.name))) == 2, "the second to be forgotten")
        assert named(tmp_path, "began") == ["1"]
        (tmp_path / "go").touch()
        await until(lambda: named(tmp_path, "is ready") == ["1", "3"], "the last to be ready")
        assert named(tmp_path, "began") == ["1", "3"]


async def test_one_that_is_ready_late_is_not_ended(
    world: Unscheduled, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-AS6: on a busy machine it takes long, and by then it may work."""
    monkeypatch.setattr(local_fleet, "FAILED_S", 1.0)
    screen = Notices()
    async with hosted(database_url, tmp_path, screen, start_within_s=0.05) as fleet:
        at_once(scaling.add_native(world.awaited, fleet.name, 1))
        await until(lambda: screen.said, "it to be late")
        (tmp_path / "go").touch()
        await until(lambda: named(tmp_path, "is ready") == ["1"], "it to be ready")
        await until(lambda: f"start {fleet.name}-1" not in under_way(), "it to be looked at again")
        assert f"end {fleet.name}-1" not in under_way()


async def test_a_fleet_of_celery_says_which_executor_has_its_queue_instead(
    world: Unscheduled, database_url: str, tmp_path: Path
) -> None:
    """R-AS2: else no worker ever starts, and nobody says why; what is set while it runs counts, so it is no error."""
    screen = Notices()
    async with hosted(database_url, tmp_path, screen, target="celery"):
        pass
    [said] = screen.said
    assert "the queue default is of executor worker, of kind native, so no worker starts for it" in said
    assert "evenflow executors set NAME --kind celery --queue default --slots 64" in said
    at_once(set_executor(world.awaited, name="batch", kind="celery", queues=["default"], slots=4, options={}, by="test"))
    screen.said.clear()
    async with hosted(database_url, tmp_path, screen, target="celery"):
        pass
    assert screen.said == []


async def test_of_two_hosts_that_take_a_queue_at_once_one_is_refused(world: Unscheduled, database_url: str, tmp_path: Path) -> None:
    """R-AS2: each would start workers for the load of both."""
    told: dict[str, Any] = {"policy": ScalingPolicy(), "queues": ["default"], "at_most_s": 30.0, "make_child": None}
    fleets = [LocalFleet(database_url, target=target, screen=Notices(), **told) for target in ("native", "celery")]
    with psycopg.connect(database_url) as other, other.transaction():
        other.execute("lock table fleet in share row exclusive mode")
        starting = asyncio.gather(*(fleet.start() for fleet in fleets), return_exceptions=True)
        await until(lambda: world.one(WAIT_FOR_LOCKS) == 2, "both to wait")
    errors = await starting
    for fleet in fleets:
        await fleet.stop()
    [refused] = [error for error in errors if error is not None]
    assert isinstance(refused, SettingsError), errors
    assert "serves default already" in str(refused)


async def test_a_worker_that_cannot_be_made_is_tried_again_and_the_others_are_looked_after(
    world: Unscheduled, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-AS7: as where the disk is full or no file can be opened; the loop that starts workers goes on, and says so once."""
    monkeypatch.setattr(local_fleet, "FAILED_S", 0.05)
    screen = Notices()
    full = [OSError(28, "No space left on device")] * 3
    unmade = [OSError(24, "Too many open files")]

    class Socket(ReadinessSocket):
        def __init__(self) -> None:
            if unmade:
                raise unmade.pop()
            super().__init__()

    monkeypatch.setattr(child, "ReadinessSocket", Socket)
    async with hosted(database_url, tmp_path, screen, fails=full) as fleet:
        (tmp_path / "go").touch()
        at_once(scaling.add_native(world.awaited, fleet.name, 2))
        await until(lambda: len(named(tmp_path, "is ready")) == 2, lambda: str(screen.said))
    assert screen.said[0] == "the workers that there are to be are not looked after: [Errno 28] No space left on device"
    assert [text for text in screen.said[1:] if "cannot be started: [Errno 24] Too many open files" in text]
    assert len(screen.said) == 2, screen.said
