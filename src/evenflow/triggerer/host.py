"""The triggerer's handle on a host: a process that runs many triggers in one event loop."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Sequence
from typing import Protocol

from evenflow.core.limits import MAX_DEFERRED_BYTES, MAX_REASON
from evenflow.forking.exits import Exit
from evenflow.forking.frames import FrameHeader
from evenflow.forking.owned_child import OwnedChild
from evenflow.forking.owned_template import OwnedTemplate
from evenflow.masker import Masker
from evenflow.membership.masked_log import MaskedLog
from evenflow.membership.templates import TemplateKey
from evenflow.telemetry.observing import observe
from evenflow.triggerer import limits
from evenflow.triggerer import observations as seen
from evenflow.triggerer.questions import OpenQuestions
from evenflow.triggerer.said import Asked, Blocked, Failed, Fired, LogLines, Stopped, read_head
from evenflow.triggerer.trigger import Trigger


class HostEvents(Protocol):
    """What a host reports of its triggers: for each at most one of the first three, unless the host ends before."""

    def fired(self, trigger: Trigger, event: bytes) -> None: ...

    def failed(self, trigger: Trigger, reason: str) -> None: ...

    def stopped(self, trigger: Trigger) -> None: ...

    def asked(self, host: Host, trigger: Trigger, number: int, question: str, body: bytes) -> None: ...

    def blocked(self, host: Host, trigger: Trigger | None, seconds: float, where: str) -> None: ...

    def ended(self, host: Host, end: Exit) -> None:
        """Called when its process is gone, with the triggers that it still has."""
        ...


class _HostOutput:
    """This service's log for output of a host that belongs to no trigger."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._shown = 0

    def write(self, data: bytes) -> None:
        if self._shown > limits.PRINTED:
            return
        self._shown += len(data)
        if self._shown > limits.PRINTED:
            observe(seen.printed_too_much(self._file))
        observe(seen.printed(self._file, data[: limits.LINE].decode(errors="replace")))

    def close(self) -> None: ...

    async def shipped(self) -> None: ...


class Host:
    """Implements :class:`evenflow.forking.owned_child.ChildEvents`. ``open``: the host takes more triggers."""

    def __init__(self, file: TemplateKey, events: HostEvents, masker: Masker, *, open_: bool) -> None:
        self.file, self.open = file, open_
        self._log = MaskedLog(_HostOutput(file.file or "built in"), masker)  # it knows the secrets of the triggerer's environment
        self.triggers: dict[int, Trigger] = {}  # by key
        self._events = events
        self._child: OwnedChild | None = None
        self._loop = asyncio.get_running_loop()
        self.heard_at = self.busy_at = self._loop.time()
        self.killed = False
        self.told_blocked = False  # in no step of a trigger
        self._open = OpenQuestions(lambda: self._child.taken if self._child is not None else 0)

    def begin(self, template: OwnedTemplate) -> None:
        """Starts the process. Raises :class:`OSError` when descriptors run out."""
        self._child = template.begin({}, self)

    def start(self, triggers: Sequence[Trigger]) -> None:
        for first in range(0, len(triggers), limits.STARTS):
            some = triggers[first : first + limits.STARTS]
            self.triggers.update((trigger.key, trigger) for trigger in some)
            self._send({"start": True}, json.dumps([trigger.job() for trigger in some]).encode())

    def stop(self, triggers: Sequence[Trigger]) -> None:
        """Tells triggers to stop: each of them soon ends in one way or another."""
        self._send({"stop": [trigger.key for trigger in triggers]})

    def answer(self, number: int, size: int, header: FrameHeader, body: bytes) -> None:
        """Answers the question of this number, which had ``size`` bytes."""
        self._send({"answer": number, **header}, body)
        assert self._child is not None
        self._open.answer(size, len(body), self._child.queued)

    def kill(self) -> None:
        """Kills the process at once; its end is reported like any other."""
        self.killed, self.open = True, False
        assert self._child is not None
        self._child.send_signal(signal.SIGKILL)

    def hurry(self) -> None:
        """Forgets its silence while it was frozen."""
        self.heard_at = self._loop.time()

    @property
    def silent_s(self) -> float:
        return self._loop.time() - self.heard_at

    @property
    def idle_s(self) -> float:
        """The seconds since it last had a trigger."""
        return 0.0 if self.triggers else self._loop.time() - self.busy_at

    # -- reports of its process

    def started(self, pid: int) -> None:
        observe(seen.host_started(self.file.file, pid))

    def frame(self, head: bytes, body: bytes) -> None:
        self.heard_at = self._loop.time()
        said = read_head(head)
        if len(body) > (limits.LINES if isinstance(said, LogLines) else MAX_DEFERRED_BYTES):
            raise ValueError(f"{len(body):,} bytes at once")
        match said:
            case Fired():
                if (trigger := self._over(said.key)) is not None:
                    self._events.fired(trigger, body)
            case Failed():
                if (trigger := self._over(said.key)) is not None:
                    self._events.failed(trigger, said.error[:MAX_REASON])
            case Stopped():
                if (trigger := self._over(said.key)) is not None:
                    self._events.stopped(trigger)
            case LogLines():
                if (trigger := self.triggers.get(said.key)) is not None:
                    trigger.write(body)
            case Asked():
                if (trigger := self.triggers.get(said.key)) is not None:
                    self._open.ask(len(body))
                    self._events.asked(self, trigger, said.number, said.question, body)
            case Blocked():
                trigger = self.triggers.get(said.key) if said.key is not None else None
                self._events.blocked(self, trigger, said.seconds, body.decode(errors="replace"))

    def output(self, data: bytes) -> None:
        self._log.write(data)

    def exited(self, end: Exit) -> None:
        self.open = False
        self._log.close()
        self._events.ended(self, end)

    def _over(self, key: int) -> Trigger | None:
        self.busy_at = self._loop.time()
        return self.triggers.pop(key, None)

    def _send(self, header: FrameHeader, body: bytes = b"") -> None:
        assert self._child is not None
        self._child.send(header, body)
