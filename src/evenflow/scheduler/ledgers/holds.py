"""What this transaction gives back to limits, and what it takes without a round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import selection


@dataclass(slots=True)
class Holds:
    """By limit. A limit that is only looked at is there with 0, and so is limit 0, which does not exist: it only wakes."""

    released: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    released_at: dict[int, float] = field(default_factory=dict)  # when the last of it was, seconds since 1970

    def release(self, holds: list[int], pool_slots: int, at_s: float) -> None:
        """Give back what a dispatch held: the pool comes first, where there are slots of it. ``at_s`` says when that happened, in
        seconds since 1970.
        """
        released, released_at, count = self.released, self.released_at, pool_slots or 1
        for limit in holds:
            released[limit] += count
            count = 1
            if released_at.get(limit, 0.0) < at_s:
                released_at[limit] = at_s

    def take(self, limit: int, count: int = 1) -> None:
        """By the same sums as releases."""
        self.released[limit] -= count

    def give(self, limit: int) -> None:
        """One of it, which no dispatch held."""
        self.released[limit] += 1

    def fold(self, limit: int, released: int, at_s: float) -> None:
        """What others have released, and left to a round."""
        self.released[limit] += released
        self.released_at[limit] = max(at_s, self.released_at.get(limit, 0.0))

    def wake(self, limits: Iterable[int]) -> None:
        """Makes the round look at the lanes that are parked on these limits, although nothing was released."""
        for limit in limits:
            self.released[limit] += 0

    def write_use(self, conn: Conn, used: Mapping[int, int], now_s: float) -> None:
        """With what starts have ``used``: one update per limit, and none where starts and releases cancel out. Only the holder of
        the executor's lock comes here.
        """
        released = self.released
        deltas = {k: d for k in used.keys() | released.keys() if k and (d := used.get(k, 0) - released.get(k, 0))}
        if deltas:
            selection.use_limits(conn, deltas, self.released_at, now_s)

    def write_wakes(self, conn: Conn, used: Mapping[int, int], now_s: float) -> None:
        """A scheduler without the executor's lock leaves to the lock's holder what starts have not ``used``."""
        left = {k: r - used.get(k, 0) for k, r in self.released.items()}
        if wakes := {k: n for k, n in left.items() if n or not self.released[k]}:
            selection.insert_wakes(conn, wakes, self.released_at, now_s)

    def write_looks(self, conn: Conn, looked_at: Collection[int], now_s: float) -> None:
        """After a round for a few runs alone: lanes of others may have to be woken."""
        selection.insert_wakes(conn, dict.fromkeys({0, *self.released, *looked_at}, 0), {}, now_s)
