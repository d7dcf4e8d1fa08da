"""A service as a child process of ``evenflow up``: started, watched, restarted when it dies, and ended with all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import Protocol

from evenflow.errors import ServiceFailed
from evenflow.forking.exits import Exit
from evenflow.forking.frames import FrameHeader
from evenflow.forking.owned_child import ChildEvents
from evenflow.runtime.lifecycle import STOP_TIMEOUT_S
from evenflow.runtime.readiness import ReadinessSocket
from evenflow.runtime.up.service_log import Line, ServiceLog

FIRST_DELAY_S, MAX_DELAY_S = 0.5, 30.0  # between restarts: short after an accident, long for a service that dies repeatedly
SILENT_S = 30.0  # a service that is silent for this long hangs: its leases are over by then
LOOK_S = 1.0  # how often that is checked
ABORT_S = 2.0  # for it to print where it hangs, before it is killed
IF_SLOW = "If this machine is only slow, raise EVENFLOW_START_TIMEOUT"
STEADY_S = 60.0  # a service that lived this long starts with the first delay again


class LogScreen(Protocol):
    """Shows people what happens."""

    def say(self, text: str) -> None:
        """Shows a notice of the supervisor itself."""

    def log(self, service: str, line: Line) -> None:
        """Shows a line of a service's log."""


class ChildProcess(Protocol):
    def send_signal(self, signum: signal.Signals) -> None:
        """Sends a signal; SIGKILL goes to all that it has started. Does nothing after its end."""


class Beginner(Protocol):
    """The origin of services' processes."""

    async def begin(self, job: FrameHeader, events: ChildEvents) -> ChildProcess:
        """Starts a process; ``events`` always gets its end. Raises :class:`ServiceFailed`."""


class _ServiceLife:
    """One life of a service, from its fork to its end. Implements :class:`evenflow.forking.owned_child.ChildEvents`."""

    def __init__(self, name: str, log: ServiceLog, screen: LogScreen) -> None:
        self._name, self._log, self._screen = name, log, screen
        self.end: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self.process: ChildProcess | None = None

    def started(self, pid: int) -> None: ...

    def frame(self, head: bytes, body: bytes) -> None:
        raise ValueError("a service says nothing here")

    def output(self, data: bytes) -> None:
        for line in self._log.feed(data):
            self._screen.log(self._name, line)

    def exited(self, end: Exit) -> None:
        self.end.set_result(end)

    def send_signal(self, signum: signal.Signals) -> None:
        if self.process is not None and not self.end.done():
            self.process.send_signal(signum)


class Silence:
    """The silence of a service, over several looks. A late look means that the machine stood still. So the service stood still,
    too, and gets its time anew.
    """

    def __init__(self, now: float) -> None:
        self._looked = self._since = now

    def is_too_long(self, now: float, live_at: float | None) -> bool:
        """Returns the judgement of a look. ``live_at`` is when the service last reported that it is live."""
        if now - self._looked > LOOK_S + SILENT_S / 3:
            self._since = now
        self._looked = now
        return live_at is not None and now - max(self._since, live_at) > SILENT_S


