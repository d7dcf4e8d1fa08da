"""Answers for a run in memory: those of people, and those of the missing control plane. ``dag.test()`` takes its place when a task
asks for other runs or for events.
"""

from __future__ import annotations

import atexit
import functools
import json
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenflow.core.ending import Defer
from evenflow.core.model import RunParamSpec
from evenflow.core.people.approvals import PEOPLE, ApprovalAnswer, ApprovalChoice, ApprovalQuestion
from evenflow.errors import BadArgument, TaskDeferralTimeout
from evenflow.sdk.param_schema import checked_params
from evenflow.sdk.triggers import BaseTrigger, TriggerEvent, load


@dataclass(frozen=True, slots=True, kw_only=True)
class TestAnswer:
    choice: ApprovalChoice
    values: Mapping[str, Any] = field(default_factory=dict)
    by: str = "test"

    def to(self, defer: Defer) -> str:
        """Returns the answer as the event of a task that waits for people. Raises :class:`BadValue` and :class:`ParamError` for a
        wrong one.
        """
        asked = json.loads(defer.trigger_kwargs["question"])
        params = {name: RunParamSpec(**each) for name, each in asked.pop("params").items()}
        choice = ApprovalQuestion(params=params, **asked).checked_choice(self.choice)
        values = checked_params(params, self.values) if params or self.values else {}
        return ApprovalAnswer(choice=choice, values=values, answered_by=self.by).as_event()


class _AnswerOf(BaseTrigger):
    """An answer; None: no person answers in time."""

    def __init__(self, answer: TestAnswer | None, defer: Defer) -> None:
        self._answer, self._defer = answer, defer

    async def run(self) -> AsyncIterator[TriggerEvent]:
        if self._answer is None:
            raise TaskDeferralTimeout("Nobody answers.")
        yield TriggerEvent(self._answer.to(self._defer))


class TestAnswers:
    """Answers by task: a choice, a list of choices, a dict of ``choice`` and ``values``, or None for no answer in time."""

    def __init__(self, given: Mapping[str, ApprovalChoice | Mapping[str, Any] | None]) -> None:
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
            case str() | list() as choice:
                return _AnswerOf(TestAnswer(choice=choice), defer)
            case {"choice": str() | list() as choice} as given if given.keys() <= {"choice", "values"}:
                return _AnswerOf(TestAnswer(choice=choice, values=given.get("values", {})), defer)
            case other:
                raise BadArgument(
                    f"The answer to task {task_id!r} is a choice, or {{'choice': 'approve', 'values': {{...}}}}, not {other!r:.80}."
                )


@functools.cache
def _results() -> Path:
    """Makes a folder for files that are results, which exists as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="evenflow-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def answer_alone(question: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Answers for a run in ``dag.test()``, which is alone: no events came before it, nothing is defined outside, and runs of other
    DAGs that it triggers or waits for are mentioned on stdout and taken as done.
    """
    match question:
        case "waited":
            return {"waited_s": 0.0}
        case "triggering_events" | "inlet_events":
            return {"events": []}
        case "inlet_assets":
            return {"assets": []}
        case "trigger":
            print(f"dag.test() runs no other DAG: taken as triggered is {arguments['dag_id']} with conf {arguments['conf']!r}")
            return {"run_id": arguments.get("run_id") or "test__triggered", "state": "success", "is_own": True}
        case "states":
            print(f"dag.test() sees no other DAG: taken as successful is {arguments['dag_id']}")
            dates, names = arguments.get("logical_dates", []), arguments.get("run_ids", [])
            counts = {task_id: {"success": 1} for task_id in arguments.get("task_ids") or ["all"]}
            return {
                "runs": [
                    *({"run_id": "test", "logical_date": d, "state": "success", "counts": counts} for d in dates),
                    *({"run_id": name, "logical_date": None, "state": "success", "counts": counts} for name in names),
                ],
                "missing": [],
            }
        case "record":
            return {}  # it is not kept
        case "folder":
            name = f"0-{secrets.token_hex(8)}.parquet"
            (_results() / name).mkdir()
            return {"url": _results().as_uri(), "name": name}
        case "set_variable" | "delete_variable":
            print(f"dag.test() has no database: the variable {arguments['name']} is left as it is")
            return {}
        case _:
            return {}
