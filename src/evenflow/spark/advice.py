"""What the figures of an application mean: its slowest stage, what held it up, and which settings to change, with their values.

Spark's adaptive execution merges small partitions of a shuffle again, and splits large ones of a join down to the size that it aims
at. So a number of partitions, or a threshold, often helps only together with that size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil

from evenflow.spark.status import ApplicationFigures, StageFigures, total

SKEWED, SKEW_FROM_S = 3.0, 2.0  # times the median, and the shortest time for which it counts: less is chance
MUCH_GC, GC_FROM_S = 0.1, 1.0  # of the time of tasks
IDLE_FROM_S = 5.0  # a stage with fewer tasks than cores: a shorter one is not worth a setting
TINY_TASK_S, MANY_TASKS = 0.05, 100  # what Spark does beside a task takes as long
PARTITION_BYTES = 64 * 2**20  # what a task reads well: adaptive execution aims at that, too
SKEW_FACTOR = 5  # times the median: a smaller partition is never split, as by default
FILE_PARTITION_MIB = 128  # spark.sql.files.maxPartitionBytes, as it is by default
CHANGED = 0.2  # of a figure of two tries, and below it is said to be the same


@dataclass(frozen=True, slots=True)
class Advice:
    """``conf`` is what to write into that of the task, where settings help."""

    stage_id: int
    text: str
    conf: Mapping[str, str] = field(default_factory=dict)


def slowest(application: ApplicationFigures) -> StageFigures | None:
    return max(application.stages, key=lambda stage: stage.wall_s, default=None)


def advise(application: ApplicationFigures) -> list[Advice]:
    """The stage that took longest first."""
    ordered = sorted(application.stages, key=lambda stage: stage.wall_s, reverse=True)
    return [advice for stage in ordered for rule in _RULES for advice in rule(stage, application)]


def compare(before: ApplicationFigures, after: ApplicationFigures) -> list[str]:
    """What has changed from one try to another: the whole, then stages of the same name and place among these."""
    said = [
        sentence
        for what, name, show in _COMPARED
        if (sentence := _changed(what, total(before.stages, name), total(after.stages, name), show))
    ]
    earlier = _by_name(before)
    for place, stage in _by_name(after).items():
        if place in earlier and (
            sentence := _changed(f"stage {stage.stage_id} ({called(stage)})", earlier[place].wall_s, stage.wall_s, seconds)
        ):
            said.append(sentence)
    return said or ["Both tries cost the same, as far as their stages tell."]


def called(stage: StageFigures) -> str:
    return stage.name or "no name"


def seconds(value: float) -> str:
    return f"{value:.1f} s"


def size(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def _skew(stage: StageFigures, application: ApplicationFigures) -> Iterator[Advice]:
    if stage.tasks < 2 or stage.longest_task_s < max(SKEW_FROM_S, SKEWED * stage.median_task_s):
        return
    took = f"its longest task took {seconds(stage.longest_task_s)}, the median one {seconds(stage.median_task_s)}"
    if stage.most_read_bytes < SKEWED * max(stage.median_read_bytes, 1):
        yield Advice(stage.stage_id, f"Some rows cost more than others: {took}, and all read about as much. No setting helps that.")
        return
    read = f"and read {size(stage.most_read_bytes)} instead of {size(stage.median_read_bytes)}"
    by = f"Rows are spread by {', '.join(stage.keys)}: few of its values have most rows. " if stage.keys else ""
    threshold = str(max(2 * stage.median_read_bytes, 2**20))
    conf = {"spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": threshold}
    if stage.most_read_bytes < 2 * PARTITION_BYTES:
        conf["spark.sql.adaptive.advisoryPartitionSizeInBytes"] = threshold
    if stage.most_read_bytes <= SKEW_FACTOR * stage.median_read_bytes:
        conf["spark.sql.adaptive.skewJoin.skewedPartitionFactor"] = "2"
    yield Advice(
        stage.stage_id,
        f"Skew: {took}, {read}. {by}With this a join splits such a partition; before a groupBy spread its rows by one more column.",
        conf,
    )


def _spill(stage: StageFigures, application: ApplicationFigures) -> Iterator[Advice]:
    if not stage.spilled_disk_bytes:
        return
    times = 1 + ceil(stage.spilled_bytes / max(stage.peak_memory_bytes, 1))
    spilled, disk = size(stage.spilled_bytes), size(stage.spilled_disk_bytes)
    said = f"Spill: {spilled} did not fit into memory, {disk} were written to disk and read again."
    if stage.shuffle_read_bytes >= stage.input_bytes:
        partitions = stage.tasks * times
        conf = {"spark.sql.shuffle.partitions": str(partitions)}
        if (each := stage.shuffle_read_bytes // partitions) < PARTITION_BYTES:
            conf["spark.sql.adaptive.advisoryPartitionSizeInBytes"] = str(max(each, 2**20))
    else:
        conf = {"spark.sql.files.maxPartitionBytes": f"{max(FILE_PARTITION_MIB // times, 1)}m"}
    yield Advice(stage.stage_id, f"{said} Smaller partitions fit.", conf)


def _garbage(stage: StageFigures, application: ApplicationFigures) -> Iterator[Advice]:
    if stage.gc_s < GC_FROM_S or stage.gc_s < MUCH_GC * stage.run_s:
        return
    name = "spark.driver.memory" if application.is_local else "spark.executor.memory"
    share = 100 * stage.gc_s / max(stage.run_s, stage.gc_s)
    said = f"The JVM collected garbage for {seconds(stage.gc_s)}, {share:.0f} % of its tasks' time: its heap is small."
    if application.is_shared:
        yield Advice(stage.stage_id, f"{said} All sessions of the server share it: raise EVENFLOW_SPARK_CONNECT_MEMORY.")
        return
    yield Advice(stage.stage_id, said, {name: f"{2 * application.memory_mib}m"})


def _few_tasks(stage: StageFigures, application: ApplicationFigures) -> Iterator[Advice]:
    if stage.tasks >= application.cores or stage.wall_s < IDLE_FROM_S:
        return
    said = f"It had {stage.tasks} of {application.cores} cores at work for {seconds(stage.wall_s)}."
    if stage.shuffle_read_bytes >= stage.input_bytes and stage.shuffle_read_bytes:
        conf = {
            "spark.sql.shuffle.partitions": str(2 * application.cores),
            "spark.sql.adaptive.coalescePartitions.enabled": "false",
        }
        yield Advice(stage.stage_id, said, conf)
    else:
        yield Advice(stage.stage_id, f"{said} Split its input, or call repartition({2 * application.cores}).")


def _tiny_tasks(stage: StageFigures, application: ApplicationFigures) -> Iterator[Advice]:
    if stage.tasks < max(MANY_TASKS, 10 * application.cores) or stage.median_task_s > TINY_TASK_S or not stage.shuffle_read_bytes:
        return
    enough = max(2 * application.cores, ceil(stage.shuffle_read_bytes / PARTITION_BYTES))
    said = f"It had {stage.tasks} tasks of {1000 * stage.median_task_s:.0f} ms: starting them took as long as their work."
    yield Advice(stage.stage_id, said, {"spark.sql.shuffle.partitions": str(enough)})


def _failed(stage: StageFigures, application: ApplicationFigures) -> Iterator[Advice]:
    if stage.failed_tasks:
        said = f"{stage.failed_tasks} of its tasks failed and ran again, or failed the stage; the log says why."
        yield Advice(stage.stage_id, said)


_RULES: tuple[Callable[[StageFigures, ApplicationFigures], Iterator[Advice]], ...] = (
    _skew,
    _spill,
    _garbage,
    _few_tasks,
    _tiny_tasks,
    _failed,
)
_COMPARED: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("all stages", "wall_s", seconds),
    ("all tasks", "run_s", seconds),
    ("garbage collection", "gc_s", seconds),
    ("what was read from files", "input_bytes", size),
    ("what was shuffled", "shuffle_read_bytes", size),
    ("what was spilled to disk", "spilled_disk_bytes", size),
)


def _changed(what: str, before: float, after: float, show: Callable[[float], str]) -> str | None:
    if abs(after - before) <= CHANGED * max(before, after):
        return None
    return f"{what[:1].upper()}{what[1:]}: {show(before)}, then {show(after)}."


def _by_name(application: ApplicationFigures) -> dict[tuple[str, int], StageFigures]:
    seen: dict[str, int] = {}
    found = {}
    for stage in application.stages:
        place = seen[stage.name] = seen.get(stage.name, -1) + 1
        found[stage.name, place] = stage
    return found
