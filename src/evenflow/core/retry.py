"""How long a failed try waits before the next."""

from __future__ import annotations

from evenflow.core.model import TaskSpec

MAX_DELAY_S = 24 * 3600.0  # whatever the factor: a task that waits longer than a day wants a schedule


def next_delay(spec: TaskSpec, try_number: int) -> float:
    """Seconds between the failure of try ``try_number`` (from 1) and the try after it.

    ``retry_delay * factor ** (try_number - 1)``, where a ``retry_exponential_backoff`` of 0 is a constant delay; never above
    ``max_retry_delay`` and :data:`MAX_DELAY_S`. There is no jitter: what is retried at the same time is spread by its limits.
    """
    ceiling = MAX_DELAY_S if spec.max_retry_delay is None else min(spec.max_retry_delay, MAX_DELAY_S)
    factor = spec.retry_exponential_backoff or 1.0
    try:
        return min(spec.retry_delay * factor ** (try_number - 1), ceiling)
    except OverflowError:
        return ceiling
