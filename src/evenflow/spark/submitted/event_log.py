"""What the stages of an application from a jar take: its driver has no Python that could be asked, so its event log is read.

Spark writes that log into the folder of the try, in files of some MiB. Each file is deleted when it has been read and the next one
is there, so an application of any length takes as much of the disk. Tasks show when their stage ends, or some tasks later. Where a
setting of the task, of the connection or of Spark's own defaults asks for an event log, it stays where that says, and no stages are
told.

A copy of this file travels with what a try submits, beside those of :mod:`evenflow.spark.driver` and :mod:`evenflow.spark.status`,
so it needs nothing but Python's standard library; the latter is given.
"""

from __future__ import annotations

import json
import re
import statistics
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = "events"  # in that of the try
ENABLED = "spark.eventLog.enabled"
EVERY_S = 5.0  # between two looks, as at what a Python application tells

_SETTINGS = {
    ENABLED: "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "true",
    "spark.eventLog.rolling.maxFileSize": "10m",  # the least that Spark takes
    "spark.eventLog.buffer.kb": "8",  # three tasks or so: what is in a larger one shows late
}
_OF_SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"


def options(folder: Path, env: Mapping[str, str]) -> list[str]:
    """For spark-submit. Without any if the defaults of this host's Spark have an event log of their own."""
    home = env.get("SPARK_HOME", "")
    with suppress(OSError):
        said = Path(env.get("SPARK_CONF_DIR") or f"{home}/conf", "spark-defaults.conf").read_text(errors="replace")
        if re.search(rf"(?m)^\s*{re.escape(ENABLED)}[\s=:]+true\b", said):
            return []
    events = folder / FOLDER
    events.mkdir(mode=0o700, exist_ok=True)
    settings = {**_SETTINGS, "spark.eventLog.dir": events.absolute().as_uri()}
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]


class LogTelling:
    """Passes on what stages take, every few seconds and at the end: ``keep`` gets it. ``status`` is the module."""

    def __init__(self, folder: Path, env: Mapping[str, str], status: Any, keep: Callable[[dict[str, Any]], None]) -> None:
        self.options = options(folder, env)
        self._files, self._status, self._keep = RolledFiles(folder / FOLDER), status, keep
        self._seen = SeenApplication()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="spark-event-log", daemon=True)
        self._thread.start()

    def end(self) -> dict[str, str]:
        """The application is dead, and has written its last word. Returns its id, where that is known."""
        self._ended.set()
        self._thread.join()
        return {"application_id": self._seen.app_id} if self._seen.app_id else {}

    def _watch(self) -> None:
        over = False
        while not over:
            over = self._ended.wait(EVERY_S)
            with suppress(
                OSError, ValueError, KeyError
            ):  # the folder is gone, or another Spark writes otherwise: no stages are told
                changed = False
                for line in self._files.lines():
                    self._seen.take(json.loads(line))
                    changed = True
                if changed and (self._seen.has_stages or over):
                    self._keep(self._status.kept(*self._seen.figures(self._status)))


