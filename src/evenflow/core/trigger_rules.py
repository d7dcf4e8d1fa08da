"""When is a task ready? Decided in O(1) from how many of its upstream instances have finished, and how.

A mapped upstream counts once for every instance; an upstream that expanded to nothing counts once as skipped. A verdict other than
``WAIT`` is final while the upstreams keep their states.

``all_done_setup_success``, the rule of teardowns, asks two things: is everything done, and did a setup succeed? One counter holds
both. When an upstream that is not a setup finishes, it leaves the counter instead of counting in it (:func:`contribution`). So only
setups are counted, and ``total`` is reached when everything is done.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import NamedTuple, assert_never

from evenflow.core.states import TaskState


class TriggerRule(StrEnum):
    ALL_SUCCESS = "all_success"
    ALL_FAILED = "all_failed"
    ALL_DONE = "all_done"
    ALL_SKIPPED = "all_skipped"
    ALL_DONE_MIN_ONE_SUCCESS = "all_done_min_one_success"
    ONE_SUCCESS = "one_success"
    ONE_FAILED = "one_failed"
    ONE_DONE = "one_done"
    NONE_FAILED = "none_failed"
    NONE_FAILED_MIN_ONE_SUCCESS = "none_failed_min_one_success"
    NONE_SKIPPED = "none_skipped"
    ALL_DONE_SETUP_SUCCESS = "all_done_setup_success"  # of teardowns
    ALWAYS = "always"


RENAMED = {"dummy": TriggerRule.ALWAYS, "none_failed_or_skipped": TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS}  # names of Airflow 2


class Verdict(Enum):
    WAIT = "wait"
    READY = "ready"
    SKIP = "skip"
    UPSTREAM_FAIL = "upstream_fail"


class UpstreamCounts(NamedTuple):
    """``total`` upstream instances, and how many of them have finished in each way. ``failed`` includes ``upstream_failed``."""

    total: int
    success: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def done(self) -> int:
        return self.success + self.failed + self.skipped


def counted_as(state: TaskState) -> tuple[int, int, int]:
    """Returns what a finished upstream adds to (success, failed, skipped)."""
    match state:
        case TaskState.SUCCESS:
            return (1, 0, 0)
        case TaskState.FAILED | TaskState.UPSTREAM_FAILED:
            return (0, 1, 0)
        case TaskState.SKIPPED | TaskState.REMOVED:
            return (0, 0, 1)
        case _:
            return (0, 0, 0)


def contribution(rule: TriggerRule, counted: tuple[int, int, int], *, setup: bool) -> UpstreamCounts:
    """Returns what an upstream with these ``counted`` numbers adds to the counts of a task with this rule; ``setup`` says whether
    the upstream is a setup. The negated numbers undo it.
    """
    if rule is TriggerRule.ALL_DONE_SETUP_SUCCESS and not setup:
        return UpstreamCounts(-sum(counted))
    return UpstreamCounts(0, *counted)


def evaluate(rule: TriggerRule, counts: UpstreamCounts) -> Verdict:
    """Returns the verdict for a task with this rule; a task without upstreams is always ready."""
    total, success, failed, skipped = counts
    all_done = counts.done >= total
    if total == 0 or rule is TriggerRule.ALWAYS:
        return Verdict.READY
    match rule:
        case TriggerRule.ALL_SUCCESS:
            if failed:
                return Verdict.UPSTREAM_FAIL
            if skipped:
                return Verdict.SKIP
        case TriggerRule.ALL_FAILED:
            if success or skipped:
                return Verdict.SKIP
        case TriggerRule.ALL_SKIPPED:
            if success or failed:
                return Verdict.SKIP
        case TriggerRule.NONE_SKIPPED:
            if skipped:
                return Verdict.SKIP
        case TriggerRule.NONE_FAILED:
            if failed:
                return Verdict.UPSTREAM_FAIL
        case TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS:
            if failed:
                return Verdict.UPSTREAM_FAIL
            if all_done and not success:
                return Verdict.SKIP
        case TriggerRule.ALL_DONE_MIN_ONE_SUCCESS:
            if all_done and not success:
                return Verdict.UPSTREAM_FAIL if failed else Verdict.SKIP
        case TriggerRule.ONE_SUCCESS:
            if success:
                return Verdict.READY
            if all_done:
                return Verdict.UPSTREAM_FAIL if failed else Verdict.SKIP
        case TriggerRule.ONE_FAILED:
            if failed:
                return Verdict.READY
            if all_done:
                return Verdict.SKIP
        case TriggerRule.ONE_DONE:
            if success or failed:
                return Verdict.READY
            if all_done:
                return Verdict.SKIP
        case TriggerRule.ALL_DONE_SETUP_SUCCESS:
            if all_done and not success:
                return Verdict.UPSTREAM_FAIL if failed else Verdict.SKIP
        case TriggerRule.ALL_DONE:
            pass
        case _:
            assert_never(rule)
    return Verdict.READY if all_done else Verdict.WAIT
