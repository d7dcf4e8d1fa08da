"""What the stages of an application cost so far, read in its driver, which knows it whether it has a web page or not.

A copy of this file travels with what a try submits, beside that of :mod:`evenflow.spark.driver`, so it needs nothing but Python's
standard library.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

MOST_STAGES = 50  # that a try keeps, those that took longest: some 20 KiB
MOST_KEYS = 5  # columns by which a query spreads rows
MOST_NAME = 200  # characters of what a stage is called: a description may be a whole query
FIGURES_WAIT_S = 5.0  # until all is told that has happened: it takes milliseconds
FIGURES_EVERY_S = 5.0  # between two looks while it runs: what a person who watches a stage of minutes waits for
FIGURES_SHARE = 0.05  # of the time, at most, goes into looks: they take 0.1 s where a driver has a thousand stages

UNBEGUN = ("PENDING", "SKIPPED")  # adaptive execution skips work that was done before
_HASHED = re.compile(r"hashpartitioning\(((?:[^()]|\([^()]*\))*), \d+\)")
_COLUMN = re.compile(r"([A-Za-z_][\w.]*)#\d+L?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFigures:
    """Seconds and bytes; ``run_s`` is the sum over its tasks. ``keys`` are columns by which its query spreads rows over tasks."""

    stage_id: int = 0
    name: str = ""
    tasks: int = 0
    done_tasks: int = 0
    active_tasks: int = 0
    failed_tasks: int = 0
    wall_s: float = 0.0
    run_s: float = 0.0
    gc_s: float = 0.0
    input_bytes: int = 0
    output_bytes: int = 0
    shuffle_read_bytes: int = 0
    shuffle_write_bytes: int = 0
    spilled_bytes: int = 0  # as they were in memory
    spilled_disk_bytes: int = 0
    peak_memory_bytes: int = 0  # the sum over its tasks
    median_task_s: float = 0.0
    longest_task_s: float = 0.0
    median_read_bytes: int = 0
    most_read_bytes: int = 0
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationFigures:
    """``memory_mib`` is that of an executor's heap; of the stages those that took longest, in their order. A server that is
    shared has several sessions, and these are the stages of one.
    """

    application_id: str
    is_local: bool
    cores: int
    memory_mib: int
    is_shared: bool = False
    stages: tuple[StageFigures, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationCost:
    """What an application took in all: seconds and bytes. ``cores`` are those at its end, ``run_s`` is the sum over tasks."""

    application_id: str
    cores: int
    wall_s: float
    stages: int
    run_s: float
    gc_s: float
    input_bytes: int
    output_bytes: int
    shuffle_bytes: int  # read by stages, of others
    spilled_bytes: int  # as they were on disk


class Query(NamedTuple):
    """Of which a stage is a part. ``name`` is for stages that Spark has named after itself."""

    name: str = ""
    keys: tuple[str, ...] = ()


class Telling:
    """Tells what an application takes: every few seconds while it runs, from a thread, where that has changed, and once more before
    it stops.
    """

    def __init__(self, context: Any, tell: Callable[[ApplicationFigures, ApplicationCost], None]) -> None:
        self._context, self._tell = context, tell
        self._ended, self._turn = threading.Event(), threading.Lock()
        self._last: ApplicationFigures | None = None  # what was told
        stop = context.stop

        def told_and_stopped() -> None:
            self.end()
            stop()

        context.stop = told_and_stopped  # authors may stop the context, and then the figures are gone
        threading.Thread(target=self._watch, name="spark-figures", daemon=True).start()

    def end(self) -> None:
        if not self._ended.is_set():
            self._ended.set()
            self._look(FIGURES_WAIT_S, always=True)

    def _watch(self) -> None:
        pause_s = FIGURES_EVERY_S
        while not self._ended.wait(pause_s):
            began = time.monotonic()
            if not self._look():
                return
            pause_s = max(FIGURES_EVERY_S, (time.monotonic() - began) / FIGURES_SHARE)

    def _look(self, settle_s: float = 0.0, always: bool = False) -> bool:
        """Returns whether another look is worth it. A failed look does not fail the application: its JVM is gone, or the API does
        not keep the figures.
        """
        with self._turn, suppress(Exception):
            figures, cost = read_application(self._context, settle_s)
            if always or (figures.stages and figures != self._last):
                self._tell(figures, cost)
                self._last = figures
            return True
        return False


def read_application(context: Any, settle_s: float) -> tuple[ApplicationFigures, ApplicationCost]:
    """Of a classic SparkContext. ``settle_s`` seconds are waited at most until all is told that has just happened. Raises what py4j
    does.
    """
    gateway, scala = context._gateway, context._jsc.sc()
    if settle_s:
        with suppress(Exception):
            scala.listenerBus().waitUntilEmpty(int(settle_s * 1000))
    quantiles = gateway.new_array(gateway.jvm.double, 2)
    quantiles[0], quantiles[1] = 0.5, 1.0
    nothing = gateway.jvm.java.util.ArrayList()
    found = scala.statusStore().stageList(nothing, False, True, quantiles, nothing)
    mapper = gateway.jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
    queries = _queries_by_stage(mapper)
    stages = [figures_of(each, queries) for each in json.loads(mapper.writeValueAsString(found)) if each["status"] not in UNBEGUN]
    conf, is_local = context.getConf(), scala.isLocal()
    figures = longest_of(
        stages,
        application_id=str(context.applicationId),
        is_local=bool(is_local),
        cores=context.defaultParallelism,
        memory_mib=mebibytes(conf.get("spark.driver.memory" if is_local else "spark.executor.memory") or "1g"),
    )
    return figures, cost_of(figures, stages, wall_s=time.time() - scala.startTime() / 1e3)


def kept(application: ApplicationFigures, cost: ApplicationCost) -> dict[str, Any]:
    """As a driver writes it into the folder of its try."""
    return {"stages": without_noughts(application), "cost": asdict(cost)}


def longest_of(stages: Sequence[StageFigures], **known: Any) -> ApplicationFigures:
    """``known`` are the other fields."""
    longest = sorted(stages, key=lambda stage: stage.wall_s, reverse=True)[:MOST_STAGES]
    in_order = tuple(sorted(longest, key=lambda stage: stage.stage_id))
    return ApplicationFigures(**known, stages=in_order, left_out=len(stages) - len(longest))


def without_noughts(application: ApplicationFigures) -> dict[str, Any]:
    """As it is kept."""
    told = asdict(application)
    told["stages"] = [{name: value for name, value in stage.items() if value} for stage in told["stages"]]
    return told


def cost_of(application: ApplicationFigures, stages: Sequence[StageFigures], *, wall_s: float) -> ApplicationCost:
    """``stages`` are all of them, of which ``application`` has the longest."""
    return ApplicationCost(
        application_id=application.application_id,
        cores=application.cores,
        wall_s=round(wall_s, 3),
        stages=len(stages),
        run_s=round(total(stages, "run_s"), 3),
        gc_s=round(total(stages, "gc_s"), 3),
        input_bytes=int(total(stages, "input_bytes")),
        output_bytes=int(total(stages, "output_bytes")),
        shuffle_bytes=int(total(stages, "shuffle_read_bytes")),
        spilled_bytes=int(total(stages, "spilled_disk_bytes")),
    )


def figures_of(told: Mapping[str, Any], queries: Mapping[int, Query]) -> StageFigures:
    """Of a stage as Spark's REST API tells it, with the median and the most of its tasks."""
    query = queries.get(told["stageId"], Query())
    spread = told.get("taskMetricsDistributions") or {}
    read = [
        shuffled + given
        for shuffled, given in zip(
            (spread.get("shuffleReadMetrics") or {}).get("readBytes") or (0, 0),
            (spread.get("inputMetrics") or {}).get("bytesRead") or (0, 0),
            strict=True,
        )
    ]
    times = spread.get("executorRunTime") or (0, 0)
    return StageFigures(
        stage_id=told["stageId"],
        name=short_name(told.get("name", "")) or query.name,
        tasks=told["numTasks"],
        done_tasks=told.get("numCompleteTasks", 0),
        active_tasks=told.get("numActiveTasks", 0),
        failed_tasks=told.get("numFailedTasks", 0),
        wall_s=_between(told.get("submissionTime"), told.get("completionTime")),
        run_s=told.get("executorRunTime", 0) / 1e3,
        gc_s=told.get("jvmGcTime", 0) / 1e3,
        input_bytes=told.get("inputBytes", 0),
        output_bytes=told.get("outputBytes", 0),
        shuffle_read_bytes=told.get("shuffleReadBytes", 0),
        shuffle_write_bytes=told.get("shuffleWriteBytes", 0),
        spilled_bytes=told.get("memoryBytesSpilled", 0),
        spilled_disk_bytes=told.get("diskBytesSpilled", 0),
        peak_memory_bytes=told.get("peakExecutionMemory", 0),
        median_task_s=times[0] / 1e3,
        longest_task_s=times[1] / 1e3,
        median_read_bytes=int(read[0]),
        most_read_bytes=int(read[1]),
        keys=query.keys,
    )


