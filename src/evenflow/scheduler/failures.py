"""What the failure of a try means: another one, the end of its task, or part of the end of its run."""

from __future__ import annotations

import zlib
from typing import Any

from evenflow.core.flow import ends
from evenflow.core.model import TaskSpec
from evenflow.core.states import Ender, TaskEvent
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.ledgers.moves import Moves
from evenflow.store.scheduling import tasks
from evenflow.store.scheduling.tasks import Item


def spec_of(facts: Facts, item: Item) -> TaskSpec:
    return facts.runs[item.run_key].graph.task(item.task_index)


def is_ending(facts: Facts, item: Item) -> bool:
    return facts.runs[item.run_key].is_ending(item.task_index)


def judge_failure(facts: Facts, item: Item) -> TaskEvent:
    run = facts.runs[item.run_key]
    return ends.judge_failure(run, item.task_index, item.try_number - item.tries_before)


def fail(facts: Facts, moves: Moves, item: Item, event: TaskEvent, payload: dict[str, Any]) -> None:
    """Moves it by ``event``, says why, and sets the time of its next try, if it has one."""
    moves.apply(item, event, payload)
    if said := ends.why_ended(facts.runs[item.run_key], item.task_index, event, payload):
        moves.explain(item, said, Ender.CANCEL if event is TaskEvent.CANCEL else None)
    if event is TaskEvent.RETRY:
        spec, tries = spec_of(facts, item), item.try_number - item.tries_before
        delay_s = ends.retry_delay(spec, tries, payload.get("error_types", ()), payload.get("delay_s"), chance=_chance(item.epoch))
        moves.messages.retries.append(tasks.Retry(item.epoch, *item.key, delay_s))


def _chance(epoch: int) -> float:
    """A number from 0 to 1 that is as good as random, and the same whenever it is asked for: epochs are never used again."""
    return zlib.crc32(epoch.to_bytes(8, "big")) / 2**32
