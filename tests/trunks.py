"""The templates of all tests of a process are forked from the same trunks: to start a Python that imports what they need takes
longer than most tests do otherwise.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from evenflow.forking import prctl
from evenflow.forking.frames import FrameHeader
from evenflow.forking.owned_template import OwnedTemplate
from evenflow.forking.owned_trunk import OwnedTrunk
from evenflow.membership import templates

KEPT = 6  # each has some 50 MB

_kept: dict[object, OwnedTrunk] = {}
_really_start = OwnedTemplate.start


class LastingTrunk(OwnedTrunk):
    """Takes the process of an earlier test over that began with the same environment, and leaves its own to later ones."""

    def __init__(self, module: str, env: Mapping[str, str], python: str = "") -> None:
        env = {name: value for name, value in env.items() if name != "PYTEST_CURRENT_TEST"}
        self._key = (module, python, os.getcwd(), *sorted(env.items()))
        earlier = _kept.pop(self._key, None)
        if earlier is None or _has_ended(earlier):
            super().__init__(module, env, python)
        else:
            prctl.adopt_orphans()
            self._loop = asyncio.get_running_loop()
            self._process, self._socket = earlier._process, earlier._socket
            self.pid, self.alive = earlier.pid, True
            self._ended = asyncio.Event()
            self._loop.add_reader(self._process.pidfd, self._die)

    async def close(self) -> None:
        if not self.alive:
            return
        self.alive = False
        self._loop.remove_reader(self._process.pidfd)
        if self._key in _kept:
            _end(self)
            return
        _kept[self._key] = self
        while len(_kept) > KEPT:
            _end(_kept.pop(next(iter(_kept))))


def _has_ended(trunk: OwnedTrunk) -> bool:
    poll = select.poll()
    poll.register(trunk._process.pidfd, select.POLLIN)
    if poll.poll(0):
        _end(trunk)
        return True
    return False


def _end(trunk: OwnedTrunk) -> None:
    trunk._process.send_signal(signal.SIGKILL)
    trunk._process.wait()
    trunk._socket.close()


async def _start(
    module: str,
    config: FrameHeader,
    *,
    env: Mapping[str, str],
    load_timeout_s: float,
    memory_limit: int | None = None,
    ahead: bool = True,
    python: str = "",
) -> OwnedTemplate:
    if not module.startswith("evenflow.") or not ahead:
        return await _really_start(
            module, config, env=env, load_timeout_s=load_timeout_s, memory_limit=memory_limit, ahead=ahead, python=python
        )
    trunk = LastingTrunk(module, env, python)
    try:
        return await OwnedTemplate.fork(trunk, config, load_timeout_s=load_timeout_s, memory_limit=memory_limit)
    finally:
        await trunk.close()


@contextmanager
def lasting_trunks() -> Iterator[None]:
    """Services in this process use them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(templates, "OwnedTrunk", LastingTrunk)
        patch.setattr(OwnedTemplate, "start", _start)
        yield
    while _kept:
        _end(_kept.popitem()[1])
