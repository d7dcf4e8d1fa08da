"""Turns the log of an Airflow task into lines for people, and finds the reason of its failure in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import structlog
from airflow.sdk.execution_time.supervisor import process_log_messages_from_subprocess

from evenflow.airflow.running.cures import cure_of
from evenflow.airflow.running.task_log import Taking, task_log

_SUPERVISORS = ("supervisor",)
_KNOWN = {"event", "level", "timestamp", "logger", "error_detail", "filename", "lineno", "loc", "logger_name"}
_SAID_BY_THE_LOG = {"dag_id", "run_id", "task_id", "map_index", "try_number", "ti_id", "ti"}  # the log belongs to this very try
_NAMES = ("airflow.task.operators.", "airflow.task.hooks.")
_FAILED = "Task failed with exception"  # the SDK's words for what the task itself has raised
_FOLDS = ("::group::", "::endgroup::")  # for pages that fold lines


class AirflowLog:
    """``reason`` and ``error_types`` belong to the exception that the task failed with, else to the last one that was told;
    ``skipped_for`` to a task that skipped itself. Lines go to a copy of stdout, so that a task may close or replace its own.
    """

    def __init__(self, has_date: bool) -> None:
        self._has_date = has_date
        self._output = os.fdopen(os.dup(1), "w", buffering=1, errors="backslashreplace")
        self.reason: str | None = None
        self.error_types: list[str] = []
        self._has_failed = False
        self.skipped_for: str | None = None

    def begin(self) -> None:
        """Makes the log of this process the task's. What is printed needs nothing."""
        task_log().begin(self.from_task())

    def end(self) -> None:
        task_log().end()
        self._output.close()

    def from_task(self) -> Taking:
        """Returns what takes the lines of JSON that the SDK's log has."""
        taking: Taking = process_log_messages_from_subprocess((self.tasks(),))
        next(taking)
        return taking

    def tasks(self) -> Any:
        """Returns a logger for the task's own lines."""
        return structlog.wrap_logger(structlog.WriteLogger(self._output), processors=[self._line]).bind()

    def supervisors(self) -> Any:
        """Returns a logger for the supervisor's own lines, which show from warnings on."""
        return structlog.wrap_logger(structlog.WriteLogger(self._output), processors=[_of_supervisor]).bind()

    def _line(self, logger: Any, method: str, event: Mapping[str, Any]) -> str:
        text = str(event.get("event") or "")
        if event.get("logger") in _SUPERVISORS:
            return _of_supervisor(logger, method, event)
        if text.startswith(_FOLDS):
            raise structlog.DropEvent
        if text == "Skipping task." and event.get("reason"):
            self.skipped_for = str(event["reason"])
        lines = [self._told(text, method, event), *self._traceback(event.get("error_detail"))]
        self._has_failed = self._has_failed or text == _FAILED  # what its callbacks and mails raise afterwards is not the reason
        return "\n".join(lines)

    def _told(self, text: str, method: str, event: Mapping[str, Any]) -> str:
        at = event.get("timestamp")
        shown = at.strftime("%Y-%m-%d %H:%M:%S,") + f"{at.microsecond // 1000:03d} " if at is not None else ""
        name = str(event.get("logger") or "task")
        for begin in _NAMES:
            name = name.removeprefix(begin)
        more = "".join(
            f" {key}={value!r}" for key, value in event.items() if key not in _KNOWN | _SAID_BY_THE_LOG and not key.startswith("__")
        )
        return f"{shown}{method.upper()} {name}: {text}{more}"

    def _traceback(self, detail: Any) -> list[str]:
        if not detail:
            return []
        last = detail[0]
        told = f"{last['exc_type']}: {last['exc_value']}" if last.get("exc_value") else str(last["exc_type"])
        cure = cure_of(str(last.get("exc_value") or ""), self._has_date)
        if not self._has_failed:
            self.reason = f"{told}. {cure}" if cure else told
            self.error_types = [str(last["exc_type"])]
        lines = []
        for error in reversed(detail):
            lines += ["Traceback (most recent call last):"]
            lines += [f'  File "{at["filename"]}", line {at["lineno"]}, in {at["name"]}' for at in _own(error.get("frames") or [])]
            lines += [f"{error['exc_type']}: {error['exc_value']}"]
        return [*lines, cure] if cure else lines


def _own(frames: list[Any]) -> list[Any]:
    """Returns the frames from the first one outside Airflow on, because earlier ones do not help. For an error of Airflow itself,
    all.
    """
    first = next((number for number, at in enumerate(frames) if "/site-packages/airflow/" not in at["filename"]), 0)
    return frames[first:]


def _of_supervisor(logger: Any, method: str, event: Any) -> str:
    if method not in ("warning", "error", "critical", "exception") or str(event.get("event", "")).endswith("not found"):
        raise structlog.DropEvent  # the task gets the "not found", and reports it if it matters
    told = {name: value for name, value in event.items() if name in ("event", "detail", "message", "status_code")}
    return f"{method.upper()} airflow's supervisor: " + " ".join(str(value) for value in told.values())