class RolledFiles:
    """The lines of a log that Spark writes in files ``events_1_ID``, ``events_2_ID`` and so on, each once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number, self._offset = 1, 0

    def lines(self) -> Iterator[bytes]:
        while (file := self._file(self._number)) is not None:
            later = self._file(self._number + 1)  # looked for first: then this one is written to its end
            with file.open("rb") as log:
                log.seek(self._offset)
                for line in log:
                    if not line.endswith(b"\n"):
                        break  # the rest of it follows
                    self._offset += len(line)
                    yield line
            if later is None:
                return
            file.unlink()
            self._number, self._offset = self._number + 1, 0

    def _file(self, number: int) -> Path | None:
        return next(self._folder.glob(f"eventlog_v2_*/events_{number}_*"), None)


@dataclass(slots=True)
class _SeenStage:
    """``told`` is the stage as Spark's REST API tells it, from which figures are made; arrays are of its tasks, which may be a
    million.
    """

    told: dict[str, Any]
    run_ms: array[int] = field(default_factory=lambda: array("q"))
    shuffled: array[int] = field(default_factory=lambda: array("q"))
    given: array[int] = field(default_factory=lambda: array("q"))

    def add(self, name: str, value: int) -> None:
        self.told[name] = self.told.get(name, 0) + value

    def rest(self) -> dict[str, Any]:
        spread = {
            "executorRunTime": _middle_and_most(self.run_ms),
            "shuffleReadMetrics": {"readBytes": _middle_and_most(self.shuffled)},
            "inputMetrics": {"bytesRead": _middle_and_most(self.given)},
        }
        return {**self.told, "taskMetricsDistributions": spread}


class SeenApplication:
    """What the events of a log say together."""

    def __init__(self) -> None:
        self.app_id = ""
        self._began_ms, self._ended_ms = 0, 0
        self._conf: dict[str, str] = {}
        self._cores: dict[str, int] = {}  # by executor
        self._stages: dict[tuple[int, int], _SeenStage] = {}
        self._query_of: dict[int, str] = {}  # of a stage
        self._described: dict[str, str] = {}  # queries, by their number
        self._plans: dict[str, str] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        match event["Event"]:
            case "SparkListenerApplicationStart":
                self.app_id, self._began_ms = event["App ID"], event["Timestamp"]
            case "SparkListenerApplicationEnd":
                self._ended_ms = event["Timestamp"]
            case "SparkListenerEnvironmentUpdate":
                self._conf = dict(event["Spark Properties"])
            case "SparkListenerExecutorAdded":
                self._cores[event["Executor ID"]] = event["Executor Info"]["Total Cores"]
            case "SparkListenerJobStart":
                number = event.get("Properties", {}).get("spark.sql.execution.id")
                if number is not None:
                    self._query_of |= dict.fromkeys(event["Stage IDs"], str(number))
            case "SparkListenerStageSubmitted" | "SparkListenerStageCompleted":
                self._take_stage(event["Stage Info"])
            case "SparkListenerTaskStart":
                if stage := self._stage_of(event):
                    stage.add("numActiveTasks", 1)
            case "SparkListenerTaskEnd":
                if stage := self._stage_of(event):
                    _take_task(stage, event)
            case str(name) if name.startswith(_OF_SQL) and "physicalPlanDescription" in event:
                number = str(event["executionId"])
                self._described.setdefault(number, event.get("description", ""))
                self._plans[number] = event["physicalPlanDescription"]

    @property
    def has_stages(self) -> bool:
        return bool(self._stages)

    def figures(self, status: Any) -> tuple[Any, Any]:
        """Of the application, and its cost."""
        queries = {
            stage: status.Query(
                status.short_name(self._described.get(number, "")), status.keys_of_plan(self._plans.get(number, ""))
            )
            for stage, number in self._query_of.items()
        }
        stages = [status.figures_of(stage.rest(), queries) for stage in self._stages.values()]
        is_local = self._conf.get("spark.master", "").startswith("local")
        figures = status.longest_of(
            stages,
            application_id=self.app_id,
            is_local=is_local,
            cores=max(1, sum(self._cores.values())),
            memory_mib=status.mebibytes(self._conf.get("spark.driver.memory" if is_local else "spark.executor.memory", "1g")),
        )
        until_s = self._ended_ms / 1e3 or time.time()
        return figures, status.cost_of(figures, stages, wall_s=until_s - self._began_ms / 1e3)

    def _take_stage(self, info: Mapping[str, Any]) -> None:
        key = (info["Stage ID"], info["Stage Attempt ID"])
        stage = self._stages.setdefault(key, _SeenStage({}))
        times = {"submissionTime": info.get("Submission Time"), "completionTime": info.get("Completion Time")}
        stage.told |= {
            "stageId": info["Stage ID"],
            "name": info["Stage Name"],
            "numTasks": info["Number of Tasks"],
            **{name: datetime.fromtimestamp(at / 1e3, UTC).isoformat() for name, at in times.items() if at is not None},
        }

    def _stage_of(self, event: Mapping[str, Any]) -> _SeenStage | None:
        return self._stages.get((event["Stage ID"], event["Stage Attempt ID"]))


def _take_task(stage: _SeenStage, event: Mapping[str, Any]) -> None:
    stage.add("numActiveTasks", -1)
    stage.add("numCompleteTasks" if event["Task End Reason"]["Reason"] == "Success" else "numFailedTasks", 1)
    metrics = event.get("Task Metrics") or {}
    read = metrics.get("Shuffle Read Metrics") or {}
    shuffled = read.get("Remote Bytes Read", 0) + read.get("Local Bytes Read", 0)
    given = (metrics.get("Input Metrics") or {}).get("Bytes Read", 0)
    for name, value in {
        "executorRunTime": metrics.get("Executor Run Time", 0),
        "jvmGcTime": metrics.get("JVM GC Time", 0),
        "inputBytes": given,
        "outputBytes": (metrics.get("Output Metrics") or {}).get("Bytes Written", 0),
        "shuffleReadBytes": shuffled,
        "shuffleWriteBytes": (metrics.get("Shuffle Write Metrics") or {}).get("Shuffle Bytes Written", 0),
        "memoryBytesSpilled": metrics.get("Memory Bytes Spilled", 0),
        "diskBytesSpilled": metrics.get("Disk Bytes Spilled", 0),
        "peakExecutionMemory": metrics.get("Peak Execution Memory", 0),
    }.items():
        stage.add(name, value)
    stage.run_ms.append(metrics.get("Executor Run Time", 0))
    stage.shuffled.append(shuffled)
    stage.given.append(given)


def _middle_and_most(values: array[int]) -> tuple[float, float]:
    return (statistics.median(values), max(values)) if values else (0, 0)
