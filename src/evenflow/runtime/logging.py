"""How services log: one event a line, with names for its parts; for people on a terminal, JSON for machines."""

from __future__ import annotations

import logging
import sys
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import Processor

from evenflow.core.plain_text import coloured

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["auto", "console", "json"]

# Libraries that tell at INFO what is only of interest when they are debugged.
_TALKATIVE = ("asyncio", "psycopg.pool", "watchfiles", "aiohttp.access", "uvicorn.access", "uvicorn.error")


def configure_logging(level: Level, style: Format, stream: TextIO | None = None) -> None:
    """Send all logging of this process, structlog's and the standard library's, to ``stream`` (stderr). Call it once, first."""
    stream = stream or sys.stderr
    console = style == "console" or (style == "auto" and stream.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="%H:%M:%S.%f" if console else "iso", utc=not console),
    ]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=_render(console, stream)))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _no_orders(_: object, __: str, line: Any) -> str:
    """To the terminal: what is logged holds names and errors that others chose."""
    return coloured(line)


def _render(console: bool, stream: TextIO) -> list[Processor]:
    strip = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if console:
        plain = structlog.dev.plain_traceback  # the usual one shows the values of variables, and so secrets
        return [
            strip,
            structlog.dev.ConsoleRenderer(colors=stream.isatty(), pad_event_to=40, exception_formatter=plain),
            _no_orders,
        ]
    return [strip, structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
