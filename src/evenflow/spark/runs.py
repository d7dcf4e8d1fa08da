"""The folder that a try shares with its driver (:mod:`evenflow.spark.driver`), as the try and its waiting trigger see it.

Below a base folder each task instance has one, and in it each of its tries. Its name has two halves: what the instance is called,
and a key of its own, which changes when it is cleared. A new try finds all that came before it by either half: by the key, whatever
the API is called where it runs, and by the name, also tries from before the clear.

A try may be *closed*: a claim without a driver keeps away each driver that might still come for it. Only that claim, the seal of a
driver, and the proof that its claimer is dead show that nothing of a try runs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from evenflow.spark import driver
from evenflow.spark.limits import FROZEN_AFTER, KEPT_FOR, LOST_AFTER

NOBODY = {"host": None}  # claims a closed try
DEAD = "dead"  # what a driver is told that was taken for dead, and wakes
SUBMITTED = "submitted.json"
MARK = "mark.json"  # of a base folder


class Life(StrEnum):
    OPEN = "open"  # a driver may come
    RUNNING = "running"
    ENDED = "ended"  # sealed
    LOST = "lost"  # its driver is dead, and has sealed nothing
    CLOSED = "closed"  # no driver came, and none can


@dataclass(frozen=True, slots=True)
class Seen:
    life: Life
    claim: dict[str, Any]
    result: dict[str, Any]

    @property
    def over(self) -> bool:
        return self.life not in (Life.OPEN, Life.RUNNING)

    @property
    def remote(self) -> bool:
        """Whether its driver has had the application made elsewhere."""
        return bool(self.claim.get("remote"))

    @property
    def where(self) -> str:
        return f"host {self.claim.get('host')}, process {self.claim.get('pid')}"


class Watch:
    """Looks at one try. That its beat stands still is only seen by looking for a while.

    On its own host a driver lives as long as its process: one that stands still has an application that may not.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._beat: Any = None
        self._since = time.monotonic()

    def look(self) -> Seen:
        claim = driver.read(self.folder / driver.CLAIM)
        if claim is None:
            return Seen(Life.OPEN, {}, {})
        if claim["host"] is None:
            return Seen(Life.CLOSED, claim, {})
        alive = _is_alive(claim)  # before its seal, which it writes as its last deed
        result = driver.read(self.folder / driver.RESULT)
        if result is not None:
            return Seen(Life.ENDED, claim, result)
        beat = driver.read(self.folder / driver.BEAT)
        if beat != self._beat:
            self._beat, self._since = beat, time.monotonic()
        lost = self._silent_for() > LOST_AFTER if alive is None else not alive
        return Seen(Life.LOST if lost else Life.RUNNING, claim, {})

    def end(self) -> Seen:
        """Asks for the end, or closes the try to drivers. It is over when :meth:`look` says so. A driver of this host that stands
        still does not hear it, and is killed.
        """
        seen = self.look()
        if not seen.over:
            if driver.claim(self.folder, NOBODY, "closed"):
                return self.look()
            self._leave("")
            seen = self.look()  # it may be lost by now
        if seen.life == Life.LOST:
            self._leave(DEAD)
        elif seen.life == Life.RUNNING and self._silent_for() > FROZEN_AFTER and _is_alive(seen.claim):
            _kill(seen.claim)  # what it has started dies with it
        return seen

    def _leave(self, word: str) -> None:
        """In the file by which a driver is told to end."""
        with suppress(FileNotFoundError):
            driver.write(self.folder / driver.STOP, word, lasting=False)

    def _silent_for(self) -> float:
        return time.monotonic() - self._since


def mark_of(base: Path) -> str:
    """What tells a base folder from all others, also from one of the same path on another host. It is made when it has none."""
    base.mkdir(parents=True, exist_ok=True)
    file = base / MARK
    if not file.exists():
        part = base / f".{MARK}.{uuid.uuid4().hex}"
        driver.write_part(part, uuid.uuid4().hex)
        with suppress(FileExistsError):
            os.link(part, file)
        part.unlink()
    return str(driver.read(file))


def folder_of_instance(base: Path, key: str, *names: object) -> Path:
    """``names`` are those of API, DAG, run, task and map index; each ``key`` has one folder, however the API is called here."""
    own = _digest(key)
    return next(base.glob(f"*-{own}"), base / f"{_digest(*names)}-{own}")


def folder_of_try(instance: Path, key: str) -> Path:
    return instance / _digest(key)


def tries_before(folder: Path) -> Iterator[Path]:
    """The other tries of its task instance, also of before it was cleared."""
    name, _, _ = folder.parent.name.partition("-")
    yield from sorted(each for each in folder.parent.parent.glob(f"{name}-*/*") if each.is_dir() and each != folder)


def _digest(*names: object) -> str:
    return hashlib.sha256("\0".join(map(str, names)).encode()).hexdigest()[:24]


def tidy(folder: Path) -> None:
    """Deletes all of an ended try but the proof that it is over, and what a driver that wakes is told: the rest may be secret."""
    for each in folder.iterdir() if folder.is_dir() else ():
        if each.name in (driver.CLAIM, driver.RESULT, driver.OUTPUT, driver.STOP, SUBMITTED):
            continue
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)


def sweep(base: Path, now: float) -> None:
    """Removes what is not needed any more: task instances whose last try began long ago and is over."""
    for instance in filter(Path.is_dir, base.iterdir()):
        with suppress(FileNotFoundError):
            if now - instance.stat().st_mtime > KEPT_FOR and all(Watch(each).look().over for each in instance.iterdir()):
                shutil.rmtree(instance, ignore_errors=True)


def _kill(claim: dict[str, Any]) -> None:
    """Kills the process of this claim, and no other one that has got its pid meanwhile."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(claim["pid"])
        try:
            if _is_alive(claim):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _is_alive(claim: dict[str, Any]) -> bool | None:
    """Whether its process is there; None where it cannot be seen, because process ids mean something else here."""
    if not claim["system"] or claim["system"] != driver.system():
        return None
    return bool(driver.born(claim["pid"]) == claim["born"])
