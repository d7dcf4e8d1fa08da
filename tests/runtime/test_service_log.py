"""The log of a child: whole in its file, line by line for people."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

import pytest

from evenflow.runtime.logging import configure_logging
from evenflow.runtime.observations import begun_anew, draining
from evenflow.runtime.up import service_log
from evenflow.runtime.up.service_log import Line, ServiceLog, parse_line
from evenflow.telemetry.observing import observe


@pytest.fixture
def stream() -> io.StringIO:
    """Where logs go; logging is as before afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield io.StringIO()
    root.handlers, root.level = handlers, level


def test_lines_come_whole_whatever_the_chunks(tmp_path: Path) -> None:
    log = ServiceLog(tmp_path / "x.log")
    assert log.feed(b"one\ntw") == [Line("one")]
    assert log.feed(b"o\n\nthree") == [Line("two")]
    log.close()
    assert (tmp_path / "x.log").read_text() == "one\ntwo\nthree\n"


def test_what_services_log_is_understood(stream: io.StringIO) -> None:
    configure_logging("info", "json", stream)
    observe(draining("api", 30.0))
    observe(begun_anew("no disk"))
    logging.getLogger("b").error("no %s", "disk")
    first, second, third = (parse_line(text) for text in stream.getvalue().splitlines())
    ours = {"logger": "evenflow.runtime"}
    assert first == Line("draining", logging.INFO, {"fact": "draining", "service": "api", "at_most_s": 30.0, **ours})
    assert second == Line("begins anew", logging.WARNING, {"fact": "begun_anew", "reason": "no disk", **ours})
    assert third == Line("no disk", logging.ERROR, {"logger": "b"})


@pytest.mark.parametrize(
    "text", ["Traceback (most recent call last):", "{", '{"a": 1}', "[1]", '{"event": "x", "level": "shouting"}']
)
def test_anything_else_is_shown_as_it_is(text: str) -> None:
    assert parse_line(text) == Line(text)


def test_the_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_log, "FILE_BYTES", 1000)
    log = ServiceLog(tmp_path / "x.log")
    log.feed(b"0123456789\n" * 10_000)
    log.close()
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 1000 * (1 + service_log.BACKUPS)


def test_a_line_without_an_end_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_log, "LINE_BYTES", 100)
    log = ServiceLog(tmp_path / "x.log")
    assert log.feed(b"x" * 101) == [Line("x" * 101)]
    log.close()


def test_last_words_are_the_last_error(tmp_path: Path) -> None:
    log = ServiceLog(tmp_path / "x.log")
    assert log.last_words() == "it said nothing"
    log.feed(b"first\n" + json.dumps({"event": "cannot go on", "level": "error", "reason": "no disk"}).encode() + b"\nbye\n")
    assert log.last_words() == "no disk"
    log.close()
