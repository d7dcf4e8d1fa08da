"""How fast each token may ask REST, at this API server: a program in a loop must not take what people and others need.

A token has a bucket of requests that fills at a steady rate. What is kept of it is one moment: when the bucket is full again (the
generic cell rate algorithm, ITU-T I.371). Services that run tasks do not ask REST, and have no such limit: they are paced by what
they run. Neither has the token of the API's own host, which is in no list.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import ceil
from time import monotonic

from evenflow.api import limits
from evenflow.api.refusals import Refused
from evenflow.api.tokens import Caller

_ROUNDED_S = 1e-6  # sums of fractions of a second are off by less


class Paces:
    """``rate``: requests a second; 0: any number."""

    def __init__(self, rate: float, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._full_at: OrderedDict[int, float] = OrderedDict()  # by token, that which asked last at the end

    def check(self, caller: Caller) -> None:
        """Counts a request. Raises :class:`Refused`, which says when the next one is welcome; it counts as none then."""
        if not self._rate or not caller.token_id:
            return
        now, cost = self._clock(), 1 / self._rate
        full_at = max(now, self._full_at.setdefault(caller.token_id, now))
        self._full_at.move_to_end(caller.token_id)
        early_s = full_at + cost - now - limits.REQUESTS_BURST
        if early_s > _ROUNDED_S:
            raise Refused(
                429,
                "too_many_requests",
                f"The token {caller.token_id} of {caller.name} asks more often than {self._rate:g} times a second.",
                hint="Wait as long as Retry-After says, ask for more in one answer (limit=1000), and listen to /api/v1/live "
                "instead of asking again and again. EVENFLOW_API_REQUESTS of the API says how often.",
                retry_after_s=max(1, ceil(early_s)),
            )
        self._full_at[caller.token_id] = full_at + cost
        if len(self._full_at) > limits.PACED_TOKENS:
            self._full_at.popitem(last=False)
