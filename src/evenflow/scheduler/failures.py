"""What the failure of a try means: another one, the end of its task, or part of the end of its run."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from evenflow.core.model import TaskSpec
from evenflow.core.operations import cancel_reason
from evenflow.core.retry import matching_rule, next_delay
from evenflow.core.states import Ender, TaskEvent
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.ledgers.moves import Moves
from evenflow.store.scheduling import tasks
from evenflow.store.scheduling.tasks import Item


def spec_of(facts: Facts, item: Item) -> TaskSpec:
    return facts.runs[item.run_key].graph.task(item.task_index)


def is_ending(facts: Facts, item: Item) -> bool:
    return facts.runs[item.run_key].is_ending(item.task_index)


def judge_failure(facts: Facts, item: Item, error_types: Sequence[str] = ()) -> TaskEvent:
    return facts.runs[item.run_key].judge_failure(item.task_index, item.try_number - item.tries_before, error_types)


def fail(facts: Facts, moves: Moves, item: Item, event: TaskEvent, payload: dict[str, Any]) -> None:
    """Moves it by ``event``, says why, and sets the time of its next try, if it has one."""
    moves.apply(item, event, payload)
    spec, raised = spec_of(facts, item), payload.get("error_types", ())
    rule = matching_rule(spec.retry_rules, raised)
    by = facts.runs[item.run_key].cancelled_by if event is TaskEvent.CANCEL else None
    said = (
        by and cancel_reason(by),
        payload.get("reason"),
        rule and rule.reason and f"retry policy: {rule.reason}",
    )
    if any(said):
        moves.explain(
            item, "; ".join(str(reason) for reason in said if reason), Ender.CANCEL if event is TaskEvent.CANCEL else None
        )
    if event is TaskEvent.RETRY:
        delay = payload.get("delay_s")  # by the try itself, bounded as all waits are
        if delay is None:
            delay = next_delay(spec, item.try_number - item.tries_before, raised, chance=_chance(item.epoch))
        moves.messages.retries.append(tasks.Retry(item.epoch, *item.key, delay))


def _chance(epoch: int) -> float:
    """A number from 0 to 1 that is as good as random, and the same whenever it is asked for: epochs are never used again."""
    return zlib.crc32(epoch.to_bytes(8, "big")) / 2**32
