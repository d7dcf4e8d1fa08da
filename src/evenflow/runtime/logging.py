"""The log of a service: one observation a line, with named fields; for people on a terminal, JSON for machines.

Libraries' own records look the same. Tracebacks show no values of variables, which may be secrets.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal, TextIO

from evenflow.core.observation import Observation
from evenflow.core.plain_text import coloured

LevelName = Literal["debug", "info", "warning", "error"]
Format = Literal["auto", "console", "json"]

# Libraries that log at INFO what matters only for their own debugging.
_TALKATIVE = (
    *("asyncio", "psycopg.pool", "watchfiles", "aiohttp.access", "uvicorn.access", "uvicorn.error"),
    *("botocore", "aiobotocore"),  # each client tells where it has found its credentials
)
_MASK = "***"  # as in the logs of tasks
_COLOURS = {logging.DEBUG: "\x1b[2m", logging.WARNING: "\x1b[33m", logging.ERROR: "\x1b[31m", logging.CRITICAL: "\x1b[31m"}


def configure_logging(level: LevelName, style: Format, stream: TextIO | None = None, secrets: Iterable[str] = ()) -> None:
    """Sends all logging of this process to ``stream`` (stderr), without its ``secrets``. Call it once, first."""
    stream = stream or sys.stderr
    console = style == "console" or (style == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    shown = _Console(in_colour=stream.isatty()) if console else _JsonFormatter()
    handler.setFormatter(_Masked(shown, [secret for secret in secrets if secret]))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


class _Masked(logging.Formatter):
    """Masks secrets in all records, including errors of libraries."""

    def __init__(self, shown: logging.Formatter, secrets: list[str]) -> None:
        super().__init__()
        self._shown, self._secrets = shown, secrets

    def format(self, record: logging.LogRecord) -> str:
        text = self._shown.format(record)
        for secret in self._secrets:
            text = text.replace(secret, _MASK)
        return text


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        seen = record.msg
        line: dict[str, object] = {"event": record.getMessage()}
        if isinstance(seen, Observation):
            line = {"event": seen.fact.sentence, "fact": seen.fact.name, **seen.fields}
        at = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
        line |= {"level": record.levelname.lower(), "logger": record.name, "timestamp": at}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _Console(logging.Formatter):
    """Shows names and errors of others without their terminal sequences."""

    def __init__(self, *, in_colour: bool) -> None:
        super().__init__("%(asctime)s.%(msecs)03d [%(levelname)-7s] %(message)s", "%H:%M:%S")
        self._in_colour = in_colour

    def format(self, record: logging.LogRecord) -> str:
        text, colour = super().format(record), _COLOURS.get(record.levelno)
        return coloured(f"{colour}{text}\x1b[0m" if self._in_colour and colour else text)
