"""What Spark is doing just now, for people: the stages of the running jobs, told while they run.

A classic session is asked twice a second by a thread of its own. A Spark Connect server tells by itself, within the call that
waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

from evenflow.spark.limits import PROGRESS_POLL, PROGRESS_STAGES
from evenflow.spark.status import short_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo

TellProgress = Callable[[str, int, int, dict[str, Any]], None]  # label, done, total, detail


@dataclass(frozen=True, slots=True)
class Stage:
    """``done``, ``active`` and ``failed`` count Spark's tasks, of ``total``. Spark Connect gives only ``done`` and ``total``."""

    stage_id: int
    name: str
    done: int
    total: int
    active: int = 0
    failed: int = 0


class StageTeller:
    """Passes on what stages say, when it differs from the last time."""

    def __init__(self, progress: TellProgress) -> None:
        self._progress = progress
        self._last: list[Stage] = []

    def tell(self, stages: Iterable[Stage]) -> None:
        """``stages`` are those of all running jobs, including ended and waiting ones; none means that Spark rests."""
        stages = sorted(stages, key=lambda stage: stage.stage_id)
        if not stages or stages == self._last:
            return
        self._last = stages
        at_work = [stage for stage in stages if stage.done < stage.total] or stages
        label = f"stage {at_work[0].stage_id}" + (f": {at_work[0].name}" if at_work[0].name else "")
        done, total = sum(stage.done for stage in stages), sum(stage.total for stage in stages)
        self._progress(label, done, total, {"stages": [asdict(stage) for stage in at_work[:PROGRESS_STAGES]]})


@contextmanager
def classic_progress(spark: SparkSession, progress: TellProgress) -> Iterator[None]:
    """Tells ``progress`` of the jobs of a classic session every half second, from a thread that ends before this returns."""
    teller, ended = StageTeller(progress), threading.Event()

    def poll() -> None:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        while not ended.wait(PROGRESS_POLL):
            try:
                teller.tell(_running_stages(spark))
            except (Py4JError, OSError):
                return  # the JVM is gone: the task's own call fails with the reason

    thread = threading.Thread(target=poll, name="spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def connect_progress(spark: SparkSession, progress: TellProgress) -> Iterator[None]:
    """Tells ``progress`` what a Spark Connect server says while a query of this session runs."""
    teller = StageTeller(progress)

    def handler(stages: Iterable[StageInfo] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        teller.tell(Stage(s.stage_id, "", s.num_completed_tasks, s.num_tasks) for s in stages or ())

    spark.registerProgressHandler(cast("ProgressHandler", handler))
    try:
        yield
    finally:
        spark.removeProgressHandler(cast("ProgressHandler", handler))


def _running_stages(spark: SparkSession) -> list[Stage]:
    context = spark.sparkContext
    if context._jsc is None:  # the task stopped the session itself
        return []
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job_id) for job_id in tracker.getActiveJobsIds()]
    stages = {stage_id for job in jobs if job for stage_id in job.stageIds}
    told = [tracker.getStageInfo(stage_id) for stage_id in sorted(stages)]
    return [
        Stage(s.stageId, short_name(s.name), s.numCompletedTasks, s.numTasks, s.numActiveTasks, s.numFailedTasks) for s in told if s
    ]
