"""The SDK's log of a task, made once in a template: to make it for each task would write to every logger that there is."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cache
from typing import Any

import structlog
from airflow.sdk.log import configure_logging, reset_logging

Taking = Generator[None, bytes | bytearray, None]  # takes lines of JSON


@dataclass(frozen=True, slots=True)
class _ProcessLog:
    """What of a process its log is."""

    handlers: list[logging.Handler]
    level: int
    structlog: dict[str, Any]
    showwarning: Callable[..., None]
    excepthook: Callable[..., Any]

    @classmethod
    def now(cls) -> _ProcessLog:
        root = logging.root
        return cls(root.handlers[:], root.level, structlog.get_config(), warnings.showwarning, sys.excepthook)

    def set(self) -> None:
        logging.root.handlers[:] = self.handlers
        logging.root.setLevel(self.level)
        structlog.configure(**self.structlog)
        warnings.showwarning = self.showwarning
        sys.excepthook = self.excepthook


class _PassedOn:
    """The file of the log: each line is passed on, or printed as it is by the SDK's own loggers outside of tasks."""

    taking: Taking | None = None

    def write(self, data: bytes) -> int:
        if self.taking is None:
            return os.write(1, data)
        for line in data.splitlines():
            self.taking.send(line)
        return len(data)

    def flush(self) -> None:
        """Does nothing: no line waits."""


class TaskLog:
    def __init__(self) -> None:
        self._lines = _PassedOn()
        before = _ProcessLog.now()
        sys.excepthook = sys.__excepthook__
        reset_logging()
        configure_logging(json_output=True, output=self._lines, sending_to_supervisor=True)
        self._settings = _ProcessLog.now()
        before.set()

    def begin(self, taking: Taking) -> None:
        """Makes this the log of the process, in the settings of Airflow's configuration."""
        self._lines.taking, self._before = taking, _ProcessLog.now()
        self._settings.set()

    def end(self) -> None:
        self._lines.taking = None
        self._before.set()


@cache
def task_log() -> TaskLog:
    return TaskLog()
