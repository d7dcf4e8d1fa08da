"""What the stages of an application cost, in figures that are kept with its try: as the last line of its log.

The driver has them for as long as it lives, whether it has a web page or not. So they are read there when the task is done, and
before the session ends.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from evenflow.spark.limits import FIGURES_WAIT, MOST_KEYS, MOST_STAGES
from evenflow.spark.progress import short_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Keep = Callable[[str, dict[str, Any]], None]  # with the try: a kind of wire.questions.RecordKind and a value of JSON
MARK = "stages of Spark: "  # what the line begins with
_HASHED = re.compile(r"hashpartitioning\(((?:[^()]|\([^()]*\))*), \d+\)")
_COLUMN = re.compile(r"([A-Za-z_][\w.]*)#\d+L?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFigures:
    """Seconds and bytes; ``run_s`` is the sum over its tasks. ``keys`` are columns by which its query spreads rows over tasks."""

    stage_id: int
    name: str
    tasks: int
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
    """``memory_mib`` is that of an executor's heap; of the stages those that took longest, in their order."""

    application_id: str
    is_local: bool
    cores: int
    memory_mib: int
    stages: tuple[StageFigures, ...] = ()
    left_out: int = field(default=0)


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


@contextmanager
def stages_told(spark: SparkSession, keep: Keep) -> Iterator[None]:
    """Prints the line at the end of a classic session, however that is, and has its cost kept."""
    try:
        yield
    finally:
        told = None
        with suppress(Exception):  # the JVM is gone, or the task has ended its session: that is no failure of the task
            told = read_application(spark)
        if told is not None:
            figures, cost = told
            if figures.stages:
                sys.stdout.write(f"{line_of(figures)}\n")
                sys.stdout.flush()
            keep("spark_cost", asdict(cost))


def line_of(application: ApplicationFigures) -> str:
    """Without what is nought."""
    told = asdict(application)
    told["stages"] = [{name: value for name, value in stage.items() if value} for stage in told["stages"]]
    return MARK + json.dumps(told, separators=(",", ":"))


def find_application(log: str) -> ApplicationFigures | None:
    """What the last such line of a log says. Whoever wrote the log may have written anything, so what is no such thing is none."""
    line = next((line for line in reversed(log.splitlines()) if line.startswith(MARK)), None)
    if line is None:
        return None
    try:
        told = msgspec.json.decode(line.removeprefix(MARK), type=dict[str, Any])  # which knows no NaN
        stages = [{"stage_id": 0, "name": "", "tasks": 0, **each} for each in told["stages"]]
        return msgspec.convert({**told, "stages": stages}, ApplicationFigures)
    except (msgspec.MsgspecError, TypeError, KeyError):
        return None


def read_application(spark: SparkSession) -> tuple[ApplicationFigures, ApplicationCost]:
    """Raises what py4j does."""
    context = spark.sparkContext
    gateway, scala = context._gateway, context._jsc.sc()
    assert gateway is not None
    with suppress(Exception):  # some of what has just happened is not told yet
        scala.listenerBus().waitUntilEmpty(int(FIGURES_WAIT * 1000))
    quantiles = gateway.new_array(gateway.jvm.double, 2)
    quantiles[0], quantiles[1] = 0.5, 1.0
    nothing = gateway.jvm.java.util.ArrayList()
    found = scala.statusStore().stageList(nothing, False, True, quantiles, nothing)
    mapper = gateway.jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
    queries = _queries_by_stage(spark, mapper)
    stages = [figures_of(each, queries) for each in json.loads(mapper.writeValueAsString(found)) if each["status"] != "SKIPPED"]
    longest = sorted(stages, key=lambda stage: stage.wall_s, reverse=True)[:MOST_STAGES]
    conf, is_local = context.getConf(), scala.isLocal()
    figures = ApplicationFigures(
        application_id=str(context.applicationId),
        is_local=bool(is_local),
        cores=context.defaultParallelism,
        memory_mib=_mebibytes(conf.get("spark.driver.memory" if is_local else "spark.executor.memory") or "1g"),
        stages=tuple(sorted(longest, key=lambda stage: stage.stage_id)),
        left_out=len(stages) - len(longest),
    )
    return figures, cost_of(figures, stages, wall_s=time.time() - scala.startTime() / 1e3)


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


def _queries_by_stage(spark: SparkSession, mapper: Any) -> dict[int, Query]:
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
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


def _mebibytes(text: str) -> int:
    """Of a size as Spark writes it; without a unit these are MiB."""
    found = re.fullmatch(r"(\d+)\s*([bkmgt]?)b?", text.strip().lower())
    if found is None:
        return 0
    return int(int(found[1]) * {"b": 1 / 2**20, "k": 1 / 2**10, "": 1, "m": 1, "g": 2**10, "t": 2**20}[found[2]])


def total(stages: Iterable[StageFigures], name: str) -> float:
    return float(sum(getattr(stage, name) for stage in stages))
