"""``retry_policy``: which failures get another try, as data by which the scheduler decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from evenflow.core import model
from evenflow.core.limits import MAX_RETRIES, MAX_RETRY_DELAY_S, MAX_RETRY_RULES
from evenflow.errors import BadSetting

ExceptionSpec = type[BaseException] | str


class RetryAction(StrEnum):
    RETRY = "retry"  # while there are tries left
    FAIL = "fail"  # at once, whatever tries are left
    DEFAULT = "default"  # as if there were no policy


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRule:
    """The consequence of a failure by ``exception``: a class, its dotted name (it is never imported), or a list of these.

    ``retry_delay`` replaces the task's. ``retries`` lowers the number that the task allows. ``match_subclasses=False`` matches only
    this very class.
    """

    exception: ExceptionSpec | Sequence[ExceptionSpec]
    action: RetryAction | str = RetryAction.RETRY
    retry_delay: timedelta | float | None = None
    retries: int | None = None
    reason: str | None = None
    match_subclasses: bool = True

    def to_spec(self) -> model.RetryRuleSpec:
        """Raises :class:`BadSetting`."""
        given = [self.exception] if isinstance(self.exception, (str, type)) else self.exception
        delay = self.retry_delay.total_seconds() if isinstance(self.retry_delay, timedelta) else self.retry_delay
        if delay is not None and not 0 <= delay <= MAX_RETRY_DELAY_S:
            raise BadSetting(
                f"retry_delay of a RetryRule must be from 0 to {MAX_RETRY_DELAY_S:g} seconds, not {self.retry_delay!r}"
            )
        if self.retries is not None and not 0 <= self.retries <= MAX_RETRIES:
            raise BadSetting(f"retries of a RetryRule must be from 0 to {MAX_RETRIES}, not {self.retries!r}")
        if not isinstance(given, (list, tuple)) or not given:
            raise BadSetting(_WANTED.format(given))
        return model.RetryRuleSpec(
            exceptions=tuple(map(_name, given)),
            action=_action(self.action).value,
            delay=None if delay is None else float(delay),
            retries=self.retries,
            reason=self.reason or "",
            exact=not self.match_subclasses,
        )


@dataclass(frozen=True, slots=True)
class ExceptionRetryPolicy:
    """The first matching rule decides; without one, ``default`` does."""

    rules: Sequence[RetryRule]
    default: RetryAction | str = RetryAction.DEFAULT

    def to_spec(self) -> tuple[model.RetryRuleSpec, ...]:
        """Raises :class:`BadSetting`."""
        if len(self.rules) > MAX_RETRY_RULES:
            raise BadSetting(f"a retry policy may have {MAX_RETRY_RULES} rules, not {len(self.rules)}")
        for rule in self.rules:
            if not isinstance(rule, RetryRule):
                raise BadSetting(f"rules of a retry policy must be RetryRule(...), not {rule!r}")
        default = _action(self.default)
        last = () if default is RetryAction.DEFAULT else (model.RetryRuleSpec(action=default.value),)
        return (*(rule.to_spec() for rule in self.rules), *last)


def _action(given: Any) -> RetryAction:
    try:
        return RetryAction(given)
    except ValueError:
        raise BadSetting(f"action must be one of {', '.join(RetryAction)}, not {given!r}") from None


def _name(exception: Any) -> str:
    if isinstance(exception, type) and issubclass(exception, BaseException):
        return f"{exception.__module__}.{exception.__qualname__}"
    if isinstance(exception, str) and "." in exception.strip("."):
        return exception
    raise BadSetting(_WANTED.format(exception))


_WANTED = "exception of a RetryRule must be an exception class or its dotted name, e.g. 'builtins.ValueError', not {!r}"
