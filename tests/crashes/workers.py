"""Workers without processes: what they remember and do is that of :mod:`evenflow.worker`, with the product's own leases, and what
they ask are the statements behind the execution API, one at a time, so that an API server may die between any two.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import psycopg

from evenflow.api.inbox import Inbox
from evenflow.core.limits import BEAT_S, LEASE_S
from evenflow.store.serving import dispatch, services
from tests.crashes.ledger import Ledger, Process, TaskKey
from tests.crashes.registered import Registered

RESEND_AFTER_S = 2.0  # as the API says
WAITS_ON = 0.7  # of claims that have found nothing, each time that they are looked at


@dataclass(slots=True)
class Worker(Registered):
    """``judge`` says how a process will end."""

    kind = "worker"

    inbox: Inbox
    ledger: Ledger
    judge: Callable[[Process], str]
    slots: int
    frozen: bool = False
    running: dict[int, Process] = field(default_factory=dict)
    had: set[int] = field(default_factory=set)
    exits: dict[int, tuple[Process, str]] = field(default_factory=dict)

    # -- by itself

    def look_at_clock(self) -> None:
        """At the end of its lease it stops its processes, whatever else it does."""
        if self.service_id is not None and not self.frozen and not self.lease.holds(self.clock.now()):
            self.frozen = True
            self.ledger.stop(self.running.values())

    def finish_one(self) -> None:
        self.look_at_clock()
        if self.running and not self.frozen:
            self._end(self.r.choice(list(self.running)))

    def finish_all(self) -> None:
        self.look_at_clock()
        for epoch in [] if self.frozen else list(self.running):
            self._end(epoch)

    def _end(self, epoch: int, outcome: str | None = None) -> None:
        process = self.running.pop(epoch)
        outcome = outcome or self.judge(process)
        self.ledger.end(process, outcome)
        self.exits[epoch] = (process, outcome)

    def die(self) -> None:
        """With its processes; it comes back as another."""
        self._kill(list(self.running))
        self.exits.clear()
        self.had.clear()
        self._forget()

    def _kill(self, epochs: Iterable[int]) -> None:
        for epoch in epochs:
            if (process := self.running.pop(epoch, None)) is not None:
                self.ledger.kill(process)

    def _forget(self) -> None:
        self.frozen = False
        self.forget_registration()

    # -- with the API

    async def leave(self) -> None:
        begun = [*self.running, *self.exits]
        self._kill(list(self.running))
        if self.service_id is not None:
            async with self.conn.transaction():
                if await services.beat(self.conn, service_id=self.service_id, kind="worker", state="stopped"):
                    await dispatch.give_back(self.conn, service_id=self.service_id, begun=begun)
        self.die()

    async def beat(self, *, api_dies: bool = False, late: bool = False) -> None:
        """``api_dies`` between the two statements, or before it answers; ``late``: the answer is heard later, or never."""
        self.look_at_clock()
        assert self.service_id is not None
        sent, listed = self.clock.now(), [*self.running, *self.exits]
        known = await services.beat(self.conn, service_id=self.service_id, kind="worker")
        if api_dies and self.r.random() < 0.5:
            return
        service_id = self.service_id
        if known is None:
            self._given_up()
            return
        difference = await dispatch.compare_listed(
            self.conn, service_id=service_id, epochs=listed, resend_after_s=RESEND_AFTER_S, unmarked_after_s=60.0
        )
        again = await dispatch.read_tries(self.conn, service_id=service_id, epochs=difference.resend)
        if not api_dies:
            self.answered(lambda: self._hear_beat(service_id, sent, difference, again), late=late, patience=BEAT_S)

    async def claim(self, *, api_dies: bool = False, late: bool = False) -> None:
        self.look_at_clock()
        assert self.service_id is not None
        room = self.slots - len(self.running)
        if room <= 0:
            return
        service_id, key = self.service_id, self.key
        server = await self._server()
        asked = {"service_id": service_id, "claim_key": key, "slots": room, "resumes": room, "queues": ["default"]}
        result = await dispatch.claim(self.conn, **asked, lease_s=LEASE_S, api=server)
        if result.worker_state == "active" and not result.tries:
            answered = await dispatch.find_given(self.conn, [(service_id, key)])
            if self.r.random() < WAITS_ON and not answered:
                return  # it is not answered yet
            if not await dispatch.withdraw(self.conn, service_id=service_id, claim_key=key, api=server):
                result = await dispatch.claim(self.conn, **asked, lease_s=LEASE_S)
        if not api_dies:
            self.answered(lambda: self._hear_claim(service_id, key, result), late=late, patience=25.0)

    async def _server(self) -> int:
        """The API server at which its claims wait."""
        row = await (await self.conn.execute("select max(service_id) from service where kind = 'api'")).fetchone()
        assert row is not None
        return int(row[0])

    async def report(self, *, api_dies: bool = False, starts: bool = False) -> None:
        """All that is not acknowledged, in one commit with what others report now; ``api_dies`` before it stores or answers."""
        rows = [_row(p, "exit", {"outcome": outcome, "ran_s": 0.01, **_defer(p, outcome)}) for p, outcome in self.exits.values()]
        if starts:
            rows += [_row(p, "started", None) for p in self.running.values()]
        if not rows or (api_dies and self.r.random() < 0.5):
            return
        self.r.shuffle(rows)
        text = "\n".join(map(json.dumps, rows))
        acknowledged = list(self.exits)
        self.sent.append(text)  # and may come again, whether it is stored now or not
        try:
            await self.resend(text)
        except psycopg.OperationalError:
            return
        if not api_dies:
            for epoch in acknowledged:
                self.exits.pop(epoch, None)

    async def resend(self, reports: str) -> None:
        """A copy of what was reported, by whoever."""
        assert await self.inbox.put(reports.encode().split(b"\n")) == {}

    def _hear_beat(
        self, service_id: int, sent: float, difference: dispatch.ListDifference, again: list[dispatch.ClaimedTry]
    ) -> None:
        if service_id != self.service_id:
            return
        self.lease.renew(sent, LEASE_S)
        self._kill(difference.revoked)
        if not self.lease.holds(self.clock.now()):
            return
        if self.frozen:
            self.frozen = False
            self.ledger.go_on(self.running.values())
        for epoch in difference.kill:
            if epoch in self.running:
                self._end(epoch, "failed")
        for t in again:
            if t.epoch in self.had and t.epoch not in self.running and t.epoch not in self.exits:
                self.exits[t.epoch] = (self._process(t), "lost")  # what it said of its end was lost
        self._accept(again)

    def _hear_claim(self, service_id: int, key: str, result: dispatch.ClaimResult) -> None:
        if service_id != self.service_id or key != self.key:
            return
        self.key = uuid.uuid4().hex
        if result.worker_state != "active":
            self._given_up()
        elif self.lease.holds(self.clock.now()):
            self._accept(result.tries)

    def _accept(self, tries: Iterable[dispatch.ClaimedTry]) -> None:
        for t in tries:
            if t.epoch not in self.had:
                self.had.add(t.epoch)
                process = self._process(t)
                self.running[t.epoch] = process
                self.ledger.begin(process)

    def _process(self, t: dispatch.ClaimedTry) -> Process:
        return Process(TaskKey(t.run_key, t.task_index, t.map_index), t.epoch, t.try_number, *self._returned(t))

    def _returned(self, t: dispatch.ClaimedTry) -> tuple[int, str | None]:
        """How often its try was deferred, and what it resumes for; the event must be the one that it waited for."""
        if t.resume is None:
            return 0, None
        epoch, waited = map(int, t.resume.sealed.split(b":"))
        if t.resume.purpose == "event":
            assert t.resume.event == event_of(epoch), (t, epoch)
        return waited, t.resume.purpose

    def _given_up(self) -> None:
        self._kill(list(self.running))
        self._forget()


def event_of(epoch: int) -> bytes:
    """What the trigger of the try that was deferred under this epoch says."""
    return f"the event of {epoch}".encode()


def _defer(p: Process, outcome: str) -> dict[str, Any]:
    if outcome != "deferred":
        return {}
    sealed = base64.b64encode(f"{p.epoch}:{p.waited + 1}".encode()).decode()
    return {"defer": {"trigger": "module.Trigger", "queue": "default", "sealed": sealed}}


def _row(p: Process, kind: str, payload: dict[str, Any] | None) -> dict[str, Any]:
    row: dict[str, Any] = {**p.of._asdict(), "epoch": p.epoch, "kind": kind, "age_s": 0.0}
    return row if payload is None else row | {"payload": payload}
