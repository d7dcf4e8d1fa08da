"""What flags of a worker of Celery mean for the worker of Evenflow beside it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("celery")

from celery.concurrency import get_implementation

from evenflow.errors import SettingsError
from evenflow.runtime.celery_places import places


@pytest.mark.parametrize(
    ("pool", "concurrency", "autoscale", "number"),
    [
        ("prefork", 4, None, 4),
        ("threads", 16, None, 16),
        ("solo", 2, None, 1),
        ("prefork", 2, (8, 1), 8),
        ("prefork", 2, "8,1", 8),
        ("processes", "3", None, 3),
    ],
)
def test_a_place_is_a_try(pool: str, concurrency: Any, autoscale: Any, number: int) -> None:
    """R-EX2: a pool of one place has one, however many processors there are; one that grows has as many as it may have."""
    assert places(pool, concurrency, autoscale) == number
    assert places(get_implementation(pool), concurrency, autoscale) == number


@pytest.mark.parametrize(
    ("pool", "concurrency", "autoscale", "said"),
    [
        ("gevent", 4, None, "The pool gevent would change"),
        ("eventlet", 4, None, "The pool eventlet would change"),
        ("threads", 4, (8, 1), "neither larger nor smaller. Leave out --autoscale"),
        ("solo", 4, (8, 1), "a pool of solo"),
        ("threads", "auto", None, "-c auto counts processors"),
    ],
)
def test_flags_that_would_not_work_are_refused_with_what_to_type(pool: str, concurrency: Any, autoscale: Any, said: str) -> None:
    """R-EX2."""
    with pytest.raises(SettingsError) as refused:
        places(pool, concurrency, autoscale)
    assert said in str(refused.value)
    assert "-P threads -c 16" in str(refused.value)
