"""One lease in fine time: a holder and the control plane with the product's own clocks (:mod:`evenflow.core.lease`), between them
beats that are lost or late, API servers and a database that go away, and a database whose clock is set.

Instants are kept as ages, so that the same situation an hour later is the same state; an age grows until no rule tells it apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from evenflow.core import limits
from evenflow.core.lease import Lease, LeaseClock

# No rule tells older ages apart.
OLDEST = {
    "heard": limits.LEASE_S + limits.BEAT_S,
    "counted": limits.LEASE_S + limits.BEAT_S,
    "ticked": limits.STANDSTILL_S + limits.BEAT_S,
    "api_heard": limits.API_SILENCE_S + limits.BEAT_S,
}


class Leasing(NamedTuple):
    """Ages in seconds; those of the database's side by its clock."""

    holds_for: float = 0.0  # that the holder may go on working
    sent: float | None = None  # since it sent the beat that is open
    arrived: bool = False  # at the control plane, which has renewed the lease
    heard: float = 0.0  # since a beat arrived
    ticked: float = 0.0  # since the clock was ticked
    counted: float = 0.0  # since then leases count
    api_heard: float = 0.0  # since an API server beat
    lost: bool = False  # the control plane gave the holder up
    api: bool = True
    database: bool = True
    steps: int = 0  # that the database's clock may still be set by


@dataclass(frozen=True, slots=True)
class Timing:
    """``tick``: seconds. ``steady``: everybody does in time what is possible; only API servers and the database go away, and when
    they are back they stay until the holder was heard. ``step``: what the database's clock is set by, ``steps`` times.
    """

    tick: float = limits.BEAT_S
    steady: bool = False
    step: float = 0.0
    steps: int = 0
    renews_when_sent: bool = True


class LeaseModel:
    def __init__(self, timing: Timing) -> None:
        self.timing = timing

    def initial(self) -> Leasing:
        lease = Lease()
        lease.renew(0.0, limits.LEASE_S)
        return Leasing(holds_for=lease.until, steps=self.timing.steps)

    def steps(self, now: Leasing) -> Iterator[tuple[str, Leasing]]:
        if now.lost:
            yield from self._afterwards(now)
            return
        reachable = now.api and now.database
        if now.sent is None:
            yield "the holder beats", now._replace(sent=0.0, arrived=False)
        else:
            if reachable and not now.arrived:
                yield "the beat arrives", now._replace(arrived=True, heard=0.0)
            if now.api and now.arrived:
                yield "the answer arrives", self._answered(now)
            if not self.timing.steady or not reachable:
                yield "the beat or its answer is lost", now._replace(sent=None, arrived=False)
        if reachable:
            yield "an API server beats", now._replace(api_heard=0.0)
        if now.database:
            yield "a scheduler looks at leases", self._pulse(now)
        yield from self._outages(now)
        if now.steps:
            for by in (self.timing.step, -self.timing.step):
                yield f"the database's clock is set by {by:+g} s", self._shifted(now, by)._replace(steps=now.steps - 1)
        if not self.timing.steady or self._all_done(now):
            yield "time passes", self._later(now)

    def wrong(self, now: Leasing) -> str | None:
        if now.lost and Lease(until=now.holds_for).holds(0.0):
            return "the control plane gives the work to others while its holder still works"
        if now.lost and self.timing.steady:
            return "an outage has cost a holder its work"
        return None

    def _afterwards(self, now: Leasing) -> Iterator[tuple[str, Leasing]]:
        """What was given up stays so; only an answer may still be on its way."""
        if now.sent is not None and now.arrived:
            yield "the answer arrives", self._answered(now)
        yield "time passes", self._later(now)

    def _answered(self, now: Leasing) -> Leasing:
        assert now.sent is not None
        lease = Lease(until=now.holds_for)
        lease.renew(-now.sent if self.timing.renews_when_sent else 0.0, limits.LEASE_S)
        return now._replace(holds_for=max(lease.until, 0.0), sent=None, arrived=False)

    def _pulse(self, now: Leasing) -> Leasing:
        clock = LeaseClock(ticked_at=-now.ticked, counted_from=-now.counted).tick(0.0, api_heard_at=-now.api_heard)
        if clock is None:
            return now
        # as scheduler/duties/leases.py: no beat is of the future
        if clock.counted_from > -now.counted or clock.ticked_at < -now.ticked:
            now = now._replace(heard=max(now.heard, 0.0), api_heard=max(now.api_heard, 0.0))
        lost_before = clock.lost_before()
        lost = lost_before is not None and -now.heard < lost_before
        if lost:
            return Leasing(now.holds_for, now.sent, now.arrived, lost=True)
        return now._replace(ticked=-clock.ticked_at, counted=-clock.counted_from)

    def _outages(self, now: Leasing) -> Iterator[tuple[str, Leasing]]:
        """In a steady world who is back stays until the holder was heard."""
        if not now.api:
            yield "API servers come back", now._replace(api=True)
        if not now.database:
            yield "the database comes back", now._replace(database=True)
        if not self.timing.steady or (now.heard == 0.0 and now.sent is None):
            if now.api:
                yield "all API servers die", now._replace(api=False, sent=None, arrived=False)
            if now.database:
                yield "the database dies", now._replace(database=False)

    def _all_done(self, now: Leasing) -> bool:
        """Whether nobody is late."""
        if now.database and now.ticked > 0.0 and now.api_heard <= limits.API_SILENCE_S:
            return False
        return not (now.api and now.database) or (now.heard == 0.0 and now.sent is None and now.api_heard == 0.0)

    def _later(self, now: Leasing) -> Leasing:
        after = now if now.lost else self._shifted(now, self.timing.tick)
        sent = None if now.sent is None else min(now.sent + self.timing.tick, limits.LEASE_S)
        return after._replace(holds_for=max(now.holds_for - self.timing.tick, 0.0), sent=sent)

    def _shifted(self, now: Leasing, by: float) -> Leasing:
        """The database's clock goes on, or is set."""
        return now._replace(**{name: min(getattr(now, name) + by, oldest) for name, oldest in OLDEST.items()})
