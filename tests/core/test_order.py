"""Keys of the order compare as what they are made of."""

from __future__ import annotations

import random

from evenflow.core.selection.order import key_end, order_key

EDGES_32 = (-(1 << 31), -1, 0, 1, (1 << 31) - 1)
EDGES_64 = (-(1 << 63), -1, 0, 1, (1 << 63) - 1)


def test_keys_compare_as_priorities_dates_and_lanes() -> None:
    """R-ST3: higher priorities of runs, higher ones of tasks, earlier dates, smaller ids, whatever their signs."""
    r = random.Random(1)
    for _ in range(20_000):
        one, other = ((r.choice(EDGES_32), r.choice(EDGES_32), r.choice(EDGES_64), r.choice(EDGES_64)) for _ in range(2))
        expected = (-one[0], -one[1], one[2], one[3]) < (-other[0], -other[1], other[2], other[3])
        assert (order_key(*one) < order_key(*other)) == expected, (one, other)


def test_the_end_of_a_key_is_its_lane() -> None:
    for last in EDGES_64:
        assert order_key(1, 2, 3, last) == order_key(1, 2, 3, 4)[:16] + key_end(last)
