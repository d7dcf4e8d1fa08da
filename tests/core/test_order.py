"""Keys of the order compare as what they are made of."""

from __future__ import annotations

import random

from evenflow.core.selection.order import aged, key_end, order_key, present

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


def test_age_counts_as_priority_in_steps() -> None:
    """R-ST11: at any moment lanes that age at different speeds, or not at all, compare by what their waiting is worth by then,
    although no key changes; between lanes that age alike the keys themselves do.
    """
    r = random.Random(2)
    for _ in range(20_000):
        now_s = r.uniform(1.7e9, 1.9e9)
        lanes = []
        for last in range(2):
            aging_s, since_s = r.choice([None, 10, 60, 3600]), now_s - r.choice([0.0, 1.0, 59.0, 61.0, 3600.0, 86_400.0])
            priority, rest = r.randint(-3, 3), (r.randint(-2, 2), r.randint(-5, 5), last)
            made = order_key(aged(priority, aging_s, since_s), *rest)
            key = made if aging_s is None else present(made, aging_s, now_s)
            steps = 0 if aging_s is None else int(now_s // aging_s) - int(since_s // aging_s)
            lanes.append((key, (-priority - steps, -rest[0], *rest[1:]), aging_s, made))
        (key, worth, aging_s, made), (other_key, other_worth, other_aging_s, other_made) = lanes
        assert (key < other_key) == (worth < other_worth)
        if aging_s == other_aging_s:
            assert (made < other_made) == (worth < other_worth)