class Child:
    """Starts ``job`` from ``origin``. It is late if it is not ready after ``start_within_s``."""

    def __init__(
        self, name: str, origin: Beginner, job: FrameHeader, log_file: Path, screen: LogScreen, *, start_within_s: float
    ) -> None:
        self.name = name
        self._origin, self._job, self._start_within_s = origin, job, start_within_s
        self._screen = screen
        self._log = ServiceLog(log_file)
        self._life: _ServiceLife | None = None
        self._ending = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_late = False
        self._supervisor: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when the service is ready for the first time, or was told to end before. From then on it is restarted whenever it
        dies.

        Raises :class:`ServiceFailed` with its last words when it ends before that, or takes too long.
        """
        self._supervisor = asyncio.create_task(self._supervise(), name=f"supervise {self.name}")
        await asyncio.wait((self._ready, self._supervisor), timeout=self._start_within_s, return_when=asyncio.FIRST_COMPLETED)
        if self._ready.done():
            self._ready.result()
        elif not self._supervisor.done():
            self._is_late = True
            raise ServiceFailed(
                f"The {self.name} is not ready after {self._start_within_s:g} s. Its log: {self._log.file}. {IF_SLOW}"
            )

    @property
    def is_ready(self) -> bool:
        """Whether it was ever ready."""
        return self._ready.done() and self._ready.exception() is None

    async def end(self, *, at_most_s: float) -> None:
        """Tells it to drain and stop; kills what is left of it ``at_most_s`` later. Does nothing when it was never started."""
        self._ending.set()
        if self._supervisor is None:
            return
        self._signal(signal.SIGTERM)
        _, late = await asyncio.wait([self._supervisor], timeout=at_most_s)
        if late:
            self._screen.say(f"{self.name} did not stop in time and is killed")
        self._signal(signal.SIGKILL)
        await self._supervisor
        self._log.close()

    def hurry(self) -> None:
        """Makes it stop at once, without draining. Call it only after :meth:`end`."""
        self._signal(signal.SIGTERM)

    async def _supervise(self) -> None:
        delay, loop = FIRST_DELAY_S, asyncio.get_running_loop()
        while not self._ending.is_set():
            began = loop.time()
            try:
                exit_code = await self._run()
            except ServiceFailed as error:
                if not self._ready.done():
                    self._never_began(error)
                    return
                self._screen.say(str(error))
                exit_code = 1
            if self._ending.is_set():
                return
            if not self._ready.done():
                self._never_began(
                    ServiceFailed(f"The {self.name} did not start: {self._log.last_words().rstrip('.')}. Its log: {self._log.file}")
                )
                return
            if loop.time() - began > STEADY_S:
                delay = FIRST_DELAY_S
            self._screen.say(f"{self.name} ended ({describe_exit(exit_code)}) and is started again in {delay:g} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), delay)
            delay = min(2 * delay, MAX_DELAY_S)

    def _never_began(self, error: ServiceFailed) -> None:
        if self._is_late:  # its starter no longer waits
            self._screen.say(str(error))
        else:
            self._ready.set_exception(error)

    async def _run(self) -> int:
        """Runs one life of the service, to its end. Raises :class:`ServiceFailed` when it cannot begin."""
        try:
            readiness = ReadinessSocket()
        except OSError as error:
            raise ServiceFailed(f"The {self.name} cannot be started: {error}.") from error
        announcing = asyncio.create_task(self._announce(readiness), name=f"await {self.name}")
        watching = asyncio.create_task(self._watch(readiness), name=f"watch {self.name}")
        life = self._life = _ServiceLife(self.name, self._log, self._screen)
        try:
            environment = {**self._job["environment"], **readiness.environment}
            life.process = await self._origin.begin({**self._job, "environment": environment}, life)
            if self._ending.is_set():
                life.send_signal(signal.SIGTERM)
            return (await life.end).status
        finally:
            announcing.cancel()
            watching.cancel()
            readiness.close()

    async def _announce(self, readiness: ReadinessSocket) -> None:
        await readiness.ready.wait()
        if self._ready.done():
            self._screen.say(f"{self.name} is back")
        else:
            self._ready.set_result(None)

    async def _watch(self, readiness: ReadinessSocket) -> None:
        """Ends the service when it hangs. Until it first reports that it is live, and while it ends, other limits apply."""
        clock = asyncio.get_running_loop().time
        silence = Silence(clock())
        while True:
            await asyncio.sleep(LOOK_S)
            if silence.is_too_long(clock(), readiness.live_at):
                break
        if self._ending.is_set():
            return
        self._screen.say(
            f"{self.name} hangs: it has not been live for {SILENT_S:g} s. It is ended; its log may say where: {self._log.file}"
        )
        self._signal(signal.SIGABRT)
        await asyncio.sleep(ABORT_S)
        self._signal(signal.SIGKILL)

    def _signal(self, signum: signal.Signals) -> None:
        """Sends a signal; SIGKILL goes to all that it has started."""
        if self._life is not None:
            self._life.send_signal(signum)


def describe_exit(code: int) -> str:
    """Returns an exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def longest_end(drain_timeout: float) -> float:
    """Returns the seconds after which a child that was told to end has failed to: its drain, its stop, and a margin for a busy
    machine.
    """
    return drain_timeout + STOP_TIMEOUT_S + 5.0
