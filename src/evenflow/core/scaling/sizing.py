"""How large a fleet should be, from looks at it. :mod:`evenflow.core.scaling` says why it does not swing."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from evenflow.core.quantities import counted
from evenflow.core.scaling.policy import Algorithm, ScalingPolicy

GAP_S = 15.0  # between two looks: above it, the time between is unknown. A lease: after a death there may be no look for this time
RATE_S = 60.0  # the minute of the rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A look at a fleet at one moment (``at`` in seconds). The counts are those of its queues."""

    at: float
    running: int  # tries that workers have which get others after them
    waiting: int  # tries that wait for a worker; a large count may stop above what ever fits
    expected: int = 0  # slots that a forecast needs beside those of current tries
    outlook: str = ""  # and the reason in words
    oldest_wait: float = 0.0  # seconds that the longest waiting try has waited
    duration: float | None = None  # of one try, in seconds; None: unknown
    replicas: int  # that the fleet should have, beside those that people have taken out of service
    others: int = 0  # slots of workers of these queues outside any fleet
    ready: int = 0  # slots of the fleet's workers that take tries
    aside: int = 0  # tries that workers have which get no others, as they are about to go or out of service: they need no slot
    out_of_service: int = 0  # workers of the fleet that people have taken out of service


@dataclass(frozen=True, slots=True)
class Sizing:
    """How many replicas the fleet should have, and why; ``asked`` is what the load alone requires."""

    replicas: int
    asked: int
    needed: float  # slots
    load: float
    reason: str


def slots_needed(look: Look, policy: ScalingPolicy) -> float:
    """Returns the needed slots by the policy's algorithm. Within the longest wait, one slot serves many short tries, or one long
    one.
    """
    match policy.algorithm:
        case Algorithm.TARGET_LOAD:
            share = 1.0
        case Algorithm.LATENCY:
            share = 1.0 if look.duration is None else min(look.duration / policy.wait, 1.0)
    return look.running + (look.waiting + look.expected) * share


def replicas_for(slots: float, look: Look, policy: ScalingPolicy) -> int:
    """Returns the fewest replicas that serve these slots at the target load, within the fleet's bounds."""
    own = slots / policy.target_load - look.others
    wanted = math.ceil(own / policy.slots - 1e-9) if own > 0 else 0
    return min(max(wanted, policy.min), policy.max)


def load_of(slots: float, look: Look, policy: ScalingPolicy) -> float:
    """Returns the load of all slots that exist or are on their way, so that they are not asked for again. Infinite without
    slots.
    """
    there = look.others + look.replicas * policy.slots
    if there:
        return slots / there
    return math.inf if slots else 0.0


@dataclass(slots=True)
class LoadHistory:
    """The history of one fleet: what it needed, look by look, and its moves, as far back as a decision may need."""

    looks: deque[Look] = field(default_factory=deque)
    moves: deque[tuple[float, int]] = field(default_factory=deque)  # when, and by how many replicas

    def add(self, look: Look, policy: ScalingPolicy) -> None:
        """After a clock was set back, looks begin anew, and moves count as of now."""
        if self.looks and look.at < self.looks[-1].at:
            self.looks.clear()
            self.moves = deque((min(at, look.at), by) for at, by in self.moves)
        self.looks.append(look)
        reach = max(policy.up_after, policy.down_after) + GAP_S
        while self.looks[0].at < look.at - reach:
            self.looks.popleft()
        while self.moves and self.moves[0][0] <= look.at - RATE_S:
            self.moves.popleft()

    def moved(self, at: float, by: int) -> None:
        self.moves.append((at, by))

    def over(self, seconds: float) -> Iterator[Look]:
        """Yields the looks of the last ``seconds``, newest first; none if they do not reach back far enough, or have a gap."""
        newest = self.looks[-1].at
        found: list[Look] = []
        after = newest
        for look in reversed(self.looks):
            if after - look.at > GAP_S:
                return iter(())
            found.append(look)
            if newest - look.at >= seconds:
                return iter(found)
            after = look.at
        return iter(())


