"""Tasks that wait deferred, on triggers of their own and on built-in ones. All that happens is in the ledger."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

from ledger import Bell, Entry

from evenflow import BaseOperator, BaseTrigger, Param, TimeDeltaTrigger, TriggerEvent, dag, get_current_context, task, wait_for

SPARE: dict[str, Any] = {"retries": 4, "retry_delay": 0.05}


class Rings(BaseTrigger):
    """Waits step by step until a moment of the host's monotonic clock, and says so in the ledger. ``of`` names the deferral, as no
    other one is named.
    """

    def __init__(self, of: str, until: float) -> None:
        self.of, self.until = of, until

    async def run(self) -> AsyncIterator[TriggerEvent]:
        bell = Bell(self.of)
        try:
            bell.begin()
            while (left := self.until - time.monotonic()) > 0:
                await asyncio.sleep(min(left, 0.1))
                bell.step()
            bell.end()
            yield TriggerEvent({"of": self.of})
        finally:
            bell.close()


class Waits(BaseOperator):
    """Is deferred ``times`` times, for ``seconds`` each."""

    def __init__(self, *, seconds: float, times: int = 1, **options: Any) -> None:
        super().__init__(**options)
        self.seconds, self.times = seconds, times

    def execute(self, context: Any) -> None:
        entry = Entry(context["ti"])
        entry.begin()
        self.wait(entry, context["ti"], 1)

    def wait(self, entry: Entry, ti: Any, nth: int) -> None:
        of = f"{ti.dag_id}.{ti.run_id}.{ti.task_id}.{ti.map_index}.{nth}.{ti.epoch}"
        entry.end("defers", of=of)
        self.defer(trigger=Rings(of, time.monotonic() + self.seconds), method_name="go_on", kwargs={"nth": nth, "of": of})

    def go_on(self, context: Any, event: dict[str, str], nth: int, of: str) -> int:
        entry = Entry(context["ti"])
        entry.begin()
        entry.end("resumes", of=of, event=event["of"])
        if nth < self.times:
            self.wait(entry, context["ti"], nth + 1)
        entry.work(0.1)
        entry.end()
        return nth


@dag(default_args=SPARE)
def waiting() -> None:
    """In a pool for two, which the first two keep while they wait."""

    @task
    async def asks() -> None:
        entry = Entry(get_current_context()["ti"])
        entry.begin()
        await wait_for(TimeDeltaTrigger(timedelta(seconds=0.3)))
        await wait_for(TimeDeltaTrigger(timedelta(seconds=0.2)))
        entry.work(0.05)
        entry.end()

    once = Waits(task_id="once", seconds=0.5, pool="narrow")
    twice = Waits(task_id="twice", seconds=1.0, times=2, pool="narrow")
    [once, twice] >> Waits(task_id="last", seconds=0.2) << asks()


@dag(default_args=SPARE, params={"size": Param(100, type="integer"), "seconds": Param(20.0, type="number")})
def herd() -> None:
    """As many as are asked for, which all wait at once, the last of them for half as long as the first."""

    @task
    def those() -> list[float]:
        context = get_current_context()
        entry = Entry(context["ti"])
        entry.begin()
        size, seconds = context["params"]["size"], context["params"]["seconds"]
        entry.end()
        return [seconds * (1 - number / size / 2) for number in range(size)]

    Waits.partial(task_id="one").expand(seconds=those())


waiting(), herd()
