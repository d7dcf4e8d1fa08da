"""Leases: how long the work of a service that is not heard of stays its own. Both sides, without I/O and without a clock.

Theory of operation
-------------------
A service beats, and each beat that is answered gives it a lease. Two sides judge the same lease by clocks that do not know each
other, and what must never happen is that the control plane gives a try to another worker while its holder still works on it.

The *holder* counts from the moment at which it **sent** the beat, by its host's clock since boot, and stops working ``MARGIN_S``
before the end. It cannot know whether it alone is cut off or everything is down, so it does not end its tries: it freezes them. A
frozen try does nothing, so it may stand beside another try of its task; once somebody answers, the tries that were taken away are
killed before anything else, and the others go on.

The *control plane* counts from the moment at which the beat **arrived**, by the database's clock, and gives the work to others
after the whole lease. So it is always later than the holder, by the margin and the way of the message. But time in which nobody
could have been heard does not count: while the database is down nobody counts, and while no API server lives the count stands
still. A row that is ticked while all is well shows both: a gap in its ticks is time that nobody has counted, whatever the reason,
and after it every lease begins anew. The same rule makes a database whose clock is set harmless: a step looks like a gap. Steps too
small to be seen are smaller than the margin.

A worker may beat and yet hang: it holds a try that it never starts or never ends. Once that is sure it is given up as if it had not
been heard, and learns it at its next beat; the rule stays that its tries go to others a whole lease after it was heard last.

What begins anew only makes leases longer, so nothing here can end a lease too early; a service that died during an outage is found
one lease after its end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenflow.core.limits import API_SILENCE_S, LEASE_S, MARGIN_S, STANDSTILL_S

STRETCH = LEASE_S / (LEASE_S - MARGIN_S)  # a worker that is given one lease after the other at its end lets tries run for the rest


@dataclass(frozen=True, slots=True)
class LeaseClock:
    """The control plane's side: what all leases have in common. Seconds by the database's clock."""

    ticked_at: float
    counted_from: float  # no lease is counted from earlier than this

    def tick(self, now: float, *, api_heard_at: float | None) -> LeaseClock | None:
        """The clock after a tick; None while it stands still, because no API server lives that could hear anybody."""
        if api_heard_at is None or now - api_heard_at > API_SILENCE_S:
            return None
        stood_still = not 0.0 <= now - self.ticked_at <= STANDSTILL_S
        return LeaseClock(now, now if stood_still else self.counted_from)

    def lost_before(self) -> float | None:
        """Who was not heard of since this instant is lost. None: after an outage nobody can be, yet."""
        before = self.ticked_at - LEASE_S
        return before if self.counted_from <= before else None


@dataclass(slots=True)
class Lease:
    """The holder's side. Seconds by its host's clock since boot."""

    until: float = -math.inf  # it may work before this

    def renew(self, sent_at: float, lease_s: float) -> None:
        """A beat that was sent then is answered. An answer that comes late, or after a newer one, renews nothing."""
        self.until = max(self.until, sent_at + lease_s - MARGIN_S)

    def holds(self, now: float) -> bool:
        return now < self.until
