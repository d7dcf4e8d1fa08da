"""When a scheduler that stands by helps: when reports wait longer than the holder of the executor's lock needs for them.

A scheduler that did not get the lock at its last turn stands by. Notifications do not send it to a turn: it looks, in one small
statement, how long the oldest report has waited. A holder that keeps up applies a report with the turn after the one in which it
came. So if reports wait longer than two turns, there are more than the holder can apply, or there is no holder. Then a turn takes
what no other scheduler has locked, and the lock if it is free. Schedulers know how long a turn takes from their own turns.
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
        """After help that passed over more than it applied the scheduler rests, twice as long each time: the waiting reports belong
        to runs that others are working on. A turn in which no report had waited long was no help, and changes nothing here.
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
