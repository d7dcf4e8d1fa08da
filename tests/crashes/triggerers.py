"""Triggerers without processes: as :mod:`tests.crashes.workers`, with the statements behind the routes for triggers."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from evenflow.core.limits import BEAT_S, LEASE_S
from evenflow.store.serving import services, triggers
from evenflow.store.serving.triggers import ClaimedTrigger, TriggerClaim, TriggerKey
from tests.crashes.registered import Registered
from tests.crashes.workers import event_of

CAPACITY = 100
LOST_AFTER_S = 10.0  # as the API says
PATIENCE_S = 30.0  # of a claim; the same is asked again after it
FIRST_PAUSE_S, LONGEST_PAUSE_S, WORKED_S = 2.0, 60.0, 300.0
FAILURES = 5


@dataclass
class Running:
    """Which triggers run. Raises :class:`AssertionError` when one runs twice at once."""

    holders: dict[int, Triggerer] = field(default_factory=dict)  # by the epoch of the deferral
    fired: int = 0
    begun: int = 0

    def begin(self, epoch: int, triggerer: Triggerer) -> None:
        assert epoch not in self.holders, f"the trigger of {epoch} runs a second time"
        self.holders[epoch] = triggerer
        self.begun += 1

    def end(self, epoch: int) -> None:
        del self.holders[epoch]


@dataclass(eq=False, slots=True)
class Triggerer(Registered):
    """``fails`` says whether a trigger fails this time. What its lease does not cover any more it ends, and gives back later."""

    kind = "triggerer"

    running: Running
    fails: Callable[[], bool]
    runs: dict[int, TriggerKey] = field(default_factory=dict)
    had: set[tuple[int, int]] = field(default_factory=set)
    events: dict[int, TriggerKey] = field(default_factory=dict)  # not acknowledged
    failed: list[TriggerKey] = field(default_factory=list)  # and these
    given_back: list[TriggerKey] = field(default_factory=list)

    def look_at_clock(self) -> None:
        if self.service_id is not None and self.runs and not self.lease.holds(self.clock.now()):
            self.given_back += self._end(list(self.runs))

    def finish_one(self) -> None:
        self.look_at_clock()
        if self.runs:
            (key,) = self._end([self.r.choice(list(self.runs))])
            if self.fails():
                self.failed.append(key)
            else:
                self.running.fired += 1
                self.events[key.epoch] = key

    def finish_all(self) -> None:
        for _ in range(len(self.runs)):
            self.finish_one()

    def _end(self, epochs: Iterable[int]) -> list[TriggerKey]:
        ended = [self.runs.pop(epoch) for epoch in epochs if epoch in self.runs]
        for key in ended:
            self.running.end(key.epoch)
        return ended

    def die(self) -> None:
        self._end(list(self.runs))
        self.events.clear()
        self.failed.clear()
        self.given_back.clear()
        self.had.clear()
        self.forget_registration()

    # -- with the API

    async def leave(self) -> None:
        self.given_back += self._end(list(self.runs))
        await self.report()
        if self.service_id is not None:
            await services.beat(self.conn, service_id=self.service_id, kind="triggerer", state="stopped")
        self.die()

    async def beat(self, *, api_dies: bool = False, late: bool = False) -> None:
        self.look_at_clock()
        assert self.service_id is not None
        service_id, sent = self.service_id, self.clock.now()
        listed = [*self.runs, *self.events, *(key.epoch for key in (*self.failed, *self.given_back))]
        if await services.beat(self.conn, service_id=service_id, kind="triggerer") is None:
            self._end(list(self.runs))
            self.forget_registration()
            return
        if api_dies:
            return
        stop = await triggers.compare_listed(self.conn, service_id=service_id, epochs=listed, lost_after_s=LOST_AFTER_S)
        self.answered(lambda: self._hear_beat(service_id, sent, stop), late=late, patience=BEAT_S)

    async def claim(self, *, api_dies: bool = False, late: bool = False) -> None:
        self.look_at_clock()
        assert self.service_id is not None
        service_id, key = self.service_id, self.key
        if any(answer.key == key and self.clock.now() < answer.expires for answer in self.answers):
            return  # one question at a time
        found = await triggers.claim(
            self.conn, service_id=service_id, claim_key=key, capacity=CAPACITY, queues=["default"], lease_s=LEASE_S
        )
        if not api_dies:
            self.answered(lambda: self._hear_claim(service_id, key, found), late=late, patience=PATIENCE_S, key=key)

    async def report(self, *, api_dies: bool = False) -> None:
        """All that is not acknowledged; ``api_dies`` before it stores them, or before it says so."""
        events, failed, back = list(self.events.values()), list(self.failed), list(self.given_back)
        if not (events or failed or back) or (api_dies and self.r.random() < 0.5):
            return
        rows = [_event(key) for key in events]
        if failed:
            pauses = {"first_s": FIRST_PAUSE_S, "longest_s": LONGEST_PAUSE_S, "worked_s": WORKED_S}
            counts = await triggers.record_failures(self.conn, failed, **pauses)
            rows += [_event(key, "failed") for key in failed if counts.get(key.epoch, 0) >= FAILURES]
        if back:
            await triggers.give_back(self.conn, back)
        if rows:
            self.sent.append(json.dumps(rows))
            await self.tell_again(self.sent[-1])
        if not api_dies:
            for key in events:
                self.events.pop(key.epoch, None)
            self.failed = [key for key in self.failed if key not in failed]
            self.given_back = [key for key in self.given_back if key not in back]

    async def tell_again(self, events: str) -> None:
        """A copy of what became of triggers, whoever's."""
        await triggers.insert_events(self.conn, events)

    def _hear_beat(self, service_id: int, sent: float, stop: list[int]) -> None:
        if service_id == self.service_id:
            self.lease.renew(sent, LEASE_S)
            self._end(stop)

    def _hear_claim(self, service_id: int, key: str, found: TriggerClaim) -> None:
        if service_id != self.service_id or key != self.key:
            return
        self.key = uuid.uuid4().hex
        if found.state != "active":
            self._end(list(self.runs))
            self.forget_registration()
            return
        for row in found.triggers:
            self._accept(row)

    def _accept(self, row: ClaimedTrigger) -> None:
        key = TriggerKey(row.epoch, row.run_key, row.task_index, row.map_index, row.claim)
        if (row.epoch, row.claim) in self.had:
            return
        self.had.add((row.epoch, row.claim))
        if not self.lease.holds(self.clock.now()):
            self.given_back.append(key)
            return
        if row.epoch in self.runs:  # an earlier claim of it, that is over
            self._end([row.epoch])
        self.running.begin(row.epoch, self)
        self.runs[row.epoch] = key


def _event(key: TriggerKey, purpose: str = "event") -> dict[str, object]:
    payload = {"task_index": key.task_index, "map_index": key.map_index, "claim": key.claim, "purpose": purpose}
    if purpose == "event":
        payload["event"] = base64.b64encode(event_of(key.epoch)).decode()
    else:
        payload["error"] = "it failed"
    return {"run_key": key.run_key, "epoch": key.epoch, "age_s": 0.0, "payload": payload}
