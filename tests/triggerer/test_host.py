"""Inside a host: what it hears, and what it says, on the socket to its triggerer."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evenflow.forking.frames import FrameBuffer, FrameHeader, Link, pack_frame
from evenflow.sdk import xcom
from evenflow.triggerer import limits
from evenflow.triggerer.capture import TriggerOutput
from evenflow.triggerer.host_loop import HostLoop
from evenflow.triggerer.outbox import Outbox

# Is imported once its gate is open
HEAVY = """
import os, time
from evenflow.sdk.triggers import DateTimeTrigger

deadline = time.monotonic() + 60
while not os.path.exists({gate!r}):
    assert time.monotonic() < deadline
    time.sleep(0.01)


class Heavy(DateTimeTrigger):
    pass
"""


class Owner:
    """The triggerer's end: what it has heard."""

    def __init__(self) -> None:
        self._socket, self.theirs = socket.socketpair()
        self._socket.setblocking(False)
        self._frames = FrameBuffer()
        self.heard: list[tuple[FrameHeader, bytes]] = []

    def say(self, *headers: tuple[FrameHeader, Any]) -> None:
        """All at once, so that they are read together."""
        self._socket.sendall(b"".join(pack_frame(header, json.dumps(body).encode()) for header, body in headers))

    async def hear(self, wanted: Callable[[FrameHeader], bool]) -> None:
        while not any(wanted(header) for header, _ in self.heard):
            data = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(self._socket, 65_536), 30)
            self.heard += [(json.loads(head), body) for head, body in self._frames.feed(data)]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
async def owner() -> AsyncIterator[Owner]:
    owner = Owner()
    yield owner
    owner.close()


async def test_a_trigger_that_is_stopped_before_its_first_step_has_stopped(owner: Owner) -> None:
    """R-DQ1: else its place is taken for ever, and its triggerer does not end in time."""
    assert sys.__stdout__ is not None
    host = HostLoop(Link(owner.theirs), TriggerOutput(sys.__stdout__))
    serving = asyncio.create_task(host.serve())
    job = {"key": 1, "path": "evenflow.sdk.triggers.DateTimeTrigger", "kwargs": {}}
    owner.say(({"start": True}, [job]), ({"stop": [1]}, None))
    await owner.hear(lambda header: header == {"say": "stopped", "key": 1})
    owner.close()
    await asyncio.wait_for(serving, 30)


async def test_a_trigger_whose_module_takes_long_to_import_leaves_the_loop_to_others(
    owner: Owner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-DQ1: nor is its author, who may have written none, told to use asyncio's ways to wait."""
    gate = tmp_path / "gate"
    (tmp_path / "heavy_to_import.py").write_text(HEAVY.format(gate=str(gate)))
    monkeypatch.syspath_prepend(tmp_path)
    assert sys.__stdout__ is not None
    host = HostLoop(Link(owner.theirs), TriggerOutput(sys.__stdout__))
    serving = asyncio.create_task(host.serve())
    past = {"moment": xcom.encode(datetime(2026, 1, 1, tzinfo=UTC), "moment")}
    jobs = [
        {"key": 1, "path": "heavy_to_import.Heavy", "kwargs": past},
        {"key": 2, "path": "evenflow.sdk.triggers.DateTimeTrigger", "kwargs": past},
    ]
    owner.say(({"start": True}, jobs))
    await owner.hear(lambda header: header == {"say": "fired", "key": 2})
    gate.touch()
    await owner.hear(lambda header: header == {"say": "fired", "key": 1})
    owner.close()
    await asyncio.wait_for(serving, 30)


async def test_more_output_at_once_than_is_held_is_lost_and_nothing_else(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a print that is larger than any message keep a host from saying that a trigger has fired."""
    monkeypatch.setattr(limits, "LOGS_HELD", 1000)
    outbox = Outbox(Link(owner.theirs))
    outbox.send_log(1, b"x" * 1001)
    outbox.send_log(1, b"y\n")
    outbox.send({"say": "fired", "key": 1}, b"{}")
    await owner.hear(lambda header: header["say"] == "fired")
    (logged,) = [body for header, body in owner.heard if header["say"] == "log"]
    assert b"1001 bytes of logs of triggers were lost here" in logged
    assert logged.endswith(b"y\n")
