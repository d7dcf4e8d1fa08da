"""The triggerer's handle on a host: a process that runs many triggers in one event loop."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Sequence
from typing import Protocol

import structlog

from evenflow.masker import Masker
from evenflow.process.exits import Exit
from evenflow.process.frames import Header
from evenflow.process.owned_child import OwnedChild
from evenflow.process.owned_template import OwnedTemplate
from evenflow.process.templates import DagFile
from evenflow.triggerer import limits
from evenflow.triggerer.trigger import Trigger

log = structlog.get_logger(__name__)


class HostEvents(Protocol):
    """What is heard of the triggers of a host: of each at most one of the first three, unless the host ends before."""

    def fired(self, trigger: Trigger, event: bytes) -> None: ...

    def failed(self, trigger: Trigger, reason: str) -> None: ...

    def stopped(self, trigger: Trigger) -> None: ...

    def asked(self, host: Host, trigger: Trigger, number: int, question: str, body: bytes) -> None: ...

    def blocked(self, host: Host, trigger: Trigger | None, seconds: float, where: str) -> None: ...

    def ended(self, host: Host, end: Exit) -> None:
        """Its process is gone, and with it the triggers that it still has."""
        ...


class Host:
    """Implements :class:`evenflow.process.owned_child.ChildEvents`. ``open``: it takes more triggers."""

    def __init__(self, file: DagFile, events: HostEvents, masker: Masker, *, open_: bool) -> None:
        self.file, self.open = file, open_
        self._masker = masker  # knows the secrets of the triggerer's environment
        self.triggers: dict[int, Trigger] = {}  # by key
        self._events = events
        self._child: OwnedChild | None = None
        self._loop = asyncio.get_running_loop()
        self.heard_at = self.busy_at = self._loop.time()
        self.killed = False

    def begin(self, template: OwnedTemplate) -> None:
        """Raises :class:`OSError` when descriptors run out."""
        self._child = template.begin({}, self)

    def start(self, triggers: Sequence[Trigger]) -> None:
        for first in range(0, len(triggers), limits.STARTS):
            some = triggers[first : first + limits.STARTS]
            self.triggers.update((trigger.key, trigger) for trigger in some)
            self._send({"start": True}, json.dumps([trigger.job() for trigger in some]).encode())

    def stop(self, triggers: Sequence[Trigger]) -> None:
        """Each of them has an end soon, one way or another."""
        self._send({"stop": [trigger.key for trigger in triggers]})

    def answer(self, number: int, header: Header, body: bytes) -> None:
        self._send({"answer": number, **header}, body)

    def kill(self) -> None:
        """At once; its end is heard as any other."""
        self.killed, self.open = True, False
        assert self._child is not None
        self._child.send_signal(signal.SIGKILL)

    def hurry(self) -> None:
        """It was frozen and goes on: its silence until now says nothing."""
        self.heard_at = self._loop.time()

    @property
    def silent_s(self) -> float:
        return self._loop.time() - self.heard_at

    @property
    def idle_s(self) -> float:
        """Since it had a trigger."""
        return 0.0 if self.triggers else self._loop.time() - self.busy_at

    # -- what its process says

    def started(self, pid: int) -> None:
        log.debug("host started", pid=pid, file=self.file.file)

    def frame(self, header: Header, body: bytes) -> None:
        self.heard_at = self._loop.time()
        match header:
            case {"fired": int() as key}:
                if (trigger := self._over(key)) is not None:
                    self._events.fired(trigger, body)
            case {"failed": int() as key, "error": str() as reason}:
                if (trigger := self._over(key)) is not None:
                    self._events.failed(trigger, reason)
            case {"stopped": int() as key}:
                if (trigger := self._over(key)) is not None:
                    self._events.stopped(trigger)
            case {"log": int() as key}:
                if (trigger := self.triggers.get(key)) is not None:
                    trigger.write(body)
            case {"ask": int() as number, "key": int() as key, "question": str() as question}:
                if (trigger := self.triggers.get(key)) is not None:
                    self._events.asked(self, trigger, number, question, body)
            case {"blocked": int() | None as key, "seconds": int() | float() as seconds}:
                self._events.blocked(
                    self, self.triggers.get(key) if key is not None else None, seconds, body.decode(errors="replace")
                )
            case {"alive": _} | {"ended": _}:
                pass
            case _:
                raise ValueError(f"a frame that is not known: {str(header)[:200]}")

    def output(self, data: bytes) -> None:
        text = self._masker.mask(data)[: limits.LINE].decode(errors="replace")
        log.info("printed by no trigger", file=self.file.file or "built in", text=text)

    def exited(self, end: Exit) -> None:
        self.open = False
        self._events.ended(self, end)

    def _over(self, key: int) -> Trigger | None:
        self.busy_at = self._loop.time()
        return self.triggers.pop(key, None)

    def _send(self, header: Header, body: bytes = b"") -> None:
        assert self._child is not None
        self._child.send(header, body)
