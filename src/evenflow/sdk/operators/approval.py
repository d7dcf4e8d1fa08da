"""A task that asks people, and continues with their answer. While it waits it has no process, no slot, and no running trigger."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from evenflow.core.deferral import Purpose
from evenflow.core.people.approvals import APPROVE, PEOPLE, REJECT, ApprovalAnswer, ApprovalChoice, ApprovalQuestion, words_of
from evenflow.errors import BadSetting, TaskFailedForGood
from evenflow.sdk.context import Context
from evenflow.sdk.deferring import ResumedTry
from evenflow.sdk.operator import BaseOperator
from evenflow.sdk.operators.branching import SkipMixin, cut_off
from evenflow.sdk.params import params_to_spec
from evenflow.sdk.readers import Unfit, wait_in_seconds
from evenflow.sdk.references import references
from evenflow.sdk.triggers import BaseTrigger, TriggerEvent

ON_REJECT = ("skip", "fail", "go_on")


class AnswerTrigger(BaseTrigger):
    """Stands for the answer to ``question``, which is JSON. No triggerer runs it: the API stores the answer as its event."""

    def __init__(self, question: str) -> None:
        self.question = question

    async def run(self) -> AsyncIterator[TriggerEvent]:
        import asyncio  # not needed for `import evenflow`

        await asyncio.Event().wait()
        yield TriggerEvent()


class ApprovalOperator(BaseOperator, SkipMixin):
    """Asks people ``subject``, with ``body`` below it, and waits for one of ``choices`` and the fields of ``params``.

    The result is a dict with ``choice``, ``values`` of the fields, ``answered_by`` and ``answered_at``. ``who`` lists people by
    name and roles as ``role:NAME``; without it, everybody who may trigger runs may answer. With ``multiple`` several choices
    may be the answer, and ``choice`` and ``default`` are lists. Without an answer within ``timeout`` (a timedelta or seconds) the
    answer is ``default``, of no person; without a default the task fails for good. After ``reject`` all downstream tasks are
    skipped; with ``on_reject="fail"`` the task fails, and ``"go_on"`` makes no difference.
    """

    operator_name = "approval"
    deferrable = True
    releases_while_deferred: ClassVar[Mapping[str, str] | None] = {"pool": "release"}
    template_fields: ClassVar[Sequence[str]] = ("subject", "body", "who")

    def __init__(
        self,
        *,
        task_id: str,
        subject: str,
        body: str = "",
        choices: Sequence[str] = (APPROVE, REJECT),
        params: Mapping[str, Any] | None = None,
        who: str | Sequence[str] = (),
        timeout: timedelta | float | None = None,
        default: ApprovalChoice | None = None,
        multiple: bool = False,
        on_reject: str = "skip",
        **options: Any,
    ) -> None:
        super().__init__(task_id=task_id, **options)
        self.subject, self.body, self.choices = subject, body, list(choices)
        self.who = [who] if isinstance(who, str) else list(who)
        self.default, self.multiple, self.on_reject = default, multiple, on_reject
        self.form = params_to_spec(params or {}, f"Task {task_id!r}")
        self.timeout = None if timeout is None else _seconds(task_id, timeout)
        if on_reject not in ON_REJECT:
            raise BadSetting(f"Task {task_id!r}: on_reject must be one of {', '.join(ON_REJECT)}, not {on_reject!r}.")
        if default is not None and timeout is None:
            raise BadSetting(f"Task {task_id!r}: default is the answer after timeout. Say timeout=timedelta(hours=8), too.")
        if not list(references([self.subject, self.body, self.who])):
            self.question()

    def question(self) -> ApprovalQuestion:
        """Returns the question. Raises :class:`BadSetting` for one that makes no sense."""
        named = {"subject": [self.subject], "body": [self.body], "choices": self.choices, "who": self.who}
        for name, texts in named.items():
            for text in texts:
                if not isinstance(text, str):
                    raise BadSetting(f"Task {self.task_id!r}: {name} must be text, not {text!r:.80}.")
        asked = ApprovalQuestion(
            subject=self.subject,
            body=self.body,
            choices=self.choices,
            params=self.form,
            who=self.who,
            default=self.default,
            multiple=self.multiple,
        )
        if (flaw := asked.flaw()) is not None:
            raise BadSetting(f"Task {self.task_id!r}: {flaw}.")
        return asked

    def execute(self, context: Context) -> Any:
        asked = json.dumps(dataclasses.asdict(self.question()), ensure_ascii=False)
        self.defer(trigger=AnswerTrigger(asked), method_name="answered", timeout=self.timeout, queue=PEOPLE)

    def resume_execution(self, context: Context, resumed: ResumedTry) -> Any:
        if resumed.purpose != Purpose.TIMEOUT:
            return super().resume_execution(context, resumed)
        waited = f"Nobody answered task {self.task_id!r} within {timedelta(seconds=self.timeout or 0.0)}"
        if self.default is None:
            raise TaskFailedForGood(f"{waited}, and it has no default. To ask again, clear it.")
        print(f"{waited}: its default is {words_of(self.default)!r}.")
        values = {name: param.default for name, param in self.form.items() if not param.required}
        return self._judged(context, ApprovalAnswer(choice=self.default, values=values))

    def answered(self, context: Context, event: str) -> dict[str, Any]:
        """Called with a person's answer as JSON."""
        answer = ApprovalAnswer(**json.loads(event))
        print(f"{answer.answered_by} answered {words_of(answer.choice)!r}.")
        return self._judged(context, answer)

    def _judged(self, context: Context, answer: ApprovalAnswer) -> dict[str, Any]:
        if answer.choice == REJECT and self.on_reject == "fail":
            raise TaskFailedForGood(f"Rejected by {answer.answered_by or 'default: nobody answered in time'}.")
        if answer.choice == REJECT and self.on_reject == "skip":
            context["ti"].skipped_tasks.update(cut_off(context["ti"].task, everything=True))
        return dataclasses.asdict(answer)


def approve(subject: str, *, task_id: str = "approve", **arguments: Any) -> ApprovalOperator:
    """Makes a task that asks people ``subject``; the arguments are those of :class:`ApprovalOperator`. Downstream tasks run when
    they approve: ``build() >> approve("Deploy?") >> deploy()``.
    """
    return ApprovalOperator(task_id=task_id, subject=subject, **arguments)


def _seconds(task_id: str, timeout: Any) -> float:
    try:
        return float(wait_in_seconds(timeout))
    except Unfit as unfit:
        raise BadSetting(f"Task {task_id!r}: timeout must be {unfit}, not {timeout!r}.") from None
