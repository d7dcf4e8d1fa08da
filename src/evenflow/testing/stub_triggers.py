"""Stand-ins for the events of deferred tasks."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from evenflow.core.ending import Defer
from evenflow.core.model import UNMAPPED
from evenflow.core.people.approvals import PEOPLE
from evenflow.errors import BadArgument
from evenflow.sdk.local.answers import TestAnswer
from evenflow.sdk.triggers import BaseTrigger, TriggerEvent, load


@dataclass(frozen=True, slots=True, kw_only=True)
class StubEvent:
    """The end of one wait, and the time until then."""

    payload: Any = None
    raises: BaseException | type[BaseException] | None = None
    after_s: float = 0.0
    answer: TestAnswer | None = None  # of a person: it becomes the payload


class _StubTrigger(BaseTrigger):
    def __init__(self, event: StubEvent, defer: Defer) -> None:
        self._event, self._defer = event, defer

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(self._event.after_s)
        if self._event.raises is not None:
            raise self._event.raises
        answer = self._event.answer
        yield TriggerEvent(self._event.payload if answer is None else answer.to(self._defer))


class StubEvents:
    """The stubbed events of one DAG: by task, or by instance, in the order of their waits."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, int | None], list[StubEvent]] = defaultdict(list)

    def add(self, task_id: str, map_index: int | None, event: StubEvent) -> None:
        self._events[task_id, map_index].append(event)

    def triggers(self) -> StubTriggers:
        """Returns the triggers for one run."""
        return StubTriggers(self._events)


class StubTriggers:
    """Gives each wait its trigger: a stub while there is one left, else the deferred one."""

    def __init__(self, events: Mapping[tuple[str, int | None], list[StubEvent]]) -> None:
        self._events = events
        self._waits: Counter[tuple[str, int]] = Counter()

    def __call__(self, task_id: str, map_index: int, defer: Defer) -> BaseTrigger:
        position = self._waits[task_id, map_index]
        self._waits[task_id, map_index] += 1
        own = () if map_index == UNMAPPED else self._events.get((task_id, map_index), ())
        for events in (own, self._events.get((task_id, None), ())):
            if position < len(events):
                return _StubTrigger(events[position], defer)
        if defer.queue == PEOPLE and defer.timeout_s is None:
            raise BadArgument(f"Task {task_id!r} waits for people. Say what they answer: run.answer({task_id!r}, 'approve')")
        return load(defer.trigger, defer.trigger_kwargs)
