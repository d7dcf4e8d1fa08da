"""When a scheduler that stands by helps: when something waits for longer than the holder of the executor's lock needs for it.

Who did not get the lock at its last turn stands by. Notifications send it to no turn: it looks, in one small statement, for how
long what came first has waited. A holder that keeps up applies a report with the turn after the one in which it came. So what waits
for longer than two turns is more than the holder can do, or there is none; then a turn takes what no one has locked, and the lock
if it is free. How long a turn takes schedulers know by their own.
"""

from __future__ import annotations

from evenflow.core.limits import LONGEST_REST_S, STAND_BY_S, SWEEP_S
from evenflow.scheduler.advance import TurnOutcome

_NEWS = 0.2  # how much the last turn counts in the mean of all


class Standby:
    """Of one scheduler. ``patience_s``: what waits for longer is more than the holder keeps up with. ``rest_s``: how long it rests
    before the next look. ``is_needed``: its last turn had more than it could take, so it looks for nothing before the next one.
    """

    def __init__(self) -> None:
        self.stands_by = False
        self.is_needed = False
        self.patience_s = STAND_BY_S
        self.rest_s = 0.0
        self._turn_s = 0.0  # a mean of its turns that applied something

    def turned(self, outcome: TurnOutcome, took_s: float, *, helping: bool) -> None:
        """After help that passed over more than it applied it rests, twice as long each time: what waits is of runs that others
        have in their hands. A turn that was no help, because nobody had waited for long, says nothing about that.
        """
        self.stands_by = not outcome.led
        self.is_needed = bool(outcome.reports) and outcome.again
        if outcome.reports:
            self._turn_s += _NEWS * (took_s - self._turn_s)
            self.patience_s = min(max(2 * self._turn_s, STAND_BY_S), SWEEP_S)
        if outcome.led or self.is_needed or outcome.reports > outcome.contended:
            self.rest_s = 0.0
        elif helping:
            self.rest_s = min(max(2 * self.rest_s, STAND_BY_S), LONGEST_REST_S)

    def keeps_up(self) -> None:
        """The holder does."""
        self.rest_s = 0.0
