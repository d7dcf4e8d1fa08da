"""Assigns triggers to processes, and decides about the others when one of them misbehaves.

There is one *open* host for each DAG file of each version of the code whose triggers are in hand, and one for the built-in
triggers; each is a child of a warm template. If a trigger blocks the event loop of such a host, the host's watcher names it.
Coroutines cannot be moved to another process, and while it blocks none of the others runs, so the host is killed. The blocking
trigger begins anew in its own host, the others together in a fresh one. In its own host it may block without harm; after half a
minute it has failed.

When a host dies, the guilty trigger is unknown. So its triggers begin anew in two hosts, half of them in each, which take no more.
After a few deaths the guilty one is alone, and has failed. The others have only begun anew, which triggers can.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from evenflow.core.meter import Meter
from evenflow.forking.exits import Exit, describe_exit
from evenflow.forking.owned_template import OwnedTemplate
from evenflow.masker import Masker
from evenflow.membership.templates import CannotLoad, TemplateKey, TemplatePool
from evenflow.telemetry.observing import observe
from evenflow.triggerer import limits
from evenflow.triggerer import observations as seen
from evenflow.triggerer.host import Host
from evenflow.triggerer.questions import Questions
from evenflow.triggerer.trigger import Trigger


class Outcomes(Protocol):
    """Receives the outcome of each trigger once, unless it is abandoned."""

    def fired(self, trigger: Trigger, event: bytes) -> None: ...

    def failed(self, trigger: Trigger, reason: str, output: str = "") -> None: ...

    def stopped(self, trigger: Trigger) -> None: ...


class Hosts:
    """Implements :class:`evenflow.triggerer.host.HostEvents`."""

    def __init__(self, templates: TemplatePool, questions: Questions, outcomes: Outcomes, meter: Meter, masker: Masker) -> None:
        self._masker = masker
        self._templates, self._questions, self._outcomes, self._meter = templates, questions, outcomes, meter
        self._loop = asyncio.get_running_loop()
        self._hosts: dict[Host, None] = {}
        self._where: dict[Trigger, Host] = {}
        self._open: dict[TemplateKey, Host] = {}
        self._waiting: dict[TemplateKey, list[Host]] = {}  # hosts that wait for their template
        self._loading: set[asyncio.Task[None]] = set()
        self._blockers: dict[Host, list[Trigger]] = {}  # of hosts that are being killed: triggers that get their own hosts
        self._gone = asyncio.Event()
        self._gone.set()

    @property
    def count(self) -> int:
        return len(self._hosts)

    def start(self, triggers: Sequence[Trigger]) -> None:
        """Starts each trigger in the open host of its file."""
        by_file: dict[TemplateKey, list[Trigger]] = {}
        for trigger in triggers:
            by_file.setdefault(trigger.file, []).append(trigger)
        for file, some in by_file.items():
            host = self._open.get(file)
            if host is None or not host.open:
                host = self._open[file] = self._new(file, open_=True)
            self._add(host, some)

    def stop(self, triggers: Sequence[Trigger]) -> None:
        """Stops triggers. Each one without an outcome is reported when it has stopped, or has ended in another way."""
        by_host: dict[Host, list[Trigger]] = {}
        for trigger in triggers:
            if (running := self._where.get(trigger)) is not None:
                trigger.stopping = True
                by_host.setdefault(running, []).append(trigger)
        for host, some in by_host.items():
            if host in self._hosts:
                host.stop(some)
            else:  # its template is still loading
                for trigger in some:
                    del host.triggers[trigger.key]
                    self.stopped(trigger)

    def abandon(self) -> None:
        """Kills all at once; no trigger is reported any more."""
        self._where.clear()
        for host in self._hosts:
            host.triggers.clear()
            host.kill()
        self._waiting.clear()
        self._open.clear()

    async def gone(self) -> None:
        """Returns when no process is left."""
        await self._gone.wait()

    def go_on(self) -> None:
        """Tells all hosts that they are no longer frozen."""
        for host in self._hosts:
            host.hurry()

    def look(self) -> None:
        """Ends idle and hanging hosts. Call it regularly, while nothing is frozen."""
        for host in list(self._hosts):
            if host.killed:
                continue
            if host.silent_s > limits.SILENT:
                observe(seen.host_hangs(host.file.file, len(host.triggers)))
                host.kill()
            elif host.idle_s > (limits.IDLE_HOST if host.open else 0.0):
                host.kill()

    # -- reports of hosts

    def fired(self, trigger: Trigger, event: bytes) -> None:
        if self._where.pop(trigger, None) is not None:
            self._outcomes.fired(trigger, event)

    def failed(self, trigger: Trigger, reason: str, output: str = "") -> None:
        if self._where.pop(trigger, None) is not None:
            self._outcomes.failed(trigger, reason, output)

    def stopped(self, trigger: Trigger) -> None:
        if self._where.pop(trigger, None) is not None:
            self._outcomes.stopped(trigger)

    def asked(self, host: Host, trigger: Trigger, number: int, question: str, body: bytes) -> None:
        size = len(body)
        self._questions.serve(
            trigger,
            question,
            body,
            answer=lambda header, answer: host.answer(number, size, header, answer),
            wanted=lambda: trigger.key in host.triggers,
        )

    def blocked(self, host: Host, trigger: Trigger | None, seconds: float, where: str) -> None:
        if host.killed:
            return
        if trigger is None:
            if not host.told_blocked:
                host.told_blocked = True
                observe(seen.loop_stands(host.file.file, seconds, where))
            if seconds > limits.BLOCKED_FOR_GOOD:
                host.kill()
            return
        if not trigger.told_blocked:
            trigger.told_blocked = True
            observe(seen.trigger_blocks(trigger.name, round(seconds, 1)), self._meter)
            trigger.note(
                f"the trigger keeps the event loop that it shares with others to itself, for {seconds:.1f} s by now, and gets a "
                f"process of its own; use asyncio's ways to wait, or asyncio.to_thread(). It is here:\n{where.rstrip()}"
            )
        if len(host.triggers) > 1:
            self._blockers.setdefault(host, []).append(trigger)
            host.kill()
        elif host.open:  # no other trigger is beside it, and none will be
            host.open = False
        elif seconds > limits.BLOCKED_FOR_GOOD:
            host.triggers.clear()
            host.kill()
            self.failed(trigger, f"it blocked the event loop of its process for {seconds:.0f} s and was killed")

    def ended(self, host: Host, end: Exit) -> None:
        self._hosts.pop(host, None)
        if not self._hosts:
            self._gone.set()
        if self._open.get(host.file) is host:
            del self._open[host.file]
        blockers = self._blockers.pop(host, [])
        left = [trigger for trigger in host.triggers.values() if trigger in self._where]
        host.triggers.clear()
        for trigger in left:
            if trigger.stopping:
                self.stopped(trigger)
        left = [trigger for trigger in left if not trigger.stopping]
        if not left:
            return
        if blockers:
            for trigger in blockers:
                if trigger in left:
                    left.remove(trigger)
                    self._isolate(trigger)
            self.start(left)
            return
        why = describe_exit(end)
        observe(seen.host_ended(host.file.file, len(left), why), self._meter)
        if len(left) == 1:
            self.failed(left[0], f"the process that it ran in ended: {why}")
            return
        if len(left) <= limits.RESTARTS_TOLD:
            for trigger in left:
                trigger.note(f"the process of {len(left)} triggers ended, and this one begins anew: {why}")
        middle = len(left) // 2
        for half in (left[:middle], left[middle:]):
            self._add(self._new(host.file, open_=False), half)

    # -- inside

    def _isolate(self, trigger: Trigger) -> None:
        alone = [host for host in self._hosts if not host.open and not host.killed and host.file == trigger.file]
        if len(alone) < limits.ALONE:
            self._add(self._new(trigger.file, open_=False), [trigger])
        else:
            self._add(min(alone, key=lambda host: len(host.triggers)), [trigger])

    def _new(self, file: TemplateKey, *, open_: bool) -> Host:
        """Returns a new host, whose process starts as soon as its template is ready."""
        host = Host(file, self, self._masker, open_=open_)
        template = self._templates.ready(file)
        if template is not None:
            self._begin(host, template)
        elif file in self._waiting:
            self._waiting[file].append(host)
        else:
            self._waiting[file] = [host]
            task = self._loop.create_task(self._load(file))
            self._loading.add(task)
            task.add_done_callback(self._loading.discard)
        return host

    def _add(self, host: Host, triggers: Sequence[Trigger]) -> None:
        self._where.update(dict.fromkeys(triggers, host))
        if host in self._hosts:
            host.start(triggers)
        else:
            host.triggers.update((trigger.key, trigger) for trigger in triggers)

    def _begin(self, host: Host, template: OwnedTemplate) -> None:
        try:
            host.begin(template)
        except OSError as error:
            reason = f"this triggerer's host could not start a process: {error}"
            self._loop.call_soon(self._fail_all, host, reason, "")  # once its triggers are known
            return
        self._hosts[host] = None
        self._gone.clear()
        if waiting := list(host.triggers.values()):
            host.start(waiting)

    async def _load(self, file: TemplateKey) -> None:
        try:
            while (template := self._templates.ready(file)) is None:
                await self._templates.load(file)
        except CannotLoad as error:
            for host in self._waiting.pop(file, []):
                self._fail_all(host, str(error), error.output)
        else:
            for host in self._waiting.pop(file, []):
                self._begin(host, template)

    def _fail_all(self, host: Host, reason: str, output: str) -> None:
        host.open = False
        if self._open.get(host.file) is host:
            del self._open[host.file]
        for trigger in list(host.triggers.values()):
            self.failed(trigger, reason, output)
        host.triggers.clear()
