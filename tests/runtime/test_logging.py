"""What a log of a service shows, and what it must not."""

from __future__ import annotations

import io
import logging

import pytest

from evenflow.runtime.logging import Format, configure_logging
from evenflow.runtime.observations import begun_anew
from evenflow.telemetry.observing import observe


@pytest.mark.parametrize("style", ["console", "json"])
def test_a_traceback_shows_no_values(style: Format) -> None:
    """The variables of a function may hold keys and passwords."""
    stream, root = io.StringIO(), logging.getLogger()
    handlers, level = root.handlers, root.level
    configure_logging("info", style, stream)
    try:
        password = "".join(["hunt", "er2"])
        try:
            raise ValueError(str(len(password)))
        except ValueError:
            logging.getLogger("evenflow").exception("it failed")
    finally:
        root.handlers = handlers
        root.setLevel(level)
    assert "ValueError: 7" in stream.getvalue()
    assert password not in stream.getvalue()


def test_what_a_service_logs_is_no_order_to_a_terminal() -> None:
    """Names and errors that others chose stand in it."""
    stream, root = io.StringIO(), logging.getLogger()
    handlers, level = root.handlers, root.level
    configure_logging("info", "console", stream)
    try:
        logging.getLogger("evenflow").warning("refused: %s", "\x1b]0;title\x07\x1b[2Ja name")
    finally:
        root.handlers = handlers
        root.setLevel(level)
    assert "refused: a name" in stream.getvalue()


@pytest.mark.parametrize("style", ["console", "json"])
def test_a_service_shows_none_of_its_secrets(style: Format) -> None:
    """R-SE4: not in an error of a library either."""
    stream, root = io.StringIO(), logging.getLogger()
    handlers, level = root.handlers, root.level
    configure_logging("info", style, stream, secrets=["", "s3cr3t-of-it"])
    try:
        logging.getLogger("psycopg").warning("cannot reach %s", "postgresql://me:s3cr3t-of-it@db")
        observe(begun_anew("no s3cr3t-of-it"))
    finally:
        root.handlers = handlers
        root.setLevel(level)
    assert "s3cr3t-of-it" not in stream.getvalue()
    assert stream.getvalue().count("***") == 2
