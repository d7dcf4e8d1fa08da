"""Policies of pools, as people write them."""

from __future__ import annotations

import pytest

from evenflow.core.selection.pool_policy import PoolPolicy
from evenflow.errors import BadValue


@pytest.mark.parametrize(
    ("text", "patience_s", "shown"),
    [
        ("backfill", None, "backfill"),
        ("strict", 0.0, "strict"),
        ("reserve-after=600", 600.0, "reserve-after=10m"),
        ("reserve-after=90s", 90.0, "reserve-after=90s"),
        ("reserve-after=10m", 600.0, "reserve-after=10m"),
        ("reserve-after=120m", 7_200.0, "reserve-after=2h"),
        ("reserve-after=30d", 2_592_000.0, "reserve-after=30d"),
    ],
)
def test_policies(text: str, patience_s: float | None, shown: str) -> None:
    """R-ST11."""
    policy = PoolPolicy.parse(text)
    assert policy.patience_s == patience_s
    assert str(policy) == shown
    assert PoolPolicy.parse(shown) == policy


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("often", "'often' is no policy of a pool. Type backfill, strict, or for example reserve-after=10m"),
        ("reserve-after", "Type backfill, strict, or for example reserve-after=10m"),
        ("reserve-after=-3", "Type backfill"),
        ("reserve-after=1.5h", "Type backfill"),
        ("reserve-after=0", "If none shall, type strict"),
        ("reserve-after=31d", "is more than 30 days. If a task may be passed for so long, type backfill"),
    ],
)
def test_what_is_none_says_what_to_type(text: str, said: str) -> None:
    with pytest.raises(BadValue) as caught:
        PoolPolicy.parse(text)
    assert said in str(caught.value)
