"""What the stages of an application take, kept with its try while it runs and when it ends.

A session of this process tells it to the try. The driver of a submitted application writes it into the folder of the try, from
where it is passed on. When either is lost, its last report stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenflow.errors import ApiRefused, NoContext
from evenflow.spark import driver
from evenflow.spark.status import ApplicationCost, ApplicationFigures, Telling, without_noughts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Keep = Callable[[str, dict[str, Any]], None]  # with the try: a kind of wire.questions.RecordKind and a value of JSON


@contextmanager
def stages_told(spark: SparkSession, keep: Keep) -> Iterator[None]:
    """For a classic session, as long as it lasts; its total cost is kept at its end, however it ends."""
    costs: list[ApplicationCost] = []

    def tell(figures: ApplicationFigures, cost: ApplicationCost) -> None:
        costs[:] = [cost]
        keep("spark_stages", without_noughts(figures))

    telling = Telling(spark.sparkContext, tell)
    try:
        yield
    finally:
        telling.end()
        if costs:
            keep("spark_cost", asdict(costs[0]))


def stages_of_run_kept(folder: Path, keep: Keep) -> None:
    """What the driver of a try that is over has told last."""
    told = driver.read(folder / driver.STAGES)
    if told is not None:
        keep("spark_stages", told["stages"])
        keep("spark_cost", told["cost"])


class RunStages:
    """The stages of a submitted application, passed on by the trigger that waits for it."""

    def __init__(self, folder: Path, ask: Callable[[str, dict[str, Any]], Awaitable[Any]]) -> None:
        self._path, self._ask = folder / driver.STAGES, ask
        self._written_ns = 0

    async def pass_on(self) -> None:
        """What has been written since the last time."""
        told = await asyncio.to_thread(self._read)
        if told is not None:
            with suppress(ApiRefused, NoContext):  # the API does not keep it: the trigger continues to wait for the driver
                await self._ask("record", {"kind": "spark_stages", "value": told["stages"]})

    def _read(self) -> Any:
        with suppress(OSError):
            written_ns = self._path.stat().st_mtime_ns
            if written_ns != self._written_ns:
                self._written_ns = written_ns
                return driver.read(self._path)
        return None
