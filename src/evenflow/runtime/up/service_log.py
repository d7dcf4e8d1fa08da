"""The output of a child service: a file of bounded size keeps all of it, and the terminal gets it line by line."""

from __future__ import annotations

import json
import logging
from collections import deque
from dataclasses import dataclass, field
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

FILE_BYTES = 10 * 2**20  # a day of a busy service at info; with BACKUPS it never fills a disk
BACKUPS = 2
LINE_BYTES = 64 * 2**10  # a longer line is cut into pieces
LAST_LINES = 40  # a traceback, with room

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.ERROR,
}


@dataclass(frozen=True, slots=True)
class Line:
    """One event of a service. Other text (a traceback, a library's print) is ``event`` at level warning."""

    event: str
    level: int = logging.WARNING
    details: dict[str, Any] = field(default_factory=dict)


class ServiceLog:
    def __init__(self, file: Path) -> None:
        self.file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        self._handler = RotatingFileHandler(file, maxBytes=FILE_BYTES, backupCount=BACKUPS, encoding="utf-8")
        self._rest = b""
        self._last: deque[Line] = deque(maxlen=LAST_LINES)

    def feed(self, data: bytes) -> list[Line]:
        """Keeps ``data`` and returns the lines that are complete now."""
        *complete, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES:
            complete.append(self._rest)
            self._rest = b""
        lines = []
        for raw in complete:
            text = raw.decode("utf-8", "replace").rstrip()
            if text:
                self._handler.emit(logging.LogRecord("", logging.INFO, "", 0, text, None, None))
                lines.append(parse_line(text))
        self._last.extend(lines)
        return lines

    def last_words(self) -> str:
        """Returns why the service ended, as far as its log says: the reason of its last error, else its last output."""
        errors = [line for line in self._last if line.level >= logging.ERROR]
        line = errors[-1] if errors else self._last[-1] if self._last else None
        if line is None:
            return "it said nothing"
        return str(line.details.get("reason") or line.event)

    def close(self) -> None:
        self.feed(b"\n")
        self._handler.close()


def parse_line(text: str) -> Line:
    """Reads a line that :mod:`evenflow.runtime.logging` writes in JSON, or any other text."""
    try:
        details = json.loads(text)
        event = details.pop("event")
        level = _LEVELS[details.pop("level")]
    except (ValueError, KeyError, AttributeError, TypeError):
        return Line(text)
    details.pop("timestamp", None)
    return Line(str(event), level, details)
