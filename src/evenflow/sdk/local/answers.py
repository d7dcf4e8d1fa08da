"""What people answer in a run in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenflow.core.ending import Defer
from evenflow.core.model import RunParamSpec
from evenflow.core.people.approvals import PEOPLE, ApprovalAnswer, ApprovalQuestion
from evenflow.errors import BadArgument, TaskDeferralTimeout
from evenflow.sdk.param_schema import checked_params
from evenflow.sdk.triggers import BaseTrigger, TriggerEvent, load


@dataclass(frozen=True, slots=True, kw_only=True)
class TestAnswer:
    choice: str
    values: Mapping[str, Any] = field(default_factory=dict)
    by: str = "test"

    def to(self, defer: Defer) -> str:
        """As the event of what waits for people. Raises :class:`BadValue` and :class:`ParamError` for what does not fit."""
        asked = json.loads(defer.trigger_kwargs["question"])
        params = {name: RunParamSpec(**each) for name, each in asked.pop("params").items()}
        choice = ApprovalQuestion(params=params, **asked).checked_choice(self.choice)
        values = checked_params(params, self.values) if params or self.values else {}
        return ApprovalAnswer(choice=choice, values=values, answered_by=self.by).as_event()


class _AnswerOf(BaseTrigger):
    """None: nobody answers in time."""

    def __init__(self, answer: TestAnswer | None, defer: Defer) -> None:
        self._answer, self._defer = answer, defer

    async def run(self) -> AsyncIterator[TriggerEvent]:
        if self._answer is None:
            raise TaskDeferralTimeout("Nobody answers.")
        yield TriggerEvent(self._answer.to(self._defer))


class TestAnswers:
    """By task: a choice, a dict of ``choice`` and ``values``, or None when nobody answers in time."""

    def __init__(self, given: Mapping[str, str | Mapping[str, Any] | None]) -> None:
        self._given = given

    def __call__(self, task_id: str, map_index: int, defer: Defer) -> BaseTrigger:
        if defer.queue != PEOPLE:
            return load(defer.trigger, defer.trigger_kwargs)
        if task_id not in self._given:
            raise BadArgument(
                f"Task {task_id!r} asks people. Say what they answer: dag.test(answers={{{task_id!r}: 'approve'}}), or None if "
                "nobody does in time."
            )
        match self._given[task_id]:
            case None:
                return _AnswerOf(None, defer)
            case str(choice):
                return _AnswerOf(TestAnswer(choice=choice), defer)
            case {"choice": str(choice)} as given if given.keys() <= {"choice", "values"}:
                return _AnswerOf(TestAnswer(choice=choice, values=given.get("values", {})), defer)
            case other:
                raise BadArgument(
                    f"The answer to task {task_id!r} is a choice, or {{'choice': 'approve', 'values': {{...}}}}, not {other!r:.80}."
                )
