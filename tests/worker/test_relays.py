"""R-CS9: what hands over to another process, and ends, while the processes of its host are looked at is not lost sight of."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from evenflow.forking import prctl
from evenflow.forking.freezing import Freezer
from evenflow.forking.marks import bear, new_mark
from evenflow.forking.orphans import end_orphans
from evenflow.forking.remains import end_remains

LISTED = os.listdir


class Relay:
    """A process that bears a mark. Once the processes of the host have been listed, and before any is looked at, it forks another
    one and ends: ``how`` says whether that is waited for; or stands still.
    """

    def __init__(self, how: str) -> None:
        self.mark = new_mark()
        self._how = how
        self._told, self._tell = os.pipe()
        self._hear, self._says = os.pipe()
        self.second = 0
        self.first = os.fork()
        if self.first == 0:
            self._run()
        self._heard()

    def _run(self) -> None:
        os.setsid()
        bear(self.mark)
        os.write(self._says, b"%d." % os.getpid())
        os.read(self._told, 1)
        if os.fork() == 0:
            os.setsid()
            os.write(self._says, b"%d." % os.getpid())
            signal.pause()
        if self._how == "stands":
            os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)

    def _heard(self) -> int:
        return int(os.read(self._hear, 20).rstrip(b"."))

    def listdir(self, path: str) -> list[str]:
        listed = LISTED(path)
        if path == "/proc" and not self.second:
            os.write(self._tell, b".")
            self.second = self._heard()
            os.waitid(os.P_PID, self.first, os.WSTOPPED | os.WEXITED | (0 if self._how == "is-gone" else os.WNOWAIT))
        return listed

    def how_the_second_ended(self) -> int | None:
        """The first one's end comes first: until then the second is no child of this process, which cannot collect it."""
        with suppress(ChildProcessError):  # It has been collected.
            os.waitid(os.P_PID, self.first, os.WEXITED | os.WNOWAIT)
        return psutil.Process(self.second).wait(10)

    def end(self) -> None:
        for pid in (self.first, self.second):
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid or self.first, signal.SIGKILL)
                os.waitpid(pid or self.first, 0)
        for descriptor in (self._told, self._tell, self._hear, self._says):
            os.close(descriptor)


@pytest.fixture(params=["is-gone", "is-a-zombie", "stands"])
def relay(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    prctl.adopt_orphans()
    found = Relay(request.param)
    monkeypatch.setattr(os, "listdir", found.listdir)
    yield found
    found.end()


def test_it_is_dead_before_the_end_of_its_try_is_told(relay: Relay) -> None:
    assert end_remains({relay.mark}) == []
    assert psutil.Process(relay.second).status() == psutil.STATUS_ZOMBIE


def test_it_is_killed_with_its_try(relay: Relay) -> None:
    Freezer(os.getpid()).kill({-1: relay.mark})
    assert relay.how_the_second_ended() == -signal.SIGKILL


def test_it_is_frozen_with_its_try(relay: Relay) -> None:
    Freezer(os.getpid()).freeze({-1: relay.mark})
    assert psutil.Process(relay.second).status() == psutil.STATUS_STOPPED


async def test_it_is_killed_when_its_template_is_gone(relay: Relay) -> None:
    end_orphans([relay.first], {relay.mark})
    assert relay.how_the_second_ended() == -signal.SIGKILL
