"""Waiting for what a try has submitted, in a triggerer: by its folder, and by the master while no driver has come."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from evenflow.errors import SparkEndUnknown, SparkUnavailable
from evenflow.sdk.triggers import BaseTrigger, TriggerEvent
from evenflow.spark.limits import BEGINS, ENDS_WITHIN, MASTER_EVERY, MASTER_SILENT, RUN_EVERY
from evenflow.spark.rest import RestServer
from evenflow.spark.runs import Life, Seen, Watch, tidy
from evenflow.spark.stages import RunStages
from evenflow.spark.ui import ui_of_run_told

_QUEUED = frozenset({"SUBMITTED", "RELAUNCHING"})  # at a master that has no worker with room for it


class SparkRunEnds(BaseTrigger):
    """Fires when nothing of a try runs any more, or ever will. The event: ``{"life": ..., "result": ..., "why": ...}``."""

    ends_it = False  # instead of waiting only

    def __init__(
        self, *, folder: str, rest: str | None = None, submission_id: str | None = None, poll_interval: float = RUN_EVERY
    ) -> None:
        self.folder, self.rest, self.submission_id, self.poll_interval = folder, rest, submission_id, poll_interval

    async def run(self) -> AsyncIterator[TriggerEvent]:
        waiting = _SparkRunWait(self)
        yield TriggerEvent(await waiting.over(self.poll_interval))

    async def on_kill(self) -> None:
        await asyncio.to_thread(end_run, Path(self.folder), self.rest, self.submission_id)


class EarlierSparkRunEnds(SparkRunEnds):
    """Ends what an earlier try has left, and fires when that is proven to be dead."""

    ends_it = True


class _SparkRunWait:
    def __init__(self, trigger: SparkRunEnds) -> None:
        self._trigger, self._watch = trigger, Watch(Path(trigger.folder))
        self._began = self._heard = time.monotonic()
        self._asked: float | None = None
        self._launched: float | None = None  # by the master, as far as it was asked
        self._ui_told = False
        self._stages = RunStages(self._watch.folder, trigger.ask)

    async def over(self, every_s: float) -> dict[str, Any]:
        while True:
            event = await asyncio.to_thread(self.look)
            if event is not None:
                return event
            if not self._trigger.ends_it:
                self._ui_told = self._ui_told or await ui_of_run_told(self._watch.folder, self._trigger.ask)
                await self._stages.pass_on()
            await asyncio.sleep(every_s)

    def look(self) -> dict[str, Any] | None:
        seen = self._watch.end() if self._trigger.ends_it else self._watch.look()
        if seen.life == Life.LOST:
            self._watch.end()  # its host may wake
        if seen.over:
            return event_of(seen)
        why = self._why_nobody_comes() if seen.life == Life.OPEN else None
        if why is None:
            return None
        if not self._watch.folder.is_dir():
            raise SparkEndUnknown(
                f"The folder by which a try and its driver talk, {self._watch.folder}, is not on the host of this triggerer, "
                f"{os.uname().nodename}: how the driver does is not known. Name one that drivers, workers and triggerers share, by "
                "?evidence=/shared/spark in the connection."
            )
        seen = self._watch.end()  # a driver may have come meanwhile: then it is asked to end
        return event_of(seen, why) if seen.over else None

    def _why_nobody_comes(self) -> str | None:
        """None while a driver may still come."""
        now = time.monotonic()
        if self._trigger.rest is None or self._trigger.submission_id is None:
            return f"no driver began within {BEGINS:.0f} s" if now - self._began > BEGINS else None
        if self._asked is not None and now - self._asked < MASTER_EVERY:
            return None
        self._asked = now
        try:
            state = RestServer(self._trigger.rest).state(self._trigger.submission_id)
        except SparkUnavailable as error:
            return str(error) if now - self._heard > MASTER_SILENT else None
        self._heard = now
        if state in _QUEUED:
            return None
        if state == "RUNNING":
            self._launched = now if self._launched is None else self._launched
            if now - self._launched < BEGINS:
                return None
        return f"the driver {self._trigger.submission_id} is {state} to the Spark master, and its application never began"


def event_of(seen: Seen, why: str = "") -> dict[str, Any]:
    return {"life": str(seen.life), "result": seen.result, "why": why, "where": seen.where if seen.claim.get("host") else ""}


def end_run(folder: Path, rest: str | None, submission_id: str | None, within_s: float = ENDS_WITHIN) -> Seen:
    """Ends what runs, and waits until it is over, for ``within_s`` at most; the next try handles what is left then."""
    watch, deadline = Watch(folder), time.monotonic() + within_s
    seen = watch.end()
    if seen.life == Life.CLOSED and rest is not None and submission_id is not None:
        RestServer(rest).kill(submission_id)  # it waits for room
    while not seen.over and time.monotonic() < deadline:
        time.sleep(0.2)
        seen = watch.end()
    if seen.over:
        tidy(folder)
    else:
        print(f"What runs on {seen.where} has not ended within {within_s:g} s; another try will wait for it.", flush=True)
    return seen