def decide(history: LoadHistory, policy: ScalingPolicy) -> Sizing:
    """Returns the size that the looks and the forecast require. The history has at least one look."""
    sizing = _decide(history, policy)
    outlook = history.looks[-1].outlook
    return replace(sizing, reason=f"{sizing.reason}; {outlook}") if outlook else sizing


def _decide(history: LoadHistory, policy: ScalingPolicy) -> Sizing:
    look = history.looks[-1]
    needed = slots_needed(look, policy)
    asked = replicas_for(needed, look, policy)
    load = load_of(needed, look, policy)

    def stays(reason: str) -> Sizing:
        return Sizing(look.replicas, asked, needed, load, reason)

    def moves(to: int, reason: str) -> Sizing:
        by = _allowed(history, policy, to - look.replicas, look.at)
        if by == 0:
            rate = policy.up_rate if to > look.replicas else policy.down_rate
            return stays(f"{reason}; {counted(rate, 'worker')} a minute is the most")
        held = "" if by == to - look.replicas else f"; {to:,} asked for, held by the rate"
        return Sizing(look.replicas + by, asked, needed, load, reason + held)

    if look.replicas < policy.min:
        return moves(policy.min, f"the fleet has {counted(policy.min, 'worker')} at least")
    if look.replicas > policy.max:
        return moves(policy.max, f"the fleet has {counted(policy.max, 'worker')} at most")
    if asked > look.replicas:
        if load == math.inf:  # R-AS7
            return moves(asked, f"{_tries(look)}, and there is no worker")
        late = policy.algorithm is Algorithm.LATENCY and look.oldest_wait > policy.wait
        above = list(history.over(policy.up_after))
        if above and (late or min(_loads(above, policy)) > policy.up_load):
            return moves(asked, f"load {load:.2f}, above {policy.up_load:g} for {policy.up_after:g} s")
        return stays(f"load {load:.2f}, not yet above {policy.up_load:g} for {policy.up_after:g} s")
    if asked < look.replicas:
        below = list(history.over(policy.down_after))
        if not below:
            return stays(f"load {load:.2f}, watched for less than {policy.down_after:g} s")
        if max(_loads(below, policy)) >= policy.down_load:
            return stays(f"load {load:.2f}, not yet below {policy.down_load:g} for {policy.down_after:g} s")
        least = max(replicas_for(slots_needed(one, policy), look, policy) for one in below)
        if least < look.replicas:
            return moves(least, f"load {load:.2f}, below {policy.down_load:g} for {policy.down_after:g} s")
        return stays(f"the last {policy.down_after:g} s needed {counted(look.replicas, 'worker')}")
    if look.replicas == policy.max and load > policy.up_load:
        return stays(f"load {load:.2f}, and the fleet has its {counted(policy.max, 'worker')} at most")
    if not needed:
        return stays(f"nothing to do, and the fleet has {counted(asked, 'worker')} at least" if asked else "nothing to do")
    return stays(f"load {load:.2f}, which needs {counted(asked, 'worker')}")


def _loads(looks: Iterable[Look], policy: ScalingPolicy) -> list[float]:
    return [load_of(slots_needed(look, policy), look, policy) for look in looks]


def _allowed(history: LoadHistory, policy: ScalingPolicy, by: int, now: float) -> int:
    """Returns the part of a move that the rate of its direction allows after the moves of the last minute."""
    recent = [moved for at, moved in history.moves if at > now - RATE_S and (moved > 0) == (by > 0)]
    if by > 0:
        return max(0, min(by, policy.up_rate - sum(recent)))
    return min(0, max(by, -policy.down_rate - sum(recent)))


def _tries(look: Look) -> str:
    there = look.waiting + look.running
    return f"{counted(there, 'task')} here" if there else f"{counted(look.expected, 'task')} expected"
