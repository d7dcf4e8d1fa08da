"""What is observed while a test does something."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from evenflow.core.observation import Observation


@contextlib.contextmanager
def observations() -> Iterator[list[dict[str, Any]]]:
    """Of each the fields, with its name as ``fact``, its ``level`` and its ``trace``; grows while the context lasts."""
    seen: list[dict[str, Any]] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if isinstance(record.msg, Observation):
                told = record.msg
                seen.append({"fact": told.fact.name, "level": told.fact.level.name, "trace": told.trace, **told.fields})

    logger, handler = logging.getLogger("evenflow"), Handler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield seen
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