def keys_of_plan(plan: str) -> tuple[str, ...]:
    """The columns by which a plan spreads rows over tasks, each once, without Spark's numbers of them."""
    names = (name for found in _HASHED.finditer(plan) for name in _COLUMN.findall(found[1]))
    return tuple(dict.fromkeys(names))[:MOST_KEYS]


def short_name(name: str) -> str:
    """Spark names a stage after the call and its place. A place inside Spark, ``parquet at NativeMethodAccessorImpl.java:0``, says
    nothing, nor does a call that is a lambda of Spark's; of a place in the author's code the file and line are enough.
    """
    call = re.sub(r" at \S+\.(java|scala):\d+$", "", name)
    return "" if call.startswith("$anonfun$") else re.sub(r" at \S*/([^/\s]+:\d+)$", r" at \1", call)[:MOST_NAME]


def _queries_by_stage(mapper: Any) -> dict[int, Query]:
    """The figures of work in SQL or by DataFrames, in any session of this process."""
    kind = getattr(sys.modules.get("pyspark.sql.session"), "SparkSession", None)
    session = getattr(kind, "_instantiatedSession", None)
    if session is None:
        return {}
    executions = session._jsparkSession.sharedState().statusStore().executionsList()
    found: dict[int, Query] = {}
    for place in range(executions.size()):
        execution = executions.apply(place)
        query = Query(short_name(execution.description()), keys_of_plan(execution.physicalPlanDescription()))
        found |= dict.fromkeys(json.loads(mapper.writeValueAsString(execution.stages())), query)
    return found


def _between(begun: str | None, ended: str | None) -> float:
    if begun is None:
        return 0.0
    until = datetime.now(UTC) if ended is None else _time(ended)
    return round((until - _time(begun)).total_seconds(), 3)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("GMT", "+00:00"))


def mebibytes(text: str) -> int:
    """Of a size as Spark writes it; without a unit these are MiB."""
    found = re.fullmatch(r"(\d+)\s*([bkmgt]?)b?", text.strip().lower())
    if found is None:
        return 0
    return int(int(found[1]) * {"b": 1 / 2**20, "k": 1 / 2**10, "": 1, "m": 1, "g": 2**10, "t": 2**20}[found[2]])


def total(stages: Iterable[StageFigures], name: str) -> float:
    return float(sum(getattr(stage, name) for stage in stages))
