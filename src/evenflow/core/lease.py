"""Leases: how long the work of a silent service stays its own. Both sides, without I/O and without a clock.

Theory of operation
-------------------
A service beats, and each answered beat gives it a lease. Two sides judge the same lease by clocks that do not know each other. The
control plane must never give a try to another worker while its holder still works on it.

The *holder* counts from the moment at which it **sent** the beat, by its host's clock since boot, and stops working ``MARGIN_S``
before the end. It cannot know whether it alone is cut off or everything is down, so it does not end its tries: it freezes them. A
frozen try does nothing, so it does no harm beside another try of its task. Once the API answers again, the tries that were taken
away are killed first, and the others continue.

The *control plane* counts from the moment at which the beat **arrived**, by the database's clock, and gives the work to others
after the whole lease. So it always acts later than the holder, by the margin and the message's travel time. Time in which no beat
could arrive does not count: while the database is down the control plane cannot count, and while no API server lives the count
stands still. A row with regular ticks shows both: a gap in its ticks is time that was not counted, whatever the reason, and after
it every lease begins anew. The same rule makes a database whose clock is set harmless: a step looks like a gap. A step too small to
be noticed is smaller than the margin.

A worker may beat and yet hang: it holds a try that it never starts or never ends. Once that is sure, the control plane gives it up
as if it were silent, and tells it at its next beat. Even then its tries go to others only a whole lease after its last beat.

A try of a lost service is reported as lost. Its dispatch is sent again under a fresh epoch and uses up no try, up to
``infrastructure_retries`` times (:mod:`evenflow.core.flow.ends`); triggers go to other triggerers. A service that comes back
registers anew, and whatever it still says of its old epochs has no effect.

A lease that begins anew only becomes longer, so nothing here can end a lease too early. A service that died during an outage is
found one lease after the outage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenflow.core.limits import API_SILENCE_S, LEASE_S, MARGIN_S, STANDSTILL_S

STRETCH = LEASE_S / (LEASE_S - MARGIN_S)  # with each lease renewed at its end, tries run for the rest of the time


@dataclass(frozen=True, slots=True)
class LeaseClock:
    """The control plane's side: what all leases share. Seconds by the database's clock."""

    ticked_at: float
    counted_from: float  # no lease is counted from earlier than this

    def tick(self, now: float, *, api_heard_at: float | None) -> LeaseClock | None:
        """Returns the clock after a tick, or None while it stands still, because no API server lives that could receive beats."""
        if api_heard_at is None or now - api_heard_at > API_SILENCE_S:
            return None
        stood_still = not 0.0 <= now - self.ticked_at <= STANDSTILL_S
        return LeaseClock(now, now if stood_still else self.counted_from)

    def lost_before(self) -> float | None:
        """Returns the instant before which the last beat of a lost service lies. None: after an outage no service can be
        lost yet.
        """
        before = self.ticked_at - LEASE_S
        return before if self.counted_from <= before else None


@dataclass(slots=True)
class Lease:
    """The holder's side. Seconds by its host's clock since boot."""

    until: float = -math.inf  # the holder may work before this

    def renew(self, sent_at: float, lease_s: float) -> None:
        """Renews the lease by an answered beat that was sent then. A late answer, or one older than the last, renews nothing."""
        self.until = max(self.until, sent_at + lease_s - MARGIN_S)

    def holds(self, now: float) -> bool:
        return now < self.until
