"""Whether another try follows a failed one, and how long it waits."""

from __future__ import annotations

from collections.abc import Sequence

from evenflow.core.limits import MAX_RETRY_DELAY_S
from evenflow.core.model import RetryRuleSpec, TaskSpec


def may_retry(spec: TaskSpec, try_number: int, error_types: Sequence[str] = ()) -> bool:
    """Returns whether another try follows the failure of try ``try_number`` (from 1).

    ``error_types`` names the class of the exception and its bases, most derived first; it is empty when the process was killed. The
    task's first matching retry rule may forbid a retry that ``retries`` allows.
    """
    rule = matching_rule(spec.retry_rules, error_types)
    if rule is None:
        return tries_left(try_number, spec.retries)
    most = spec.retries if rule.retries is None else min(rule.retries, spec.retries)
    return rule.action != "fail" and tries_left(try_number, most)


def tries_left(try_number: int, retries: int) -> bool:
    """Returns whether this number of ``retries`` allows another try after try ``try_number`` (from 1)."""
    return try_number <= retries


def next_delay(spec: TaskSpec, try_number: int, error_types: Sequence[str] = (), *, chance: float = 0.0) -> float:
    """Returns the seconds between the failure of try ``try_number`` (from 1) and the next try.

    The delay of the matching rule; else ``retry_delay * factor ** (try_number - 1)``, where a ``retry_exponential_backoff`` of 0 is
    a constant delay. ``chance`` (from 0 to 1) times ``retry_jitter`` of it is added, and ``max_retry_delay`` limits the sum.
    Neither is ever above :data:`MAX_RETRY_DELAY_S`.
    """
    rule = matching_rule(spec.retry_rules, error_types)
    if rule is not None and rule.delay is not None:
        return min(rule.delay, MAX_RETRY_DELAY_S)
    ceiling = MAX_RETRY_DELAY_S if spec.max_retry_delay is None else min(spec.max_retry_delay, MAX_RETRY_DELAY_S)
    factor = spec.retry_exponential_backoff or 1.0
    try:
        return min(spec.retry_delay * factor ** (try_number - 1) * (1 + spec.retry_jitter * chance), ceiling)
    except OverflowError:
        return ceiling


def matching_rule(rules: Sequence[RetryRuleSpec], error_types: Sequence[str]) -> RetryRuleSpec | None:
    """Returns the first rule that matches such an error."""
    for rule in rules:
        considered = error_types[:1] if rule.exact else error_types
        if not rule.exceptions or any(_names(name, raised) for name in rule.exceptions for raised in considered):
            return rule
    return None


def _names(name: str, raised: str) -> bool:
    """Returns whether ``name`` names the class ``raised``: by the module that defines it, or by a package around that module, as
    ``requests.ConnectionError`` is defined in ``requests.exceptions``.
    """
    module, _, cls = name.rpartition(".")
    defined_in, _, raised_cls = raised.rpartition(".")
    defined_in = defined_in or "builtins"
    return cls == raised_cls and (defined_in == module or defined_in.startswith(f"{module}."))
